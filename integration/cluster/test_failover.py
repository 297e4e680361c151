"""Scenarios 8 to 19: brokers, controllers and links that die, freeze or lose ZooKeeper."""

from __future__ import annotations

import contextlib
import time

import pytest
from kazoo.exceptions import NoNodeError

from integration.cluster.cluster import TIMEOUT_S, eventually
from integration.cluster.conftest import MIXED, PURE, Clusters
from integration.cluster.recorder import Recorder
from integration.cluster.sessions import expire
from kafka08.protocol import schemas

STALE_CONTROLLER_EPOCH = 11
# Time to find another member even where the dead one never said goodbye.
ENSEMBLE_SESSION_MS = 8000
# Sessions outlive two rounds of lag, so that the leader notices before the controller does.
LONG_SESSION = {"zookeeper.session.timeout.ms": 20000, "replica.lag.time.max.ms": 2000}
# Outlasts a ZooKeeper that takes long to start on a busy machine.
OUTAGE_SESSION = LONG_SESSION | {"zookeeper.session.timeout.ms": 60000}


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_08_killed_leader(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3, 2])
    with Recorder(cluster, topic) as recorder:
        before = cluster.state(topic)
        assert before is not None and before.leader == 1
        cluster.kill(1)
        after = cluster.await_leader(topic, 3)
        assert after.leader_epoch > before.leader_epoch
        assert after.isr == [3, 2]
        recorder.await_more()
        cluster.brokers[1].start()
        cluster.await_isr(topic, {1, 2, 3})
        recorder.await_more()
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_09_killed_follower(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props={"replica.lag.time.max.ms": 30000})
    topic = cluster.new_topic([1, 2, 3])
    before = cluster.state(topic)
    assert before is not None
    with Recorder(cluster, topic) as recorder:
        cluster.kill(3)
        after = cluster.await_isr(topic, {1, 2})
        assert (after.leader, after.leader_epoch) == (1, before.leader_epoch + 1)
        recorder.await_more()
        recorder.verify()


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_10_and_11_frozen_follower(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props=LONG_SESSION)
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        before = cluster.state(topic)
        assert before is not None
        cluster.pause(3)
        after = cluster.await_isr(topic, {1, 2})
        assert (after.leader, after.leader_epoch) == (1, before.leader_epoch)
        assert after.version == before.version + 1
        assert 3 in cluster.ids()
        recorder.await_more()
        cluster.resume(3)
        cluster.await_isr(topic, {1, 2, 3})
        recorder.await_more()
        recorder.verify()
    cluster.await_identical(topic)


def test_every_broker_shows_the_isr_of_the_moment(clusters: Clusters) -> None:
    cluster = clusters.get("ours", props=LONG_SESSION)
    topic = cluster.new_topic([1, 2, 3])
    for act, isr in ((cluster.pause, {1, 2}), (cluster.resume, {1, 2, 3})):
        act(3)
        cluster.await_isr(topic, isr)
        for broker_id in (1, 2):
            eventually(
                f"isr {isr} shown by {broker_id}",
                lambda b=broker_id, i=isr: set(cluster.shown(b, topic).isr) == i,
            )
    eventually("no notice", lambda: not cluster.zk.get_children("/isr_change_notification"))


@pytest.mark.parametrize("kind", MIXED[1:])
def test_an_original_controller_finds_one_notice_per_broker(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props=LONG_SESSION)
    topic = cluster.new_topic([1, 2, 3])
    for act, isr in ((cluster.pause, {1, 2}), (cluster.resume, {1, 2, 3})):
        act(3)
        cluster.await_isr(topic, isr)
        eventually("a notice", lambda: cluster.zk.exists("/isr_change_notification"))
        eventually("one", lambda: len(cluster.zk.get_children("/isr_change_notification")) == 1)
    cluster.kill(1)
    cluster.await_leader(topic, 2)
    eventually("none", lambda: not cluster.zk.get_children("/isr_change_notification"))


def test_who_dies_with_the_controller_holds_up_no_write(clusters: Clusters) -> None:
    cluster = clusters.get("ours", props={"replica.lag.time.max.ms": 600000})
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        cluster.kill(2)
        cluster.await_isr(topic, {1, 3})
        recorder.await_more()
        recorder.verify()


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_12_frozen_leader(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        cluster.pause(1)
        cluster.await_gone(1)
        leader = cluster.await_state(topic, lambda s: s.leader in (2, 3)).leader
        cluster.await_leader(topic, leader)
        recorder.await_more()
        cluster.resume(1)
        code, _ = cluster.produce(topic, [b"from the past"], broker=1, timeout_ms=500)
        assert code != 0
        cluster.await_ids({1, 2, 3})
        cluster.await_isr(topic, {1, 2, 3})
        recorder.await_more()
        recorder.verify()
    assert cluster.brokers[1].alive
    data = cluster.await_identical(topic)
    assert b"from the past" not in data or kind != "ours"


@pytest.mark.parametrize("kind", PURE + MIXED)
@pytest.mark.usefixtures("cuts")
def test_13_leader_without_zookeeper(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        cluster.cut(1, "zookeeper")
        cluster.await_gone(1)
        leader = cluster.await_state(topic, lambda s: s.leader in (2, 3)).leader
        cluster.await_leader(topic, leader)
        code, _ = cluster.produce(topic, [b"from the past"], broker=1, timeout_ms=500)
        assert code != 0
        recorder.await_more()
        cluster.hosts.heal()
        cluster.await_ids({1, 2, 3})
        cluster.await_isr(topic, {1, 2, 3})
        recorder.await_more()
        recorder.verify()
    cluster.await_identical(topic)


def test_writes_go_on_while_zookeeper_is_away(clusters: Clusters) -> None:
    cluster = clusters.get("ours")
    topic = cluster.new_topic([1, 2, 3])
    taken = [b"before"]
    assert cluster.produce(topic, taken, broker=1)[0] == 0
    for node in cluster.zookeepers:
        node.kill()
    try:
        # acks 1 is refused once another leader could exist: from here on the fence is up.
        eventually("fence", lambda: cluster.produce(topic, [b"x"], acks=1, broker=1)[0] == 6)
        for number in range(20):
            taken.append(b"meanwhile %d" % number)
            assert cluster.produce(topic, taken[-1:], broker=1)[0] == 0
    finally:
        for node in cluster.zookeepers:
            node.spawn()
    cluster.await_isr(topic, {1, 2, 3})
    eventually("acks 1", lambda: cluster.produce(topic, [b"after"], acks=1)[0] == 0)
    found = [each for each in cluster.read(topic) if each not in (b"x", b"after")]
    assert found == taken
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
@pytest.mark.usefixtures("cuts")
def test_leader_cut_from_everything(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        cluster.cut(1, "everything")
        cluster.await_gone(1)
        recorder.await_more()
        cluster.hosts.heal()
        cluster.await_isr(topic, {1, 2, 3})
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_14_killed_controller(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3])
    before, epoch = cluster.state(topic), cluster.controller_epoch()
    with Recorder(cluster, topic) as recorder:
        cluster.kill(2)
        eventually("a new controller", lambda: cluster.controller() in (1, 3))
        eventually("the next epoch", lambda: cluster.controller_epoch() == epoch + 1)
        recorder.await_more()
        # The new controller acts: a topic it has to find and place.
        cluster.new_topic([3, 1])
        assert cluster.state(topic) == before
        cluster.brokers[2].start()
        recorder.verify()


@pytest.mark.parametrize("kind", PURE)
def test_15_frozen_controller(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3])
    epoch = cluster.controller_epoch()
    cluster.pause(2)
    eventually("a new controller", lambda: cluster.controller() in (1, 3))
    cluster.new_topic([3, 1])
    node = cluster.zk.exists("/controller").czxid
    cluster.resume(2)
    cluster.await_ids({1, 2, 3})
    assert cluster.zk.exists("/controller").czxid == node
    assert cluster.controller_epoch() == epoch + 1
    for broker_id in (1, 2, 3):
        # Brokers that know the new controller refuse requests of the old one.
        request = schemas.LeaderAndIsrRequest(2, epoch, [], [])
        eventually(
            f"broker {broker_id} refuses the old controller",
            lambda b=broker_id, r=request: cluster.call(b, r).error == STALE_CONTROLLER_EPOCH,
        )
    state = cluster.state(topic)
    assert state is not None and state.leader == 1
    # The old one serves as an ordinary broker.
    cluster.new_topic([2, 1, 3])


@pytest.mark.parametrize("kind", PURE)
def test_16_killed_controller_that_leads(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([2, 1, 3])
    with Recorder(cluster, topic) as recorder:
        cluster.kill(2)
        cluster.await_leader(topic, 1)
        assert cluster.controller() in (1, 3)
        recorder.await_more()
        cluster.brokers[2].start()
        cluster.await_isr(topic, {1, 2, 3})
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
def test_17_controller_dies_before_it_tells(clusters: Clusters, kind: str) -> None:
    """Its last write to ZooKeeper is made here in its stead; nobody is told until it is gone."""
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3])
    before = cluster.state(topic)
    assert before is not None
    node = cluster.json(f"/brokers/topics/{topic}/partitions/0/state")
    node |= {"leader": 3, "leader_epoch": before.leader_epoch + 1}
    cluster.pause(2)
    cluster.write_state(topic, node, before.version)
    cluster.kill(2)
    cluster.await_leader(topic, 3)
    eventually("broker 1 gives way", lambda: cluster.produce(topic, [b"x"], broker=1)[0] == 6)
    cluster.brokers[2].start()
    cluster.put_records(topic, 10)
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
def test_18_zookeeper_away_for_less_than_a_session(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props=OUTAGE_SESSION)
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        before, epoch = cluster.state(topic), cluster.controller_epoch()
        for node in cluster.zookeepers:
            node.kill()
        recorder.await_more()
        assert cluster.read(topic, broker=1)
        for node in cluster.zookeepers:
            node.spawn()
        eventually("ZooKeeper is back", lambda: cluster.ids() == {1, 2, 3})
        recorder.await_more()
        assert (cluster.state(topic), cluster.controller_epoch()) == (before, epoch)
        recorder.verify()


@pytest.mark.slow
@pytest.mark.parametrize("kind", PURE)
def test_one_zookeeper_of_three_dies(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(
        kind, zookeepers=3, props={"zookeeper.session.timeout.ms": ENSEMBLE_SESSION_MS}
    )
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        before, epoch = cluster.state(topic), cluster.controller_epoch()
        for node in cluster.zookeepers:
            node.kill()
            deadline = time.monotonic() + 1.3 * ENSEMBLE_SESSION_MS / 1000
            while time.monotonic() < deadline:  # longer than a session: nobody may lose his
                recorder.await_more()
            assert (cluster.state(topic), cluster.controller_epoch()) == (before, epoch)
            node.spawn()
            cluster.await_ensemble()
        recorder.verify()


@pytest.mark.parametrize("kind", PURE + MIXED)
@pytest.mark.parametrize("victim", [1, 2, 3], ids=["leader", "controller", "follower"])
def test_19_expired_session(clusters: Clusters, kind: str, victim: int) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3, 2])
    with Recorder(cluster, topic) as recorder:
        path = f"/brokers/ids/{victim}"
        node = cluster.zk.exists(path)
        expire(cluster.connect, node.ephemeralOwner)
        eventually(
            "a new registration",
            lambda: cluster.zk.exists(path) and cluster.zk.exists(path).czxid > node.czxid,
        )
        cluster.await_isr(topic, {1, 2, 3})
        eventually("a controller", lambda: cluster.controller() > 0)
        recorder.await_more()
        state = cluster.state(topic)
        assert state is not None
        cluster.await_leader(topic, state.leader)
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_19_expired_session_nobody_noticed(clusters: Clusters, kind: str) -> None:
    """The controller looks again only when the id is back: an original sees no change at all."""
    cluster = clusters.get(kind, props=LONG_SESSION)
    topic = cluster.new_topic([1, 3])
    with Recorder(cluster, topic) as recorder:
        path = "/brokers/ids/1"
        node = cluster.zk.exists(path)
        cluster.pause(2)
        expire(cluster.connect, node.ephemeralOwner)
        eventually(
            "a new registration",
            lambda: cluster.zk.exists(path) and cluster.zk.exists(path).czxid > node.czxid,
        )
        cluster.resume(2)
        recorder.await_more()
        cluster.await_isr(topic, {1, 3})
        recorder.verify()
    cluster.await_identical(topic)


def test_office_lost_again_and_again(clusters: Clusters) -> None:
    """Each loss begins a new epoch, also one in the midst of taking office."""
    cluster = clusters.get("ours")
    for number in range(100):
        epoch = cluster.controller_epoch()
        time.sleep(number % 40 / 2000)
        with contextlib.suppress(NoNodeError):
            cluster.zk.delete("/controller")
            deadline = time.monotonic() + TIMEOUT_S
            while cluster.controller_epoch() <= epoch:
                assert time.monotonic() < deadline, f"loss {number} went unnoticed"
