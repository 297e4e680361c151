"""Scenarios 38 to 41: replicas that move to other brokers."""

from __future__ import annotations

import pytest

from integration.cluster.cluster import Cluster, eventually
from integration.cluster.conftest import MIXED, PURE, Clusters
from integration.cluster.recorder import Recorder
from integration.cluster.sessions import expire

REASSIGN = "/admin/reassign_partitions"
# Frozen brokers keep their sessions.
LONG_SESSION = {"zookeeper.session.timeout.ms": 30000}


def _assigned(cluster: Cluster, topic: str) -> list[int]:
    return (cluster.assignment(topic) or {})["0"]


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_38_move_to_new_brokers(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, brokers=6)
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        recorder.await_more(200)
        cluster.reassign(topic, [4, 5, 6])
        cluster.await_no_node(REASSIGN)
        assert _assigned(cluster, topic) == [4, 5, 6]
        cluster.await_leader(topic, 4)
        cluster.await_isr(topic, {4, 5, 6})
        recorder.await_more()
        for old in (1, 2, 3):
            directory = cluster.brokers[old].data / f"{topic}-0"
            eventually(f"{directory} gone", lambda d=directory: not d.exists())
        recorder.verify()
    cluster.await_identical(topic)
    for broker_id in cluster.brokers:
        eventually(
            f"metadata of {broker_id}",
            lambda b=broker_id: cluster.shown(b, topic).replicas == [4, 5, 6],
        )


@pytest.mark.parametrize("kind", PURE)
def test_39_impossible_reassignments(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3])
    before = cluster.state(topic)
    for replicas in ([1, 9], [1, 3]):
        cluster.reassign(topic, replicas)
        cluster.await_no_node(REASSIGN)
        assert _assigned(cluster, topic) == [1, 3]
    assert cluster.state(topic) == before


@pytest.mark.parametrize("kind", PURE)
def test_40_controller_dies_midway(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, brokers=4, props=LONG_SESSION)
    topic = cluster.new_topic([1, 3])
    with Recorder(cluster, topic) as recorder:
        cluster.pause(4)  # the copy cannot be made yet
        cluster.reassign(topic, [3, 4])
        eventually("the union", lambda: set(_assigned(cluster, topic)) == {1, 3, 4})
        recorder.await_more()
        session = cluster.zk.exists("/controller").ephemeralOwner
        cluster.kill(2)
        expire(cluster.connect, session)  # else broker 4 would be given up at the same time
        eventually("a new controller", lambda: cluster.controller() in (1, 3))
        cluster.resume(4)
        cluster.await_no_node(REASSIGN)
        assert _assigned(cluster, topic) == [3, 4]
        cluster.await_leader(topic, 3)
        cluster.await_isr(topic, {3, 4})
        recorder.await_more()
        recorder.verify()
    cluster.await_identical(topic)
    directory = cluster.brokers[1].data / f"{topic}-0"
    eventually(f"{directory} gone", lambda: not directory.exists())


@pytest.mark.parametrize("kind", PURE)
def test_41_new_replica_dies_midway(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, brokers=4)
    topic = cluster.new_topic([1, 3])
    with Recorder(cluster, topic) as recorder:
        cluster.pause(4)
        cluster.reassign(topic, [3, 4])
        eventually("the union", lambda: set(_assigned(cluster, topic)) == {1, 3, 4})
        cluster.kill(4)
        cluster.await_gone(4)
        recorder.await_more()
        assert cluster.zk.exists(REASSIGN)
        cluster.brokers[4].start()
        cluster.await_no_node(REASSIGN)
        assert _assigned(cluster, topic) == [3, 4]
        cluster.await_isr(topic, {3, 4})
        recorder.await_more()
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", ["ours", MIXED[0]])
def test_a_broker_that_was_away_deletes_what_it_left(clusters: Clusters, kind: str) -> None:
    """Of either kind, on the word of a controller of ours."""
    cluster = clusters.get(kind)
    topic = cluster.new_topic([3, 1])
    cluster.put_records(topic, 50)
    directory = cluster.brokers[1].data / f"{topic}-0"
    cluster.kill(1)
    cluster.await_gone(1)
    cluster.reassign(topic, [3, 2])
    cluster.await_no_node(REASSIGN)
    assert directory.exists()
    cluster.brokers[1].start()
    eventually(f"{directory} gone", lambda: not directory.exists())
    cluster.await_no_node(f"/admin/delete_replicas/{topic}-0-1")
    cluster.await_identical(topic)
    assert len(cluster.read(topic)) == 50
