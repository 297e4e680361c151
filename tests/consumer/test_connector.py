"""High-level consumers: registrations, topics, and who has which partition."""

from __future__ import annotations

import json

import pytest

from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import generate_consumer_id
from kafka08.consumer.errors import (
    ConsumerRebalanceFailedError,
    MessageStreamsExistError,
)
from kafka08.consumer.filters import Blacklist, Whitelist
from kafka08.errors import ConfigError
from tests.consumer.group_world import ConnectorMember, GroupWorld, settle


def test_generated_ids() -> None:
    config = ConsumerConfig(group_id="g", zookeeper_connect="z")
    made = generate_consumer_id(config, 1440000000000)
    assert made.startswith("g_") and "-1440000000000-" in made
    assert len(made.rpartition("-")[2]) <= 8
    fixed = ConsumerConfig(group_id="g", zookeeper_connect="z", consumer_id="x")
    assert generate_consumer_id(fixed, 0) == "g_x"


def test_registration_is_what_the_original_writes(world: GroupWorld) -> None:
    ConnectorMember(world).join({"t": 2})
    registration = world.ensemble.text("/consumers/g/ids/g_c")
    assert registration == (
        '{"version":1,"subscription":{"t":2},"pattern":"static","timestamp":"1000000"}'
    )
    ConnectorMember(world, "f").join(Whitelist('"t, u"'))
    registration = json.loads(world.ensemble.text("/consumers/g/ids/g_f"))
    assert registration["subscription"] == {"t|u": 1}
    assert registration["pattern"] == "white_list"


@pytest.mark.scenario("client-1")
def test_one_member_owns_all(world: GroupWorld) -> None:
    member = ConnectorMember(world).join()
    assert world.owners() == {0: "g_c-0", 1: "g_c-0"}
    world.cluster.append("t", 0, b"a")
    world.cluster.append("t", 1, b"b")
    assert member.read() == [("t", 0, 0), ("t", 1, 0)]


@pytest.mark.scenario("client-2")
def test_second_member_takes_its_share_from_the_commit_on(world: GroupWorld) -> None:
    first = ConnectorMember(world, "c1").join()
    world.cluster.append("t", 1, b"a", b"b")
    assert len(first.read()) == 2
    second = ConnectorMember(world, "c2")
    # The first member learns of the second while that one waits for its partitions.
    world.runtime.on_sleep = lambda seconds: first.handle_events() if seconds == 2.0 else None
    second.join()
    world.runtime.on_sleep = None
    settle(first, second)
    assert world.owners() == {0: "g_c1-0", 1: "g_c2-0"}
    assert world.offset("t", 1) == "2"
    world.cluster.append("t", 1, b"c")
    world.cluster.append("t", 0, b"x")
    assert first.read() == [("t", 0, 0)]
    assert second.read() == [("t", 1, 2)]


@pytest.mark.scenario("client-6")
def test_surplus_streams_are_idle(world: GroupWorld) -> None:
    ConnectorMember(world).join({"t": 5})
    assert world.owners() == {0: "g_c-0", 1: "g_c-1"}


@pytest.mark.scenario("client-7")
def test_member_that_leaves_is_replaced(world: GroupWorld) -> None:
    first, second = ConnectorMember(world, "c1"), ConnectorMember(world, "c2")
    first.join()
    world.runtime.on_sleep = lambda seconds: first.handle_events() if seconds == 2.0 else None
    second.join()
    world.runtime.on_sleep = None
    second.connector.close()
    assert "g_c2" not in world.ensemble.below("/consumers/g/ids")
    first.handle_events()
    assert world.owners() == {0: "g_c1-0", 1: "g_c1-0"}


def test_events_that_change_nothing_cause_no_rebalance(world: GroupWorld) -> None:
    member = ConnectorMember(world).join()
    created: list[str] = []
    member.zk.before = lambda call, path: created.append(path) if call == "create" else None
    member.zk.reconnect()
    member.handle_events()
    assert created == []


@pytest.mark.scenario("client-17")
def test_streams_are_made_once(world: GroupWorld) -> None:
    member = ConnectorMember(world).join()
    with pytest.raises(MessageStreamsExistError):
        member.join()
    with pytest.raises(MessageStreamsExistError):
        member.join(Whitelist("t"))


def test_less_than_one_stream_is_refused(world: GroupWorld) -> None:
    with pytest.raises(ConfigError):
        ConnectorMember(world).join({"t": 0})
    with pytest.raises(ConfigError):
        ConnectorMember(world).connector.create_message_streams_by_filter(Whitelist("t"), 0)


def test_no_subscription_is_a_legal_member(world: GroupWorld) -> None:
    assert ConnectorMember(world).connector.create_message_streams({}) == {}
    assert world.owners() == {}


def test_brokers_that_are_none_are_passed_over(world: GroupWorld) -> None:
    world.ensemble.put("/brokers/ids/1", b"{")
    world.ensemble.put("/brokers/ids/x", b"{}")
    world.cluster.append("t", 0, b"a")
    assert ConnectorMember(world).join().read() == [("t", 0, 0)]


@pytest.mark.parametrize(
    ("subscription", "pattern", "reason"),
    [
        ({"t": 2**31 - 1}, "static", "2147483647 streams are more than the 100000"),
        ({".*": 2**31 - 1}, "white_list", "2147483647 streams are more than the 100000"),
        ({r"(t)\1": 1}, "white_list", "is an invalid regex"),
    ],
)
def test_a_foreign_registration_that_would_take_everything(
    world: GroupWorld, subscription: dict[str, int], pattern: str, reason: str
) -> None:
    registration = {"version": 1, "subscription": subscription, "pattern": pattern}
    world.ensemble.put("/consumers/g/ids/other", json.dumps(registration).encode())
    with pytest.raises(ConsumerRebalanceFailedError, match=f"/ids/other: .*{reason}"):
        ConnectorMember(world, rebalance_max_retries=1).join()


def test_a_foreign_filter_that_backtracks_is_evaluated(world: GroupWorld) -> None:
    world.topic("t" * 100, 1)
    registration = {"version": 1, "subscription": {"(t+)+x": 1}, "pattern": "white_list"}
    world.ensemble.put("/consumers/g/ids/other", json.dumps(registration).encode())
    ConnectorMember(world).join()
    assert world.owners() == {0: "g_c-0", 1: "g_c-0"}


@pytest.mark.scenario("client-10")
def test_malformed_foreign_registration_fails_clearly(world: GroupWorld) -> None:
    bad = b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":1440000000000}'
    world.ensemble.put("/consumers/g/ids/g_bad", bad)
    member = ConnectorMember(world)
    with pytest.raises(ConsumerRebalanceFailedError, match="/consumers/g/ids/g_bad") as found:
        member.join()
    assert "stop the consumer that wrote it, or delete the node" in str(found.value)
    member.connector.close()
    world.ensemble.remove("/consumers/g/ids/g_bad")
    ConnectorMember(world).join()
    assert len(world.owners()) == 2


def test_close_says_whether_zookeeper_heard_of_it(world: GroupWorld) -> None:
    assert ConnectorMember(world, "a").join().connector.close()
    member = ConnectorMember(world, "b").join()
    member.zk.unreachable = True
    assert not member.connector.close(1.5)
    assert member.zk.patience_s == 1.5


@pytest.mark.scenario("client-11")
def test_partitions_added_and_topics_created_late(world: GroupWorld) -> None:
    member = ConnectorMember(world).join({"t": 1, "late": 1})
    assert world.owners("late") == {}
    world.topic("late", 1)
    member.handle_events()
    assert world.owners("late") == {0: "g_c-0"}
    world.topic("t", 4)
    member.handle_events()
    assert len(world.owners()) == 4


@pytest.mark.scenario("client-12")
def test_filter_takes_new_topics_without_registering_anew(world: GroupWorld) -> None:
    member = ConnectorMember(world).join(Whitelist("t.*"))
    before = world.ensemble.text("/consumers/g/ids/g_c")
    world.runtime.clock.now_ms += 1
    world.topic("t2", 1)
    world.topic("u", 1)
    member.handle_events()
    assert world.owners("t2") == {0: "g_c-0"}
    assert world.owners("u") == {}
    assert world.ensemble.text("/consumers/g/ids/g_c") == before
    world.cluster.append("t2", 0, b"a")
    assert member.read() == [("t2", 0, 0)]


@pytest.mark.scenario("client-13")
def test_blacklist_takes_the_rest_but_nothing_internal(world: GroupWorld) -> None:
    world.topic("u", 1)
    world.topic("__consumer_offsets", 1)
    ConnectorMember(world).join(Blacklist("t"))
    assert world.ensemble.below("/consumers/g/owners") == ["u"]


def test_internal_topic_may_be_named(world: GroupWorld) -> None:
    world.topic("__consumer_offsets", 1)
    ConnectorMember(world).join({"__consumer_offsets": 1})
    assert world.owners("__consumer_offsets") == {0: "g_c-0"}


@pytest.mark.scenario("client-15")
def test_without_brokers_the_rebalance_comes_with_the_first(world: GroupWorld) -> None:
    world.ensemble.remove("/brokers/ids/0")
    member = ConnectorMember(world).join()
    assert world.owners() == {}
    world.broker_up()
    member.handle_events()
    assert len(world.owners()) == 2


def test_range_between_a_filter_and_a_foreign_static_member(world: GroupWorld) -> None:
    world.topic("t", 8)
    foreign = b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}'
    world.ensemble.put("/consumers/g/ids/g_c2", foreign)
    ConnectorMember(world, "c1").join({"t": 2})
    assert world.owners() == {p: "g_c1-0" if p < 3 else "g_c1-1" for p in range(6)}


def test_decoders_may_be_named(world: GroupWorld) -> None:
    world.cluster.append("t", 0, "größe".encode("ISO-8859-1"))
    member = ConnectorMember(world, serializer_encoding="ISO-8859-1")
    name = "kafka.serializer.StringDecoder"
    [stream] = member.connector.create_message_streams({"t": 1}, value_decoder=name)["t"]
    member.fetch()
    assert next(stream).value == "größe"
