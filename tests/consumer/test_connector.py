from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector, generate_consumer_id
from kafka08.consumer.errors import (
    ConsumerRebalanceFailedError,
    ConsumerTimeoutError,
    MessageStreamsExistError,
    PartitionNotOwnedError,
)
from kafka08.consumer.filters import Blacklist, TopicFilter, Whitelist
from kafka08.consumer.stream import KafkaStream
from kafka08.errors import ConfigError
from kafka08.metrics.clients import Client, ClientCollector
from kafka08.metrics.meters import TICK_SECONDS
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.errors import SessionExpiredError

BROKER = Broker(0, "b0", 9090)


class GroupWorld:
    """One ZooKeeper, one broker, any number of members."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime(now=1000.0)
        self.ensemble = FakeZooKeeper()
        self.cluster = FakeCluster([BROKER])
        self.broker_up()

    def broker_up(self) -> None:
        registration = znodes.BrokerRegistration(BROKER.host, BROKER.port)
        self.ensemble.put("/brokers/ids/0", znodes.encode_broker(registration))

    def topic(self, name: str, partitions: int) -> None:
        for partition in range(partitions):
            tp = TopicPartition(name, partition)
            if tp not in self.cluster.logs:
                self.cluster.leaders[tp] = 0
                self.cluster.logs[tp] = []
        assignment = {partition: [0] for partition in range(partitions)}
        self.ensemble.put(f"/brokers/topics/{name}", znodes.encode_topic(assignment))

    def owners(self, topic: str = "t") -> dict[int, str]:
        path = f"/consumers/g/owners/{topic}"
        return {
            int(name): self.ensemble.text(f"{path}/{name}") for name in self.ensemble.below(path)
        }

    def offset(self, topic: str, partition: int) -> str | None:
        path = f"/consumers/g/offsets/{topic}/{partition}"
        return self.ensemble.text(path) if path in self.ensemble.nodes else None


class ConnectorMember:
    def __init__(self, world: GroupWorld, name: str = "c", **settings: Any) -> None:
        self.world = world
        self.zk = Session(world.ensemble)
        defaults = {"consumer_id": name, "consumer_timeout_ms": 0, "auto_offset_reset": "smallest"}
        config = ConsumerConfig(group_id="g", zookeeper_connect="z", **{**defaults, **settings})
        self.connector = ConsumerConnector(
            config, runtime=world.runtime, zk=self.zk, channel=world.cluster.channel
        )
        self.streams: list[KafkaStream] = []

    def join(self, topics: dict[str, int] | TopicFilter | None = None) -> ConnectorMember:
        if isinstance(topics, TopicFilter):
            self.streams = self.connector.create_message_streams_by_filter(topics)
        else:
            made = self.connector.create_message_streams(topics or {"t": 1})
            self.streams = [stream for streams in made.values() for stream in streams]
        return self

    def handle_events(self) -> None:
        name = f"{self.connector.consumer_id}_watcher_executor"
        assert self.world.runtime.step(name) == 1

    def fetch(self) -> None:
        self.world.runtime.step(f"{self.connector.consumer_id}-leader-finder")
        self.world.runtime.step(f"ConsumerFetcherThread-{self.connector.consumer_id}")
        self.world.runtime.step(f"ConsumerFetcherThread-{self.connector.consumer_id}")

    def read(self, maximum: int = 1000) -> list[tuple[str, int, int]]:
        self.fetch()
        found: list[tuple[str, int, int]] = []
        for stream in self.streams:
            try:
                while len(found) < maximum:
                    message = next(stream)
                    found.append((message.topic, message.partition, message.offset))
            except ConsumerTimeoutError:
                continue
        return found


@pytest.fixture
def world() -> GroupWorld:
    world = GroupWorld()
    world.topic("t", 2)
    return world


def settle(*members: ConnectorMember) -> None:
    for _ in range(4):
        for member in members:
            member.handle_events()


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


def test_close_commits_what_was_processed_and_ends_the_streams(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b", b"c")
    member = ConnectorMember(world).join()
    member.fetch()
    (stream,) = member.streams
    next(stream)
    next(stream)
    member.connector.close()
    member.connector.close()
    # The second message may still be in work.
    assert world.offset("t", 0) == "1"
    assert world.owners() == {}
    assert member.zk.closed
    assert [message.offset for message in stream] == [2]


def test_commit_by_hand_includes_the_message_in_hand(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    member = ConnectorMember(world, auto_commit_enable=False).join()
    assert len(member.read(1)) == 1
    assert member.connector.commit_offsets()
    assert world.offset("t", 0) == "1"
    member.connector.close()
    assert world.offset("t", 0) == "1"


def test_close_does_not_take_back_what_was_committed_by_hand(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    member = ConnectorMember(world).join()
    member.read(1)
    member.connector.commit_offsets()
    member.connector.close()
    assert world.offset("t", 0) == "1"


@pytest.mark.scenario("client-22")
def test_nothing_negative_is_committed(world: GroupWorld) -> None:
    member = ConnectorMember(world).join()
    member.connector.commit_offsets()
    member.connector.close()
    assert world.offset("t", 0) is None


def test_auto_commit_runs_each_interval(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a")
    member = ConnectorMember(world, auto_commit_interval_ms=700).join()
    member.read()
    world.runtime.step("kafka-consumer-autocommit")
    assert world.offset("t", 0) == "1"
    assert world.runtime.slept[-1] == 0.7


def test_rebalance_keeps_the_message_in_hand_uncommitted_but_goes_on(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b", b"c")
    member = ConnectorMember(world).join()
    assert member.read(2) == [("t", 0, 0), ("t", 0, 1)]
    world.topic("t", 3)
    member.handle_events()
    assert world.offset("t", 0) == "1"
    assert world.owners() == {0: "g_c-0", 1: "g_c-0", 2: "g_c-0"}
    assert member.read() == [("t", 0, 2)]
    member.connector.close()
    assert world.offset("t", 0) == "3"


@pytest.mark.scenario("client-26")
def test_rebalance_without_auto_commit_rewinds(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b", b"c")
    member = ConnectorMember(world, auto_commit_enable=False).join()
    member.read(1)
    member.connector.commit_offsets()
    assert member.read() == [("t", 0, 1), ("t", 0, 2)]
    world.topic("t", 3)
    member.handle_events()
    assert member.read() == [("t", 0, 1), ("t", 0, 2)]


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


@pytest.mark.scenario("client-9")
def test_stuck_owner_fails_all_tries_and_leaves_nothing_claimed(world: GroupWorld) -> None:
    world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")
    member = ConnectorMember(world)
    with pytest.raises(ConsumerRebalanceFailedError, match="can't rebalance after 4 retries"):
        member.join()
    assert world.runtime.slept == [2.0] * 4
    assert world.owners() == {1: "g_other-0"}


def test_a_partition_is_claimed_as_soon_as_its_owner_has_released_it(world: GroupWorld) -> None:
    world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")

    def release() -> None:
        world.runtime.clock.advance(0.25)
        world.ensemble.remove("/consumers/g/owners/t/1")

    world.runtime.while_waiting.append(release)
    ConnectorMember(world).join()
    assert world.runtime.slept == []
    assert set(world.owners()) == {0, 1}


def test_a_try_that_a_new_member_has_disturbed_is_repeated_at_once(world: GroupWorld) -> None:
    """It took partition 1 by the view with both members, while ours was without it."""
    world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")
    other = znodes.ConsumerRegistration({"t": 1}, znodes.STATIC, "1")

    def join() -> None:
        world.ensemble.put("/consumers/g/ids/g_other", znodes.encode_consumer(other))

    world.runtime.while_waiting.append(join)
    ConnectorMember(world).join()
    assert world.runtime.slept == []
    assert set(world.owners()) == {0, 1}


def test_owners_that_release_in_turn_do_not_use_up_the_tries(world: GroupWorld) -> None:
    world.topic("t", 12)
    paths = [f"/consumers/g/owners/t/{number}" for number in range(12)]
    for path in paths:
        world.ensemble.put(path, b"g_other-0")
    for path in paths:
        world.runtime.while_waiting.append(lambda path=path: world.ensemble.remove(path))
    ConnectorMember(world).join()
    assert world.runtime.slept == []
    assert len(world.owners()) == 12


def test_owners_that_come_back_again_and_again_end_the_tries(world: GroupWorld) -> None:
    path = "/consumers/g/owners/t/1"
    world.ensemble.put(path, b"g_other-0")

    def come_back() -> None:
        world.ensemble.remove(path)
        world.ensemble.put(path, b"g_other-0")
        world.runtime.while_waiting.append(come_back)

    world.runtime.while_waiting.append(come_back)
    with pytest.raises(ConsumerRebalanceFailedError, match="can't rebalance after 4 retries"):
        ConnectorMember(world).join()


@pytest.mark.scenario("client-9")
def test_worker_recovers_with_the_next_event(world: GroupWorld, caplog: Any) -> None:
    member = ConnectorMember(world).join()
    world.ensemble.put("/consumers/g/owners/u/0", b"g_other-0")
    world.topic("t", 3)
    world.ensemble.put("/consumers/g/owners/t/2", b"g_other-0")
    member.handle_events()
    assert "can't rebalance" in caplog.text
    assert world.owners() == {2: "g_other-0"}
    world.ensemble.remove("/consumers/g/owners/t/2")
    world.topic("t", 3)
    member.handle_events()
    assert len(world.owners()) == 3


def test_worker_tries_again_without_an_event(world: GroupWorld, caplog: Any) -> None:
    member = ConnectorMember(world).join()
    world.ensemble.put("/consumers/g/owners/t/2", b"g_other-0")
    world.topic("t", 3)
    member.handle_events()
    assert "[t,2] is still owned by g_other-0" in caplog.text
    assert "delete /consumers/g/owners/t/2" in caplog.text
    # As if the session of the watch had ended.
    del world.ensemble.nodes["/consumers/g/owners/t/2"]
    member.handle_events()
    assert len(world.owners()) == 3


def test_owner_nodes_of_others_are_left_alone_after_the_session(world: GroupWorld) -> None:
    """The one who slept through its session's end must not take from who took over."""
    member = ConnectorMember(world).join()
    world.ensemble.end_session(member.zk.session_id)
    other = ConnectorMember(world, "b").join()
    owners = world.owners()
    assert set(owners.values()) == {"g_b-0"}
    # Its client has a new session already; the news of that is still on its way.
    member.zk.new_session()
    member.handle_events()
    assert world.owners() == owners
    member.zk.expire()
    settle(member, other)
    assert sorted(world.owners().values()) == ["g_b-0", "g_c-0"]


@pytest.mark.scenario("client-8")
def test_session_lost_during_a_rebalance_ends_it(world: GroupWorld, caplog: Any) -> None:
    member = ConnectorMember(world).join()
    world.ensemble.put("/consumers/g/owners/t/2", b"g_other-0")
    world.topic("t", 3)
    world.runtime.on_sleep = lambda seconds: member.zk.expire() if seconds == 2.0 else None
    member.handle_events()
    assert world.runtime.slept == [2.0]
    world.runtime.on_sleep = None
    del world.ensemble.nodes["/consumers/g/owners/t/2"]
    member.handle_events()
    assert set(world.owners()) == {0, 1, 2}


@pytest.mark.parametrize("stolen", [False, True])
def test_an_owner_node_that_somebody_deletes_is_claimed_again(
    world: GroupWorld, stolen: bool
) -> None:
    member = ConnectorMember(world).join()
    world.ensemble.remove("/consumers/g/owners/t/1")
    if stolen:
        world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")
        del world.ensemble.nodes["/consumers/g/owners/t/1"]
    member.handle_events()
    assert world.owners() == {0: "g_c-0", 1: "g_c-0"}


def test_malformed_offset_is_named_and_its_mending_noticed(world: GroupWorld, caplog: Any) -> None:
    world.ensemble.put("/consumers/g/offsets/t/1", b"seven")
    member = ConnectorMember(world)
    with pytest.raises(ConsumerRebalanceFailedError, match="/consumers/g/offsets/t/1: 'seven'"):
        member.join()
    assert world.owners() == {}
    member.connector.close()
    second = ConnectorMember(world, "d")
    world.ensemble.put("/consumers/g/offsets/t/1", b"0")
    second.join()
    world.ensemble.put("/consumers/g/offsets/t/1", b"")
    world.topic("t", 3)
    second.handle_events()
    assert "can't rebalance" in caplog.text
    world.ensemble.put("/consumers/g/offsets/t/1", b"1")
    second.handle_events()
    assert len(world.owners()) == 3


def test_a_group_that_is_deleted_under_its_members_forms_again(world: GroupWorld) -> None:
    """As kafka-console-consumer --delete-consumer-offsets and the perf test do."""
    member = ConnectorMember(world).join()
    for path in sorted(world.ensemble.nodes, reverse=True):
        if path.startswith("/consumers/g"):
            world.ensemble.remove(path)
    member.handle_events()
    assert world.ensemble.below("/consumers/g/ids") == ["g_c"]
    assert world.owners() == {0: "g_c-0", 1: "g_c-0"}


def test_an_owner_node_an_attempt_left_behind_is_replaced(world: GroupWorld) -> None:
    member = ConnectorMember(world)
    for path in ("/consumers", "/consumers/g", "/consumers/g/owners", "/consumers/g/owners/t"):
        world.ensemble.put(path)
    world.ensemble.add("/consumers/g/owners/t/0", b"g_c-7", member.zk.session_id)
    member.join()
    assert world.owners() == {0: "g_c-0", 1: "g_c-0"}


def test_brokers_that_are_none_are_passed_over(world: GroupWorld) -> None:
    world.ensemble.put("/brokers/ids/1", b"{")
    world.ensemble.put("/brokers/ids/x", b"{}")
    world.cluster.append("t", 0, b"a")
    assert ConnectorMember(world).join().read() == [("t", 0, 0)]


def test_handed_out_is_committed_when_told_so(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    member = ConnectorMember(world, commit_handed_out=True).join()
    member.read(maximum=1)
    member.connector.close()
    assert world.offset("t", 0) == "1"


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


def test_owner_node_of_an_old_session_is_not_taken_for_ours(world: GroupWorld) -> None:
    world.ensemble.add("/consumers", b"", 0)
    for path in ("/consumers/g", "/consumers/g/owners", "/consumers/g/owners/t"):
        world.ensemble.put(path)
    world.ensemble.add("/consumers/g/owners/t/0", b"g_c-0", 99)
    member = ConnectorMember(world)
    world.runtime.on_sleep = lambda seconds: world.ensemble.end_session(99)
    member.join()
    assert world.runtime.slept == [2.0]
    assert len(world.owners()) == 2


@pytest.mark.scenario("client-8")
def test_expired_session_registers_and_claims_anew(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    member = ConnectorMember(world).join()
    assert len(member.read()) == 2
    world.runtime.clock.now_ms += 5000
    member.zk.expire()
    assert world.owners() == {}
    member.handle_events()
    assert len(world.owners()) == 2
    assert '"timestamp":"1005' in world.ensemble.text("/consumers/g/ids/g_c")
    # Nothing was committed on the way: another may have gone further.
    assert world.offset("t", 0) is None
    assert member.read() == [("t", 0, 0), ("t", 0, 1)]


def test_an_expired_session_is_told_without_a_traceback(
    world: GroupWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.cluster.append("t", 0, b"a")
    member = ConnectorMember(world).join()
    member.read()

    def expired(call: str, path: str) -> None:
        raise SessionExpiredError(path=path)

    member.zk.before = expired
    world.runtime.step("kafka-consumer-autocommit")
    member.zk.expire()
    member.handle_events()
    texts = [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
    assert [text.partition(": ")[0] for text in texts] == [
        "The offsets were not committed",
        "error during syncedRebalance",
    ]
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    member.zk.before = None
    member.handle_events()
    assert len(world.owners()) == 2
    member.read()
    member.zk.before = expired
    member.connector.close()
    assert caplog.records[-2].getMessage().startswith("The last offsets were not committed: ")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_close_says_whether_zookeeper_heard_of_it(world: GroupWorld) -> None:
    assert ConnectorMember(world, "a").join().connector.close()
    member = ConnectorMember(world, "b").join()
    member.zk.unreachable = True
    assert not member.connector.close(1.5)
    assert member.zk.patience_s == 1.5


def test_same_id_waits_for_the_other_to_go(world: GroupWorld) -> None:
    other = ConnectorMember(world).join()
    world.runtime.on_sleep = lambda seconds: other.connector.close() if seconds == 6.0 else None
    second = ConnectorMember(world).join({"t": 2})
    assert world.runtime.slept.count(6.0) == 1
    assert world.owners() == {0: "g_c-0", 1: "g_c-1"}
    assert second.zk.session_id != other.zk.session_id


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


def test_stored_offset_is_the_start(world: GroupWorld) -> None:
    world.cluster.append("t", 0, *[b"%d" % n for n in range(5)])
    world.ensemble.put("/consumers/g/offsets/t/0", b"3")
    assert ConnectorMember(world).join().read() == [("t", 0, 3), ("t", 0, 4)]


@pytest.mark.scenario("client-24")
def test_dual_commit_starts_at_the_maximum_and_writes_both(world: GroupWorld) -> None:
    world.cluster.append("t", 0, *[b"%d" % n for n in range(5)])
    world.ensemble.put("/consumers/g/offsets/t/0", b"3")
    world.cluster.committed["g", TopicPartition("t", 0)] = 2
    member = ConnectorMember(world, offsets_storage="kafka").join()
    assert member.read() == [("t", 0, 3), ("t", 0, 4)]
    member.connector.close()
    assert world.offset("t", 0) == "5"
    assert world.cluster.committed["g", TopicPartition("t", 0)] == 5


def refuse_commits(port: int, request: Any) -> Any:
    if not isinstance(request, schemas.OffsetCommitRequest):
        return None
    topics = [
        schemas.OffsetCommitTopicResponse(
            topic.topic,
            [schemas.OffsetCommitPartitionResponse(p.partition, 15) for p in topic.partitions],
        )
        for topic in request.topics
    ]
    return schemas.OffsetCommitResponse(topics)


@pytest.mark.scenario("client-25")
def test_failing_kafka_commit_is_tried_once_and_six_times_at_close(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a")
    member = ConnectorMember(world, offsets_storage="kafka").join()
    member.read()
    world.cluster.script = refuse_commits
    assert not member.connector.commit_offsets()
    assert len(world.cluster.sent(schemas.OffsetCommitRequest)) == 1
    member.connector.close()
    assert len(world.cluster.sent(schemas.OffsetCommitRequest)) == 7
    assert world.offset("t", 0) is None


def test_close_during_a_rebalance_ends_it(world: GroupWorld) -> None:
    world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")
    member = ConnectorMember(world)
    world.runtime.on_sleep = lambda seconds: member.connector.close()
    member.join()
    assert world.runtime.slept == [2.0]
    assert world.owners() == {1: "g_other-0"}


def test_metrics(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"bb", b"ccc")
    member = ConnectorMember(world, offsets_storage="kafka").join()
    numbers = member.connector.metrics()
    assert numbers["OwnedPartitionsCount"] == 2
    assert numbers["RebalanceRateAndTime.Count"] == 1
    assert (numbers["MaxLag"], numbers["ConsumerLag.t.0"]) == (-1, -1)
    member.fetch()
    assert member.connector.metrics()["FetchQueueSize"] == 1
    assert len(member.read(maximum=2)) == 2
    assert member.connector.commit_offsets()
    numbers = member.connector.metrics()
    assert numbers["MessagesPerSec.Count"] == 2
    assert numbers["BytesPerSec.Count"] == 3 * 26 + 6
    assert numbers["ConsumerLag.t.0"] == numbers["MaxLag"] == 0
    # Both partitions have a position, the empty one's is 0.
    assert numbers["KafkaCommitsPerSec.Count"] == numbers["ZooKeeperCommitsPerSec.Count"] == 2
    world.cluster.append("t", 0, b"d")
    assert member.connector.commit_offsets()
    numbers = member.connector.metrics()
    assert numbers["KafkaCommitsPerSec.Count"] == 4
    assert numbers["ZooKeeperCommitsPerSec.Count"] == 2


@pytest.mark.scenario("ops-19")
def test_series_for_prometheus(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"bb", b"ccc")
    member = ConnectorMember(world, client_id="me").join()
    assert value_of(member.connector, "kafka_server_fetcherlagmetrics_consumerlag") is None
    member.fetch()
    assert len(member.read(maximum=2)) == 2

    def value(name: str, **labels: str) -> float | None:
        return value_of(member.connector, f"kafka_consumer_{name}", clientId="me", **labels)

    messages = "consumertopicmetrics_messages_total"
    assert value(messages) == value(messages, topic="t") == 2
    bytes_ = "consumertopicmetrics_bytes_total"
    assert value(bytes_) == value(bytes_, topic="t") == 3 * 26 + 6
    assert value("consumerfetchermanager_maxlag") == 0
    world.runtime.clock.advance(TICK_SECONDS)  # rates are those of the last ticks
    rate = value("consumerfetchermanager_minfetchrate")
    assert rate is not None and rate > 0
    owned = "zookeeperconsumerconnector_ownedpartitionscount"
    assert value(owned, groupId="g") == value(owned, groupId="g", topic="t") == 2
    assert value("zookeeperconsumerconnector_rebalancerateandtime_count") == 1
    assert value("zookeeperconsumerconnector_kafkacommits_total") == 0
    fetches = "fetchrequestandresponsemetrics_fetchresponsesize_count"
    count = value(fetches)
    assert count and count == value(fetches, brokerHost="b0", brokerPort="9090")
    lag = "kafka_server_fetcherlagmetrics_consumerlag"
    tags = {"clientId": "me", "topic": "t", "partition": "0"}
    assert value_of(member.connector, lag, **tags) == 0
    requests = "kafka_server_fetcherstats_requests_total"
    assert value_of(member.connector, requests, clientId="me", broker="b0:9090") == count


def value_of(client: Client, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(ClientCollector(client))
    return registry.get_sample_value(name, labels)


def test_decoders_may_be_named(world: GroupWorld) -> None:
    world.cluster.append("t", 0, "größe".encode("ISO-8859-1"))
    member = ConnectorMember(world, serializer_encoding="ISO-8859-1")
    name = "kafka.serializer.StringDecoder"
    [stream] = member.connector.create_message_streams({"t": 1}, value_decoder=name)["t"]
    member.fetch()
    assert next(stream).value == "größe"


def test_a_member_can_go_on_at_other_offsets(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"0", b"1", b"2")
    world.cluster.append("t", 1, b"0", b"1", b"2")
    member = ConnectorMember(world).join()
    assert member.connector.assignment() == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert len(member.read()) == 6
    member.connector.seek({TopicPartition("t", 0): 1})
    assert member.read() == [("t", 0, 1), ("t", 0, 2)]
    assert member.connector.commit_offsets()
    assert (world.offset("t", 0), world.offset("t", 1)) == ("3", "3")
    with pytest.raises(PartitionNotOwnedError):
        member.connector.seek({TopicPartition("t", 9): 1})


def test_chosen_offsets_are_committed_in_place_of_the_positions(world: GroupWorld) -> None:
    member = ConnectorMember(world).join()
    assert member.connector.commit_offsets({TopicPartition("t", 1): 7})
    assert (world.offset("t", 0), world.offset("t", 1)) == (None, "7")
