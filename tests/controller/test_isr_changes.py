"""Isrs that leaders change: every broker's Metadata shows them."""

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.protocol import schemas
from tests.controller.cluster import ControllerCluster
from zk import znodes

T0, T1 = (TopicPartition("t", partition) for partition in range(2))


def led_by_2() -> ControllerCluster:
    cluster = ControllerCluster()
    cluster.start(1, 2, 3)
    cluster.create_topic("t", [2, 3, 1], [2, 1])
    cluster.forget_requests()
    return cluster


def shown(cluster: ControllerCluster, broker_id: int, partition: TopicPartition) -> list[int]:
    topic = cluster.metadata[broker_id].topic_metadata(partition.topic)
    return topic.partitions[partition.partition].isr


def notices(cluster: ControllerCluster) -> list[str]:
    return cluster.admin.children(znodes.ISR_CHANGES)


def test_every_broker_hears_of_an_announced_change_and_of_nothing_else() -> None:
    cluster = led_by_2()
    cluster.write_isr(T0, 2, 1)
    cluster.announce_isr(2, T0)
    for broker_id in (1, 2, 3):
        assert shown(cluster, broker_id, T0) == [2, 1]
        (update,) = cluster.took(broker_id, schemas.UpdateMetadataRequest)
        assert [(p.topic, p.partition) for p in update.partitions] == [T0]
        assert cluster.took(broker_id, schemas.LeaderAndIsrRequest) == []
    assert notices(cluster) == []
    cluster.write_isr(T1, 2)
    cluster.announce_isr(2, T1)
    assert shown(cluster, 3, T1) == [2]


def test_added_to_while_it_is_read() -> None:
    cluster = led_by_2()
    session = cluster.sessions[1]

    def add() -> None:
        cluster.write_isr(T1, 2, settle=False)
        (name,) = notices(cluster)
        path = f"{znodes.ISR_CHANGES}/{name}"
        cluster.admin.set(path, znodes.encode_partitions([T0, T1]))

    session.before_multi = add
    cluster.write_isr(T0, 2, 1)
    cluster.announce_isr(2, T0)
    assert (shown(cluster, 3, T0), shown(cluster, 3, T1)) == ([2, 1], [2])
    assert notices(cluster) == []


def test_announced_while_nobody_is_controller() -> None:
    cluster = led_by_2()
    cluster.frozen.update((1, 2, 3))
    cluster.write_isr(T0, 2, 3)
    cluster.announce_isr(2, T0)
    assert len(notices(cluster)) == 1
    cluster.frozen.clear()
    cluster.kill(1)
    assert shown(cluster, 3, T0) == [2, 3]
    assert notices(cluster) == []


def test_announcements_of_nothing_known_do_no_harm() -> None:
    cluster = led_by_2()
    for data in (b"{", znodes.encode_partitions([TopicPartition("x", 7)])):
        path = f"{znodes.ISR_CHANGES}/isr_change_0000000001"
        cluster.admin.create(path, data, makepath=True)
        cluster.settle()
        assert notices(cluster) == []
    cluster.write_isr(T0, 2)
    cluster.announce_isr(2, T0)
    assert shown(cluster, 1, T0) == [2]
