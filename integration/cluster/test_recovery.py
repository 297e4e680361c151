"""Scenarios 28 to 32 and 48: logs and checkpoints that are behind, lost, broken or cut short."""

from __future__ import annotations

import os
import struct
import time

import pytest

from integration.cluster.cluster import Cluster, eventually
from integration.cluster.conftest import MIXED, PURE, Clusters
from integration.cluster.recorder import Recorder

HW_FILE = "replication-offset-checkpoint"
CLEAN = {"unclean.leader.election.enable": "false"}


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_28_checkpoint_lost(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        recorder.await_more(100)
        cluster.kill(3)
        (cluster.brokers[3].data / HW_FILE).unlink(missing_ok=True)
        cluster.brokers[3].start()
        cluster.await_isr(topic, {1, 2, 3})
        recorder.await_more()
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_29_all_killed(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props=CLEAN)
    topic = cluster.new_topic([1, 2, 3], [2, 3, 1], [3, 1, 2])
    with Recorder(cluster, topic, partitions=3) as recorder:
        recorder.await_more(100)
        for broker in cluster.brokers.values():
            os.killpg(broker.pid, 9)
        for broker in cluster.brokers.values():
            broker.kill()
        if kind != "ours":
            # An original that becomes controller while an old registration stands may stop serving.
            cluster.await_ids(())
        for broker in cluster.brokers.values():
            broker.spawn()
        for broker in cluster.brokers.values():
            broker.await_started()
        recorder.await_more()
        for partition in range(3):
            cluster.await_isr(topic, {1, 2, 3}, partition)
        recorder.verify()
    for partition in range(3):
        cluster.await_identical(topic, partition)


@pytest.mark.parametrize("kind", PURE + MIXED)
def test_30_garbage_at_the_tail(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 2, 3])
    with Recorder(cluster, topic) as recorder:
        recorder.await_more(100)
        cluster.kill(3)
        segment = cluster.brokers[3].segments(topic, 0)[-1]
        data = segment.read_bytes()
        # The last bytes torn off, then the start of something that never was a message.
        segment.write_bytes(data[:-7] + os.urandom(200))
        cluster.brokers[3].start()
        cluster.await_isr(topic, {1, 2, 3})
        recorder.verify()
    cluster.await_identical(topic)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PURE)
def test_31_behind_the_leaders_retention(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props={"log.retention.check.interval.ms": 500})
    config = {"segment.bytes": 4000, "retention.bytes": 4000, "file.delete.delay.ms": 100}
    topic = cluster.new_topic([1, 3], config=config)
    cluster.put_records(topic, 50)
    cluster.kill(3)
    cluster.await_isr(topic, {1})
    cluster.put_records(topic, 1000)
    eventually("retention at the leader", lambda: cluster.end(topic, time_=-2) > 100)
    cluster.brokers[3].start()
    cluster.await_isr(topic, {1, 3})
    start = cluster.end(topic, time_=-2)
    eventually(
        "a log from the leader's start",
        lambda: cluster.fetch(topic, start, broker=3, replica=-2).error == 0,
    )
    newest = cluster.brokers[1].segments(topic, 0)[-1]
    other = cluster.brokers[3].data / f"{topic}-0" / newest.name
    eventually("the same newest segment", lambda: other.read_bytes() == newest.read_bytes())


@pytest.mark.parametrize("kind", PURE)
def test_32_new_leader_dies_at_once(clusters: Clusters, kind: str) -> None:
    """Followers' high watermarks trail, the leader dies, the next is gone before anyone fetches.

    The original cuts to the trailing high watermark while still in the isr: acknowledged
    records are gone for good (its loss window).
    """
    props = {**CLEAN, "zookeeper.session.timeout.ms": 9000, "replica.lag.time.max.ms": 60000}
    cluster = clusters.get(kind, controller=3, props=props)
    topic = cluster.new_topic([1, 2, 3])
    cluster.put_records(topic, 10)
    # 1 answers no fetch after this one: the followers have the record but not its high watermark.
    code, offset = cluster.produce(topic, [b"acknowledged"])
    cluster.kill(1)
    assert code == 0
    logs = {each: cluster.brokers[each].log_bytes(topic, 0) for each in (2, 3)}
    assert all(b"acknowledged" in data for data in logs.values())
    # Frozen half a session later, 2 outlives 1 in ZooKeeper and is elected without noticing.
    time.sleep(3.5)
    cluster.pause(2)
    cluster.await_state(topic, lambda s: s.leader == 2)
    eventually("3 is told", lambda: cluster.shown(3, topic).leader == 2)
    cluster.kill(2)
    cluster.await_leader(topic, 3)
    if kind == "original":
        assert b"acknowledged" not in cluster.read(topic)
    else:
        eventually("the record", lambda: b"acknowledged" in cluster.read(topic))
        assert cluster.read(topic)[offset] == b"acknowledged"
    for broker_id in (1, 2):
        cluster.brokers[broker_id].start()
    cluster.await_isr(topic, {1, 2, 3})
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
def test_48_poisoned_partition(clusters: Clusters, kind: str) -> None:
    """The leader's log of one partition goes backwards; no follower can take that."""
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3], [1, 3], [1, 3])
    for partition in range(3):
        cluster.put_records(topic, 10, partition=partition)
        cluster.await_identical(topic, partition)
    cluster.kill(3)
    for partition in range(3):
        cluster.await_isr(topic, {1}, partition)
    for partition in range(3):
        cluster.put_records(topic, 50, partition=partition)
    _spoil(cluster, topic)
    cluster.brokers[3].start()
    if kind == "original":  # one exception ends the fetcher thread, for all partitions
        cluster.brokers[3].wait_for("Error due to")
        return clusters.discard()
    for partition in (1, 2):
        cluster.await_isr(topic, {1, 3}, partition)
        cluster.put_records(topic, 50, partition=partition)
        cluster.await_identical(topic, partition)
    state = cluster.state(topic)
    assert state is not None
    assert state.isr == [1]
    return clusters.discard()


def _spoil(cluster: Cluster, topic: str) -> None:
    """Give the leader's 40th message the offset 3. Offsets are not covered by the checksum."""
    path = cluster.brokers[1].segments(topic, 0)[-1]
    with path.open("r+b") as file:
        data = file.read()
        at = 0
        for _ in range(40):
            (size,) = struct.unpack_from(">i", data, at + 8)
            at += 12 + size
        file.seek(at)
        file.write(struct.pack(">q", 3))
