"""API 3: answers from the cache, and topics that come into being when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08 import admin
from kafka08.common import OFFSETS_TOPIC, Broker
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.requests import decode_response, encode_request, encode_response
from kafka08.protocol.schemas import MetadataRequest, MetadataResponse, RequestHeader
from kafka08.protocol.types import Struct
from kafka08.server.apis.metadata import MetadataApi
from tests.server.support import BROKERS, ME, PEER, THIRD, Rig, partition_state
from zk import znodes
from zk.errors import ZkConnectionError
from zk.locations import Location

ENDPOINTS = [tuple(broker[:3]) for broker in BROKERS]


def ask(rig: Rig, *topics: str) -> dict[str, tuple[int, list[Any]]]:
    """(error, partitions) by topic."""
    _, answers = rig.call(MetadataRequest(list(topics)))
    assert len({topic for _, topic, _ in answers}) == len(answers)
    return {topic: (error, list(map(tuple, partitions))) for error, topic, partitions in answers}


def created(rig: Rig) -> dict[str, dict[int, tuple[int, ...]]]:
    return {
        topic: znodes.decode_topic("", rig.zookeeper.nodes[znodes.topic_path(topic)].data)
        for topic in rig.zookeeper.children(znodes.BROKER_TOPICS)
    }


def test_a_cached_topic(rig: Rig) -> None:
    rig.know(
        partition_state("t", 1, leader=PEER, replicas=[PEER, ME], isr=[PEER]),
        partition_state("t", 0, replicas=[ME, PEER]),
    )
    brokers, topics = rig.call(MetadataRequest(["t"]))
    assert list(map(tuple, brokers)) == ENDPOINTS
    assert topics == [
        (0, "t", [(0, 0, ME, [ME, PEER], [ME, PEER]), (0, 1, PEER, [PEER, ME], [PEER])])
    ]


def test_racks_of_brokers(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(later=True)
    racks = {ME: "r", PEER: None, THIRD: "s"}
    for broker_id, rack in racks.items():
        registration = znodes.BrokerRegistration("h", 9092, formats=2, location=Location(rack))
        rig.zookeeper.put(znodes.broker_path(broker_id), znodes.encode_broker(registration))
    rig.rooms[1].registrations.start()
    rig.know()
    for version in (1, 8):
        answer = rig.call(MetadataRequest([]), sent_in=version)
        assert {each.node_id: each.rack for each in answer.brokers} == racks


def test_all_topics_creates_none(rig: Rig) -> None:
    assert ask(rig) == {}
    rig.know(partition_state("t"), partition_state("u"), partition_state(OFFSETS_TOPIC))
    assert set(ask(rig)) == {"t", "u", OFFSETS_TOPIC}
    assert created(rig) == {}


def test_brokers_are_listed_before_the_first_topic(rig: Rig) -> None:
    rig.know()
    assert list(map(tuple, rig.call(MetadataRequest([])).brokers)) == ENDPOINTS


class TestBeforeTheControllerNamesTheBrokers:
    """librdkafka 2.16 never sends anything again once the list of brokers has been empty."""

    def test_version_0_has_an_empty_list(self, rig: Rig) -> None:
        assert rig.call(MetadataRequest([])) == ([], [])
        assert rig.runtime.slept == []

    @pytest.mark.parametrize("version", [1, 4, 8])
    def test_later_versions_wait(self, make_rig: Callable[..., Rig], version: int) -> None:
        rig = make_rig(later=True)
        rig.runtime.while_waiting.append(lambda: rig.know(partition_state("t")))
        answer = rig.call(MetadataRequest(["t"]), sent_in=version)
        assert [broker[:3] for broker in map(tuple, answer.brokers)] == ENDPOINTS
        assert [topic[:2] for topic in answer.topics] == [(0, "t")]

    def test_not_for_ever(self, make_rig: Callable[..., Rig]) -> None:
        rig = make_rig(later=True)
        with pytest.raises(ConnectionClosed):
            rig.call(MetadataRequest(["t"]), sent_in=1)
        assert rig.runtime.slept == [2.0]

    def test_no_broker_has_the_listener(self, make_rig: Callable[..., Rig]) -> None:
        rig = make_rig(later=True)
        rig.know(brokers=[])
        with pytest.raises(ConnectionClosed):
            rig.call(MetadataRequest(["t"]), sent_in=1)
        assert rig.runtime.slept == []


class TestTopicsThatNoControllerHasNamedYet:
    """librdkafka gives up the messages of a topic that is answered 3."""

    @pytest.fixture
    def rig(self, make_rig: Callable[..., Rig]) -> Rig:
        rig = make_rig(later=True, auto_create_topics_enable="false")
        rig.register(ME)
        rig.know()
        admin.create_topic(rig.zk, "t", 1, 1)  # type: ignore[arg-type]
        return rig

    @staticmethod
    def error(rig: Rig, topic: str, version: int) -> int:
        ((error, *_),) = rig.call(MetadataRequest([topic]), sent_in=version).topics
        assert isinstance(error, int)
        return error

    def test_later_versions_look_into_zookeeper(self, rig: Rig) -> None:
        assert [self.error(rig, "t", version) for version in (0, 1, 8)] == [3, 5, 5]
        assert [self.error(rig, "u", version) for version in (0, 1, 8)] == [3, 3, 3]

    def test_a_topic_that_is_being_deleted(self, rig: Rig) -> None:
        admin.delete_topic(rig.zk, "t")  # type: ignore[arg-type]
        assert self.error(rig, "t", 8) == 3

    @pytest.mark.parametrize("name", ["", "..", "../ids", "t/partitions", "a b"])
    def test_illegal_names(self, rig: Rig, name: str) -> None:
        assert self.error(rig, name, 8) == 3

    def test_without_zookeeper_nothing_is_denied(self, rig: Rig) -> None:
        rig.zk.down = True
        assert self.error(rig, "u", 8) == 5
        rig.zk.connected = False
        rig.zk.before = lambda call, path: pytest.fail(f"{call} {path}")
        assert self.error(rig, "u", 8) == 5

    def test_a_client_that_does_not_want_topics_created(self, make_rig: Callable[..., Rig]) -> None:
        rig = make_rig(later=True)
        rig.register(ME)
        rig.know()
        request = MetadataRequest(["u"], allow_auto_topic_creation=False)
        assert rig.call(request, sent_in=4).topics[0][0] == 3
        assert self.error(rig, "u", 4) == 5  # created
        assert rig.call(request, sent_in=4).topics[0][0] == 5


class TestLibrdkafka:
    """It gives up where what it makes of an answer takes over four times its bytes."""

    @staticmethod
    def frame(rig: Rig, client: str, *topics: str) -> bytes:
        reply = rig.send(b"".join(encode_request(MetadataRequest(list(topics)), 77, client))[4:])
        assert reply is not None
        return reply

    @staticmethod
    def memory(response: MetadataResponse) -> int:
        """The bytes that librdkafka 2.3 to 2.15 needs on 64 bits, in units of eight."""

        def text(characters: str) -> int:
            return -(-(len(characters.encode()) + 1) // 8) * 8

        def ids(some: list[int]) -> int:
            return -(-len(some) // 2) * 8

        brokers = sum(64 + text(broker.host) for broker in response.brokers)
        partitions = [each for topic in response.topics for each in topic.partitions]
        return (
            brokers
            + sum(88 + text(topic.topic) for topic in response.topics)
            + sum(64 + ids(each.replicas) + ids(each.isr) for each in partitions)
        )

    @pytest.mark.parametrize("known", [0, 1, 20])
    @pytest.mark.parametrize("missing", [0, 1, 20])
    @pytest.mark.parametrize("client", ["rdkafka", "rdkafka-billing"])
    def test_has_room(self, rig: Rig, client: str, known: int, missing: int) -> None:
        rig.know(*[partition_state(f"t{number}") for number in range(known)])
        names = [
            f"{kind}{n}" for kind, count in (("t", known), ("m", missing)) for n in range(count)
        ]
        reply = self.frame(rig, client, *names)
        _, response = decode_response(Struct(MetadataResponse), reply[4:])
        assert len(response.topics) == known + missing
        assert self.memory(response) <= 4 * (len(reply) - 4)

    def test_a_host_of_one_character(self, rig: Rig) -> None:
        rig.cache.update([], [Broker(n, "h", 9092) for n in range(100)])
        reply = self.frame(rig, "rdkafka")
        _, response = decode_response(Struct(MetadataResponse), reply[4:])
        assert len(response.brokers) == 100
        assert self.memory(response) <= 4 * (len(reply) - 4)

    @pytest.mark.parametrize("client", ["tests", "", "sarama", "my-rdkafka"])
    def test_others_get_what_the_protocol_says_and_no_more(self, rig: Rig, client: str) -> None:
        rig.know(partition_state("t"))
        reply = self.frame(rig, client, "t", "u")
        _, response = decode_response(Struct(MetadataResponse), reply[4:])
        assert reply == b"".join(encode_response(77, response))


def test_dead_brokers_are_left_out(rig: Rig) -> None:
    rig.know(
        partition_state("t", 0, leader=THIRD, replicas=[THIRD, ME]),
        partition_state("t", 1, leader=ME, replicas=[ME, THIRD]),
        partition_state("t", 2, leader=-1, replicas=[ME, PEER], isr=[]),
        partition_state("t", 3, leader=ME, replicas=[ME, PEER], isr=[ME]),
        brokers=BROKERS[:2],
    )
    assert ask(rig, "t") == {
        "t": (
            0,
            [
                (5, 0, -1, [ME], []),
                (9, 1, ME, [ME], [ME]),
                (5, 2, -1, [ME, PEER], []),
                (0, 3, ME, [ME, PEER], [ME]),
            ],
        )
    }


def test_a_deleted_topic_is_gone(rig: Rig) -> None:
    rig.know(partition_state("t", 0), partition_state("t", 1))
    rig.know(partition_state("t", 0, leader=-2))
    assert [partition[1] for partition in ask(rig, "t")["t"][1]] == [1]
    rig.know(partition_state("t", 1, leader=-2))
    assert ask(rig) == {}


def test_names_are_answered_once(rig: Rig) -> None:
    rig.know(partition_state("t"))
    assert set(ask(rig, "t", "t")) == {"t"}


def test_an_unknown_topic_is_created_and_answered_5(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(num_partitions=2, default_replication_factor=2)
    rig.register(ME, PEER)
    assert ask(rig, "new", "new") == {"new": (5, [])}
    assert {topic: len(replicas) for topic, replicas in created(rig).items()} == {"new": 2}
    assert all(len(set(replicas)) == 2 for replicas in created(rig)["new"].values())
    assert ask(rig, "new") == {"new": (5, [])}  # existing, not yet cached


def test_without_auto_creation_it_is_3(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(auto_create_topics_enable="false")
    rig.register(ME)
    assert ask(rig, "new", "../x") == {"new": (3, []), "../x": (3, [])}
    assert created(rig) == {}


@pytest.mark.parametrize("auto", ["true", "false"])
def test_the_offsets_topic_is_created_in_any_case(make_rig: Callable[..., Rig], auto: str) -> None:
    rig = make_rig(auto_create_topics_enable=auto, offsets_topic_replication_factor=3)
    rig.register(ME, PEER)
    assert ask(rig, OFFSETS_TOPIC) == {OFFSETS_TOPIC: (5, [])}
    assignment = created(rig)[OFFSETS_TOPIC]
    assert len(assignment) == 4
    assert all(len(replicas) == 2 for replicas in assignment.values())
    path = znodes.topic_config_path(OFFSETS_TOPIC)
    config = znodes.decode_topic_config(path, rig.zookeeper.nodes[path].data)
    assert config == {"cleanup.policy": "compact", "segment.bytes": "104857600"}


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "ä", "x" * 256, "\0"])
def test_illegal_names_are_17_and_concern_nobody_else(rig: Rig, name: str) -> None:
    rig.register(ME)
    rig.know(partition_state("t"))
    nodes = set(rig.zookeeper.nodes)
    brokers, _ = rig.call(MetadataRequest([name, "t"]))
    assert len(brokers) == 3
    assert ask(rig, name, "t") == {name: (17, []), "t": (0, [(0, 0, ME, [ME], [ME])])}
    assert set(rig.zookeeper.nodes) == nodes


def test_too_few_brokers_are_minus_1(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(default_replication_factor=2)
    rig.register(ME)
    assert ask(rig, "new") == {"new": (-1, [])}
    assert created(rig) == {}


def test_trouble_with_zookeeper_is_minus_1(rig: Rig) -> None:
    rig.register(ME)
    rig.know(partition_state("t"))
    rig.zk.down = True
    assert ask(rig, "new", "t", OFFSETS_TOPIC) == {
        "new": (-1, []),
        "t": (0, [(0, 0, ME, [ME], [ME])]),
        OFFSETS_TOPIC: (-1, []),
    }


def test_a_topic_that_came_into_the_cache_meanwhile(rig: Rig) -> None:
    rig.register(ME)
    rig.zk.before_multi = lambda: rig.know(partition_state("new"))
    assert ask(rig, "new") == {"new": (0, [(0, 0, ME, [ME], [ME])])}


def test_an_error_of_ours_lists_every_topic(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("as told")

    monkeypatch.setattr(rig.cache, "topic_metadata", broken)
    rig.know(partition_state("t"))
    assert ask(rig, "t", "u", "t") == {"t": (-1, []), "u": (-1, [])}


def test_trouble_in_creation_that_is_not_ours(rig: Rig) -> None:
    rig.zk.fails[znodes.BROKER_IDS] = ValueError("as told")
    assert ask(rig, "new") == {"new": (-1, [])}
    rig.zk.fails[znodes.BROKER_IDS] = ZkConnectionError()
    assert ask(rig, "new") == {"new": (-1, [])}


@pytest.mark.scenario("security-2")
def test_a_leader_that_the_senders_listener_does_not_lead_to(rig: Rig) -> None:
    """All versions name the brokers that can be reached, and code 5 where the leader cannot."""

    class OnlyMe:
        def brokers(self) -> dict[int, Broker]:
            return {ME: Broker(ME, "me", 9093)}

    only_me: Any = OnlyMe()
    api = MetadataApi(rig.runtime, rig.cache, rig.creator, rig.rooms[1].originals, only_me, {}.get)
    rig.know(
        partition_state("t", 0, leader=PEER, replicas=[PEER, ME]),
        partition_state("t", 1, replicas=[ME, PEER]),
    )
    for version in (0, 1, 8):
        answer = api.handle(RequestHeader(3, version, 1, "c"), MetadataRequest(["t"]))
        assert [tuple(broker[:3]) for broker in answer.brokers] == [(ME, "me", 9093)]
        ((_, _, (first, second), *_),) = answer.topics
        assert (first.error, first.leader) == (5, -1)
        assert second.leader == ME
