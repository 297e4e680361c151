"""Scenarios 20 to 22 and 33 to 37: unclean, preferred and planned changes of leader."""

from __future__ import annotations

import pytest

from integration.cluster.cluster import Cluster, eventually
from integration.cluster.conftest import MIXED, PURE, Clusters
from integration.cluster.recorder import MOVED, Recorder

LEADER_NOT_AVAILABLE = 5
BROKEN_CONNECTION = -100
CLEAN = {"unclean.leader.election.enable": "false"}


def _lose_the_isr(cluster: Cluster, topic: str) -> list[bytes]:
    """Broker 3 falls out of the isr of [1, 3], more is written to 1, then only 3 comes back."""
    cluster.put_records(topic, 60)
    cluster.kill(3)
    cluster.await_isr(topic, {1})
    cluster.await_leader(topic, 1)
    cluster.put_records(topic, 100)
    records = cluster.read(topic)
    cluster.kill(1)
    cluster.await_gone(1)
    cluster.await_state(topic, lambda s: s.leader == -1)
    cluster.brokers[3].start()
    return records


@pytest.mark.parametrize("kind", PURE)
@pytest.mark.parametrize("set_by", ["broker", "topic"])
def test_20_and_22_clean_election(clusters: Clusters, kind: str, set_by: str) -> None:
    cluster = clusters.get(kind, props=CLEAN if set_by == "broker" else {})
    topic = cluster.new_topic([1, 3], config=CLEAN if set_by == "topic" else {})
    records = _lose_the_isr(cluster, topic)
    # The controller has dealt with broker 3 once a later topic is there.
    cluster.new_topic([3, 2])
    state = cluster.state(topic)
    assert state is not None
    assert (state.leader, state.isr) == (-1, [1])
    eventually(
        "code 5",
        lambda: cluster.shown(2, topic).error == LEADER_NOT_AVAILABLE,
    )
    cluster.brokers[1].start()
    cluster.await_leader(topic, 1)
    assert cluster.read(topic) == records
    cluster.await_isr(topic, {1, 3})
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
@pytest.mark.parametrize("set_by", ["broker", "topic"])
def test_21_and_22_unclean_election(clusters: Clusters, kind: str, set_by: str) -> None:
    cluster = clusters.get(kind, props=CLEAN if set_by == "topic" else {})
    config = {"unclean.leader.election.enable": "true"} if set_by == "topic" else {}
    topic = cluster.new_topic([1, 3], config=config)
    records = _lose_the_isr(cluster, topic)
    state = cluster.await_leader(topic, 3)
    assert state.isr == [3]
    kept = cluster.read(topic)
    assert kept == records[: len(kept)]
    assert len(kept) == 60
    assert cluster.produce(topic, [b"after"])[0] == 0
    cluster.brokers[1].start()
    cluster.await_isr(topic, {1, 3})
    cluster.await_identical(topic)
    assert cluster.read(topic) == [*kept, b"after"]


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_33_rolling_restart(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3], [2, 3, 1], [3, 1, 2])
    with Recorder(cluster, topic, partitions=3) as recorder:
        for broker_id in (1, 2, 3):
            assert cluster.terminate(broker_id) == 143
            assert "Controlled shutdown succeeded" in cluster.brokers[broker_id].log
            recorder.await_more()
            cluster.await_gone(broker_id)
            cluster.brokers[broker_id].start()
            for partition in range(3):
                cluster.await_isr(topic, {1, 2, 3}, partition)
        recorder.verify()
    # Retries there were; nothing a producer would have given up on.
    assert set(recorder.codes) <= {0, BROKEN_CONNECTION, *MOVED}
    assert recorder.slowest_s < 10
    for partition in range(3):
        cluster.await_identical(topic, partition)


@pytest.mark.parametrize("kind", PURE)
def test_34_controlled_shutdown_of_the_controller(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([2, 1, 3])
    epoch = cluster.controller_epoch()
    with Recorder(cluster, topic) as recorder:
        assert cluster.terminate(2) == 143
        assert "Controlled shutdown succeeded" in cluster.brokers[2].log
        state = cluster.state(topic)
        assert state is not None
        assert (state.leader, state.controller_epoch) == (1, epoch)
        eventually("a new controller", lambda: cluster.controller() in (1, 3))
        # It is in the node before it has raised the epoch.
        eventually("its epoch", lambda: cluster.controller_epoch() == epoch + 1)
        recorder.await_more()
        cluster.brokers[2].start()
        cluster.await_isr(topic, {1, 2, 3})
        recorder.verify()


@pytest.mark.parametrize("kind", PURE)
def test_35_controlled_shutdown_of_the_only_member(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3])
    cluster.kill(3)
    cluster.await_isr(topic, {1})
    assert cluster.terminate(1) == 143
    log = cluster.brokers[1].log
    assert log.count("Retrying controlled shutdown after the previous attempt failed") >= 2
    assert "Proceeding to do an unclean shutdown" in log
    cluster.await_state(topic, lambda s: s.leader == -1)
    cluster.brokers[1].start()
    cluster.await_leader(topic, 1)


@pytest.mark.parametrize("kind", PURE)
def test_36_preferred_election(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3, 2])
    cluster.kill(1)
    cluster.await_leader(topic, 3)
    before = cluster.state(topic)
    cluster.elect_preferred(topic)
    cluster.await_no_node("/admin/preferred_replica_election")
    assert cluster.state(topic) == before
    cluster.brokers[1].start()
    cluster.await_isr(topic, {1, 2, 3})
    with Recorder(cluster, topic) as recorder:
        cluster.elect_preferred(topic)
        cluster.await_leader(topic, 1)
        cluster.await_no_node("/admin/preferred_replica_election")
        recorder.await_more()
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
def test_37_auto_rebalance(clusters: Clusters, kind: str) -> None:
    props = {
        "auto.leader.rebalance.enable": "true",
        "leader.imbalance.check.interval.seconds": 3,
    }
    cluster = clusters.get(kind, props=props)
    topic = cluster.new_topic([1, 3, 2], [3, 1, 2])
    with Recorder(cluster, topic, partitions=2) as recorder:
        cluster.kill(1)
        cluster.await_leader(topic, 3)
        cluster.brokers[1].start()
        cluster.await_leader(topic, 1)
        recorder.await_more()
        recorder.verify()
