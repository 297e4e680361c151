"""Scenarios 1 to 7, 23 and 42 to 47: brokers that join, topics that come, grow, change and go."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from integration.cluster.cluster import Cluster, eventually
from integration.cluster.conftest import MIXED, PURE, Clusters
from integration.cluster.hosts import Hosts
from integration.cluster.recorder import Recorder

UNKNOWN = -1
LEADER_NOT_AVAILABLE = 5
MESSAGE_TOO_LARGE = 10
PATHS = ("/consumers", "/brokers/ids", "/brokers/topics", "/config/changes", "/config/topics")
KEEP_TOPICS = {"delete.topic.enable": "false"}


@pytest.mark.parametrize("kind", PURE)
def test_01_first_start(clusters: Clusters, kind: str, hosts: Hosts, tmp_path: Path) -> None:
    clusters.discard()
    cluster = Cluster(hosts, tmp_path, kind, chroot="/a/chroot")
    for node in cluster.zookeepers:
        node.spawn()
    cluster.await_ensemble()
    try:
        # All at once, none of them finds the chroot or any other node.
        for broker in cluster.brokers.values():
            broker.spawn()
        for broker in cluster.brokers.values():
            broker.await_started()
        cluster.await_zookeeper()
        cluster.await_ids({1, 2, 3})
        for path in (*PATHS, "/admin/delete_topics"):
            assert cluster.zk.exists(path), path
        eventually("a controller", lambda: cluster.controller() in (1, 2, 3))
        assert cluster.controller_epoch() == 1
        node_of_1 = cluster.json("/brokers/ids/1")
        assert {k: node_of_1[k] for k in ("version", "host", "port", "jmx_port")} == {
            "version": 1,
            "host": cluster.brokers[1].host.address,
            "port": cluster.brokers[1].port,
            "jmx_port": -1,
        }
        assert isinstance(node_of_1["timestamp"], str)
    finally:
        cluster.stop()


@pytest.mark.parametrize("kind", PURE)
def test_02_duplicate_id(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    node = cluster.zk.get("/brokers/ids/1")[0]
    twin = cluster.extra_broker(kind, 1, "twin")
    try:
        twin.spawn()
        assert twin.exit_code(60) == 1
    finally:
        twin.kill()
        cluster.hosts.remove(twin.host)
    assert cluster.zk.get("/brokers/ids/1")[0] == node
    cluster.put_records(cluster.new_topic(), 10)


@pytest.mark.parametrize("kind", PURE + MIXED)
@pytest.mark.parametrize("broker_id", [1, 2, 3])
def test_03_restart_within_session(clusters: Clusters, kind: str, broker_id: int) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic()
    with Recorder(cluster, topic) as recorder:
        path = f"/brokers/ids/{broker_id}"
        before = cluster.zk.exists(path).czxid
        cluster.kill(broker_id)
        cluster.brokers[broker_id].start()
        eventually(
            "a new registration",
            lambda: cluster.zk.exists(path) and cluster.zk.exists(path).czxid > before,
        )
        cluster.await_isr(topic, {1, 2, 3})
        recorder.await_more()
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_04_create(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3], [3, 1, 2], [2, 3, 1])
    for partition, replicas in enumerate([[1, 2, 3], [3, 1, 2], [2, 3, 1]]):
        state = cluster.state(topic, partition)
        assert state == (replicas[0], replicas, 0, cluster.controller_epoch(), 0)
        cluster.put_records(topic, 10, partition=partition)
        for broker_id in (1, 2, 3):

            def all_shown(b: int = broker_id, p: int = partition, r: list[int] = replicas) -> bool:
                found = cluster.shown(b, topic, p)
                return (found.error, found.leader, found.replicas, found.isr) == (0, r[0], r, r)

            eventually(f"metadata of {broker_id}", all_shown)
        cluster.await_identical(topic, partition)


@pytest.mark.parametrize("kind", PURE)
def test_05_create_without_the_first(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    cluster.kill(1)
    cluster.await_gone(1)
    topic = cluster.new_topic([1, 3, 2], wait=False)
    state = cluster.await_leader(topic, 3)
    assert (state.isr, state.leader_epoch, state.version) == ([3, 2], 0, 0)
    cluster.put_records(topic, 10)
    cluster.brokers[1].start()
    cluster.await_isr(topic, {1, 2, 3})
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
def test_06_create_with_all_down(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    cluster.kill(3)
    cluster.await_gone(3)
    topic = cluster.new_topic([3], wait=False)
    # The original first tries to place the default three replicas, and fails on two brokers.
    code = LEADER_NOT_AVAILABLE if kind == "ours" else UNKNOWN
    eventually(f"code {code}", lambda: _topic_error(cluster, 2, topic) == code)
    assert cluster.state(topic) is None
    cluster.brokers[3].start()
    cluster.await_leader(topic, 3)
    cluster.put_records(topic, 10)


def _topic_error(cluster: Cluster, broker_id: int, topic: str) -> int:
    """Of the topic, or of its first partition when the topic itself has none."""
    found = cluster.metadata(broker_id, topic).topics[0]
    return found.error or (found.partitions[0].error if found.partitions else 0)


@pytest.mark.parametrize("kind", PURE)
def test_07_two_create_at_once(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    for attempt in range(5):
        topic = f"twice-{attempt}"
        codes: list[int] = []

        def ask(broker_id: int, name: str = topic, found: list[int] = codes) -> None:
            found.append(_topic_error(cluster, broker_id, name))

        threads = [threading.Thread(target=ask, args=(each,)) for each in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert LEADER_NOT_AVAILABLE in codes
        assert set(codes) <= {0, LEADER_NOT_AVAILABLE}
        first = cluster.assignment(topic)
        assert first is not None
        assert sorted(first["0"]) == [1, 2, 3]
        for broker_id in (1, 2, 3):
            eventually("it is there", lambda b=broker_id, t=topic: _topic_error(cluster, b, t) == 0)
        assert cluster.assignment(topic) == first
        assert cluster.shown(1, topic).replicas == first["0"]


@pytest.mark.parametrize("kind", PURE)
def test_23_only_replica_returns(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([3])
    cluster.put_records(topic, 100)
    records = cluster.read(topic)
    cluster.terminate(3)
    cluster.await_state(topic, lambda s: s.leader == -1)
    eventually("code 5", lambda: _topic_error(cluster, 1, topic) == LEADER_NOT_AVAILABLE)
    cluster.brokers[3].start()
    cluster.await_leader(topic, 3)
    assert cluster.read(topic) == records


@pytest.mark.parametrize("kind", PURE)
def test_42_more_partitions(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2], [2, 3], [3, 1])
    before = [cluster.state(topic, number) for number in range(3)]
    node = cluster.json(f"/brokers/topics/{topic}")
    node["partitions"] |= {"3": [1, 3], "4": [2, 1], "5": [3, 2]}
    cluster.zk.set(f"/brokers/topics/{topic}", json.dumps(node).encode())
    for number, leader in ((3, 1), (4, 2), (5, 3)):
        cluster.await_leader(topic, leader, number)
        cluster.put_records(topic, 10, partition=number)
        cluster.await_identical(topic, number)
    assert [cluster.state(topic, number) for number in range(3)] == before


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_43_delete_and_recreate(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3], [2, 3, 1])
    for round_ in range(2):
        cluster.put_records(topic, 100)
        cluster.put_records(topic, 100, partition=1)
        _delete(cluster, topic)
        _await_deleted(cluster, topic)
        eventually("no directory left", lambda: not _directories(cluster, topic))
        if round_ == 0:
            cluster.new_topic([3, 2, 1], [1, 2, 3], name=topic)
            assert cluster.produce(topic, [b"first"]) == (0, 0)
            cluster.await_identical(topic)


def _delete(cluster: Cluster, topic: str) -> None:
    cluster.zk.create(f"/admin/delete_topics/{topic}", b"", makepath=True)


def _await_deleted(cluster: Cluster, topic: str) -> None:
    for path in (f"/admin/delete_topics/{topic}", f"/brokers/topics/{topic}"):
        cluster.await_no_node(path)
    cluster.await_no_node(f"/config/topics/{topic}")


def _directories(cluster: Cluster, topic: str) -> list[Path]:
    """Of the topic's partitions. The original may leave a last checkpoint entry behind."""
    return [path for each in cluster.brokers.values() for path in each.data.glob(f"{topic}-*")]


@pytest.mark.parametrize("kind", PURE)
def test_44_delete_with_a_replica_down(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3])
    cluster.put_records(topic, 10)
    cluster.kill(3)
    cluster.await_gone(3)
    _delete(cluster, topic)
    # When a later topic exists, the controller has done its immediate work for the earlier one.
    cluster.new_topic([1, 2])
    assert cluster.zk.exists(f"/admin/delete_topics/{topic}")
    assert cluster.zk.exists(f"/brokers/topics/{topic}")
    cluster.brokers[3].start()
    _await_deleted(cluster, topic)
    eventually("no directory left", lambda: not _directories(cluster, topic))


@pytest.mark.parametrize("kind", PURE)
def test_45_delete_during_reassignment(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props={"zookeeper.session.timeout.ms": 20000})
    topic = cluster.new_topic([1, 2])
    cluster.put_records(topic, 10)
    cluster.pause(3)
    cluster.reassign(topic, [1, 3])
    eventually("the union", lambda: set((cluster.assignment(topic) or {})["0"]) == {1, 2, 3})
    _delete(cluster, topic)
    if kind == "original":  # it marks the topic before the topic is on the list: no effect
        cluster.resume(3)
        _await_deleted(cluster, topic)
        assert cluster.zk.exists("/admin/reassign_partitions")
        clusters.discard()
        return
    cluster.put_records(topic, 10)
    assert cluster.zk.exists(f"/admin/delete_topics/{topic}")
    cluster.resume(3)
    cluster.await_no_node("/admin/reassign_partitions")
    _await_deleted(cluster, topic)
    eventually("no directory left", lambda: not _directories(cluster, topic))


@pytest.mark.parametrize("kind", PURE)
def test_45_controller_dies_during_deletion(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3])
    cluster.put_records(topic, 10)
    cluster.pause(3)
    _delete(cluster, topic)
    eventually("broker 1 deletes", lambda: not cluster.brokers[1].segments(topic, 0))
    cluster.kill(2)
    cluster.resume(3)
    eventually("a new controller", lambda: cluster.controller() in (1, 3))
    _await_deleted(cluster, topic)
    eventually("no directory left", lambda: not _directories(cluster, topic))


@pytest.mark.parametrize("kind", PURE)
def test_46_delete_an_unknown_topic(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    _delete(cluster, "never-seen")
    cluster.await_no_node("/admin/delete_topics/never-seen")


@pytest.mark.parametrize("kind", PURE)
def test_46_deletion_switched_off(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props=KEEP_TOPICS)
    topic = cluster.new_topic([1, 3])
    _delete(cluster, topic)
    cluster.put_records(topic, 10)
    assert cluster.shown(1, topic).error == 0
    cluster.kill(2)
    eventually("a new controller", lambda: cluster.controller() in (1, 3))
    cluster.new_topic([3, 1])
    assert cluster.zk.exists(f"/admin/delete_topics/{topic}")
    if kind == "original":  # KAFKA-3175: a new controller takes the node seriously
        eventually("it vanishes", lambda: not cluster.metadata(1, topic).topics[0].partitions)
        clusters.discard()
        return
    assert cluster.shown(1, topic).error == 0
    cluster.put_records(topic, 10)


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_47_altered_config(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3], [2, 3, 1], [3, 1, 2])
    for partition in range(3):
        assert cluster.produce(topic, [b"x" * 500], partition=partition)[0] == 0
    cluster.alter_config(topic, {"max.message.bytes": 100})
    for partition in range(3):
        eventually(
            f"broker {partition + 1} applies it",
            lambda p=partition: (
                cluster.produce(topic, [b"x" * 500], partition=p)[0] == MESSAGE_TOO_LARGE
            ),
        )
    cluster.alter_config(topic, {})
    for partition in range(3):
        eventually(
            f"broker {partition + 1} takes it back",
            lambda p=partition: cluster.produce(topic, [b"x" * 500], partition=p)[0] == 0,
        )
