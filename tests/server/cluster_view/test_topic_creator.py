"""Topics made on demand: what is allowed, with which settings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from kafka08.errors import AdminOperationError, InvalidTopicError
from tests.server.support import ME, PEER, THIRD, Rig
from zk import znodes
from zk.errors import ZkConnectionError
from zk.locations import Location


def assignment(rig: Rig, topic: str) -> dict[int, tuple[int, ...]]:
    return znodes.decode_topic("", rig.zookeeper.nodes[znodes.topic_path(topic)].data)


def test_the_brokers_defaults(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(num_partitions=3, default_replication_factor=2)
    rig.register(ME, PEER)
    assert rig.creator.create_on_demand("t")
    assert sorted(assignment(rig, "t")) == [0, 1, 2]
    assert all(len(replicas) == 2 for replicas in assignment(rig, "t").values())


@pytest.mark.parametrize("topic", ["t", OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
def test_replicas_are_in_different_units(topic: str, make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(
        num_partitions=12,
        default_replication_factor=2,
        offsets_topic_replication_factor=2,
        transaction_state_log_replication_factor=2,
        later=True,
    )
    for broker_id in (ME, PEER, THIRD):
        registration = znodes.BrokerRegistration(
            "h",
            9090 + broker_id,
            formats=2,
            location=Location(unit="u" if broker_id != THIRD else None),
        )
        rig.zookeeper.put(znodes.broker_path(broker_id), znodes.encode_broker(registration))
    rig.rooms[1].registrations.start()
    assert rig.creator.create_on_demand(topic)
    assert len(assignment(rig, topic)) >= 4
    assert all(THIRD in replicas for replicas in assignment(rig, topic).values())


def test_existing_already_is_success(rig: Rig) -> None:
    rig.register(ME)
    assert rig.creator.create_on_demand("t")
    writes = len(rig.zookeeper.writes)
    assert rig.creator.create_on_demand("t")
    assert len(rig.zookeeper.writes) == writes


def test_existing_already_is_success_with_too_few_brokers_alive(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(default_replication_factor=2)
    rig.register(ME, PEER)
    assert rig.creator.create_on_demand("t")
    rig.zookeeper.nodes.pop(znodes.broker_path(PEER))
    assert rig.creator.create_on_demand("t")
    with pytest.raises(AdminOperationError):
        rig.creator.create_on_demand("u")


def test_not_allowed(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(auto_create_topics_enable="false")
    rig.register(ME)
    assert not rig.creator.create_on_demand("t")
    assert not rig.creator.create_on_demand("../t")  # nobody looks at the name then
    assert rig.zookeeper.children(znodes.BROKER_TOPICS) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "é"])
def test_names(rig: Rig, name: str) -> None:
    rig.register(ME)
    before = set(rig.zookeeper.nodes)
    with pytest.raises(InvalidTopicError):
        rig.creator.create_on_demand(name)
    assert set(rig.zookeeper.nodes) == before


@pytest.mark.parametrize(("alive", "replicas"), [([], None), ([ME], 1), ([ME, PEER, THIRD, 4], 3)])
def test_the_offsets_topic_has_no_more_replicas_than_brokers(
    rig: Rig, alive: list[int], replicas: int | None
) -> None:
    rig.register(*alive)
    if replicas is None:
        with pytest.raises(AdminOperationError):
            rig.creator.create_on_demand(OFFSETS_TOPIC)
        return
    assert rig.creator.create_on_demand(OFFSETS_TOPIC)
    found = assignment(rig, OFFSETS_TOPIC)
    assert len(found) == 4
    assert {len(each) for each in found.values()} == {replicas}


def test_the_offsets_topics_own_settings(make_rig: Callable[..., Rig]) -> None:
    """0.8.2.2 reads offsets.topic.segment.bytes and does not use it."""
    rig = make_rig(offsets_topic_num_partitions=7, offsets_topic_segment_bytes=1048576)
    rig.register(ME)
    rig.creator.create_on_demand(OFFSETS_TOPIC)
    assert len(assignment(rig, OFFSETS_TOPIC)) == 7
    path = znodes.topic_config_path(OFFSETS_TOPIC)
    assert znodes.decode_topic_config(path, rig.zookeeper.nodes[path].data) == {
        "segment.bytes": "1048576",
        "cleanup.policy": "compact",
    }


def test_zookeeper_away(rig: Rig) -> None:
    rig.zk.down = True
    for topic in ("t", OFFSETS_TOPIC):
        with pytest.raises(ZkConnectionError):
            rig.creator.create_on_demand(topic)


def test_a_partition_that_may_be_there(rig: Rig) -> None:
    rig.register(ME)
    rig.creator.create_on_demand("t")
    assert rig.creator.may_have(TopicPartition("t", 0))
    assert not rig.creator.may_have(TopicPartition("t", 9))
    assert not rig.creator.may_have(TopicPartition("u", 0))
    rig.zookeeper.nodes[znodes.topic_path("t")] = rig.zookeeper.nodes[
        znodes.topic_path("t")
    ]._replace(data=b"?")
    assert rig.creator.may_have(TopicPartition("t", 9))
    rig.zk.down = True
    assert rig.creator.may_have(TopicPartition("u", 0))
