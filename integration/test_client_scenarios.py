"""Consumer groups among real brokers of both kinds, scenario by scenario."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.cluster.sessions import expire
from integration.group_scene import WAIT_S, Scene, eventually
from integration.harness import Broker, Process, ZooKeeper, properties
from integration.proxy import Proxy
from integration.wire import WireError
from kafka08.consumer.errors import (
    ConsumerRebalanceFailedError,
    ConsumerTimeoutError,
    MessageStreamsExistError,
    StreamFailedError,
)
from kafka08.consumer.filters import Blacklist, Whitelist
from kafka08.errors import MessageSizeTooLargeError
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.protocol import schemas


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


@pytest.fixture
def scene(broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    with Scene(broker, tmp_path) as made:
        yield made


# --- who owns what


@pytest.mark.scenario("client-1")
def test_01_one_member_owns_all(scene: Scene) -> None:
    topic = scene.topic(2)
    scene.member().join({topic: 1})
    assert scene.owners(topic) == {0: "c1-0", 1: "c1-0"}


@pytest.mark.scenario("client-2")
def test_02_a_second_member_joins(scene: Scene) -> None:
    topic = scene.topic(2)
    first = scene.member("c1").join({topic: 1}).collect()
    scene.write(topic, numbers(100), 0)
    scene.write(topic, numbers(100, 100), 1)
    eventually("the first half", lambda: len(first.values) >= 200)
    second = scene.member("c2").join({topic: 1}).collect()
    scene.owned(topic, {0: "c1-0", 1: "c2-0"})
    scene.write(topic, numbers(100, 200), 0)
    scene.write(topic, numbers(100, 300), 1)

    def all_of_it() -> bool:
        return {int(value) for value in first.values + second.values} == set(range(400))

    eventually("every message", all_of_it)
    # At least once: the one message in hand may come to both.
    assert len(first.values + second.values) <= 402


@pytest.mark.scenario("client-3")
@pytest.mark.original
@pytest.mark.parametrize("ours", ["c1", "c2"])
def test_03_range_beside_an_original_member(scene: Scene, ours: str) -> None:
    topic = scene.topic(8)
    if ours == "c1":
        scene.member("c1").join({topic: 2})
        scene.original("c2", topic)
        threads = ["c1-0"] * 3 + ["c1-1"] * 3 + ["c2-0"] * 2
    else:
        scene.original("c1", topic)
        scene.member("c2").join({topic: 2})
        threads = ["c1-0"] * 3 + ["c2-0"] * 3 + ["c2-1"] * 2
    scene.owned(topic, dict(enumerate(threads)))


@pytest.mark.scenario("client-4")
@pytest.mark.original
def test_04_roundrobin_beside_an_original_member(scene: Scene) -> None:
    """The hash of "[topic,10]" is below that of "[topic,0]", whatever the topic, bar overflow."""
    topic = "clicks"
    with contextlib.suppress(WireError):
        if not scene.zk.exists(f"/brokers/topics/{topic}"):
            scene.broker.create_topic(topic, 12)
    strategy = {"partition_assignment_strategy": "roundrobin"}
    scene.member("c1", **strategy).join({topic: 2})
    threads = ["c1-0", "c1-1"]
    dealt = [10, 11, *range(10)]
    scene.owned(topic, {p: threads[at % 2] for at, p in enumerate(dealt)})
    scene.original("c2", topic, **strategy)
    threads.append("c2-0")
    scene.owned(topic, {p: threads[at % 3] for at, p in enumerate(dealt)})


@pytest.mark.scenario("client-5")
def test_05_twelve_streams(scene: Scene) -> None:
    topic = scene.topic(12)
    scene.member().join({topic: 12})
    owners = scene.owners(topic)
    assert (owners[1], owners[2], owners[3]) == ("c1-1", "c1-10", "c1-11")
    assert len(set(owners.values())) == 12


@pytest.mark.scenario("client-6")
def test_06_more_streams_than_partitions(scene: Scene) -> None:
    topic = scene.topic(2)
    member = scene.member().join({topic: 3})
    assert scene.owners(topic) == {0: "c1-0", 1: "c1-1"}
    scene.write(topic, numbers(1))
    assert [message.value for message in member.take(1)] == [b"0"]
    with pytest.raises(ConsumerTimeoutError):
        next(member.streams[2])


@pytest.mark.scenario("client-7")
def test_07_a_member_is_killed(scene: Scene, launch: Callable[[Process], None]) -> None:
    topic = scene.topic(2)
    config = scene.directory / "killed.properties"
    short = {"zookeeper_session_timeout_ms": 1500, "auto_commit_interval_ms": 100}
    settings = scene.settings("c1", consumer_timeout_ms=-1, **short)
    config.write_text(properties(settings))
    words = ["integration.group_member", str(config), "static", "1", topic]
    process = Process("member", [sys.executable, "-u", "-m", *words], scene.directory / "member")
    launch(process)
    process.spawn()
    scene.owned(topic, {0: "c1-0", 1: "c1-0"})
    scene.write(topic, numbers(10))
    eventually("a commit", lambda: scene.offset(topic) is not None and "9" in process.log)
    eventually("the last commit", lambda: scene.offset(topic) in ("9", "10"))
    process.kill()
    committed = int(scene.offset(topic) or 0)
    assert scene.owners(topic) == {0: "c1-0", 1: "c1-0"}, "its nodes outlive it for a while"
    begin = time.monotonic()
    member = scene.member("c2").join({topic: 1})
    scene.owned(topic, {0: "c2-0", 1: "c2-0"})
    assert time.monotonic() - begin > 0.3
    scene.write(topic, numbers(1, 10))
    assert member.take(1)[0].offset == committed


@pytest.mark.scenario("client-7")
def test_07_a_member_leaves(scene: Scene) -> None:
    topic = scene.topic(2)
    session = {"zookeeper_session_timeout_ms": 20000}
    first = scene.member("c1", **session).join({topic: 1})
    second = scene.member("c2", **session).join({topic: 1})
    scene.owned(topic, {0: "c1-0", 1: "c2-0"})
    scene.write(topic, numbers(5))
    assert len(first.take(3)) == 3
    first.close()
    begin = time.monotonic()
    scene.owned(topic, {0: "c2-0", 1: "c2-0"})
    assert time.monotonic() - begin < 10, "it waited for a session to end"
    # The third was handed out, and nobody asked for the fourth.
    assert [message.offset for message in second.take(3)] == [2, 3, 4]


@pytest.mark.scenario("client-8")
def test_08_a_session_expires(scene: Scene) -> None:
    topic = scene.topic(2)
    member = scene.member().join({topic: 1})
    scene.write(topic, numbers(5))
    assert len(member.take(5)) == 5
    before = json.loads(scene.registration("c1"))
    session = scene.zk.exists(f"/consumers/{scene.group}/owners/{topic}/0").ephemeralOwner
    expire(scene.broker.zookeeper, session)

    def replaced() -> bool:
        found = scene.zk.exists(f"/consumers/{scene.group}/owners/{topic}/0")
        return found is not None and found.ephemeralOwner != session

    eventually("new owner nodes", replaced)
    scene.owned(topic, {0: "c1-0", 1: "c1-0"})
    after = json.loads(scene.registration("c1"))
    assert int(after.pop("timestamp")) > int(before.pop("timestamp"))
    assert after == before
    scene.write(topic, numbers(1, 5))
    # Nothing was committed: it begins where its group left off.
    assert [message.offset for message in member.take(6)] == list(range(6))


# --- what others leave in the group


@pytest.mark.scenario("client-9")
def test_09_a_foreign_owner_is_in_the_way(scene: Scene) -> None:
    topic = scene.topic(2)
    stuck = f"/consumers/{scene.group}/owners/{topic}/1"
    scene.zk.create(stuck, b"other-0", makepath=True)
    member = scene.member(rebalance_max_retries=4, rebalance_backoff_ms=100)
    with pytest.raises(ConsumerRebalanceFailedError, match=f"after 4 retries.*delete {stuck}"):
        member.join({topic: 1})
    assert scene.owners(topic) == {1: "other-0"}


@pytest.mark.scenario("client-9")
def test_09_a_foreign_owner_goes_while_we_run(scene: Scene) -> None:
    topic = scene.topic(1)
    member = scene.member(rebalance_max_retries=2, rebalance_backoff_ms=100).join({topic: 1})
    stuck = f"/consumers/{scene.group}/owners/{topic}/1"
    scene.zk.create(stuck, b"other-0", makepath=True)
    scene.grow(topic, 2)
    scene.owned(topic, {1: "other-0"})
    scene.zk.delete(stuck)
    scene.owned(topic, {0: "c1-0", 1: "c1-0"})
    scene.write(topic, numbers(1), 1)
    assert member.take(1)[0].partition == 1


@pytest.mark.scenario("client-10")
@pytest.mark.parametrize(
    "garbage",
    [b"", b"\xff{", b"[]", b"{}", b'{"version":1,"subscription":{"t":1.5},"pattern":"static"}'],
)
def test_10_a_malformed_registration_of_another(scene: Scene, garbage: bytes) -> None:
    topic = scene.topic(1)
    alien = f"/consumers/{scene.group}/ids/alien"
    scene.zk.create(alien, garbage, makepath=True)
    member = scene.member(rebalance_max_retries=2, rebalance_backoff_ms=50)
    with pytest.raises(ConsumerRebalanceFailedError, match=f"{alien}.*delete the node"):
        member.join({topic: 1})
    member.close()
    scene.zk.delete(alien)
    scene.member("c2").join({topic: 1})
    assert scene.owners(topic) == {0: "c2-0"}


@pytest.mark.scenario("client-10")
def test_10_a_malformed_topic_of_another(scene: Scene) -> None:
    path = f"/brokers/topics/t-{scene.group}"
    scene.zk.create(path, b'{"partitions":7}')
    member = scene.member(rebalance_max_retries=2, rebalance_backoff_ms=50)
    with pytest.raises(ConsumerRebalanceFailedError, match=path):
        member.join({f"t-{scene.group}": 1})
    member.close()
    scene.zk.delete(path)
    scene.member("c2").join({scene.topic(1): 1})
    assert scene.owners(f"t-{scene.group}") == {0: "c2-0"}


# --- topics that change


@pytest.mark.scenario("client-11")
def test_11_partitions_added_and_a_topic_created_late(scene: Scene) -> None:
    topic = scene.topic(1)
    late = f"late-{scene.group}"
    member = scene.member().join({topic: 1, late: 1})
    scene.owned(topic, {0: "c1-0"})
    scene.grow(topic, 3)
    scene.owned(topic, dict.fromkeys(range(3), "c1-0"))
    scene.write(topic, numbers(1), 2)
    assert member.take(1)[0].partition == 2
    scene.topic(2, "late")
    scene.owned(late, dict.fromkeys(range(2), "c1-0"))


@pytest.mark.scenario("client-12")
def test_12_a_whitelist_takes_in_a_topic_that_comes(scene: Scene) -> None:
    member = scene.member().join(Whitelist(f"[ab]-{scene.group}"))
    before = scene.registration("c1")
    topic = scene.topic(1, "a")
    scene.topic(1, "c")
    scene.owned(topic, {0: "c1-0"})
    scene.write(topic, numbers(1))
    assert member.take(1)[0].topic == topic
    assert scene.registration("c1") == before
    assert scene.owners(f"c-{scene.group}") == {}


@pytest.mark.scenario("client-13")
def test_13_a_blacklist(scene: Scene) -> None:
    kept, left = scene.topic(1, "kept"), scene.topic(1, "left")
    with scene.broker.wire() as wire:
        eventually("the internal topic", lambda: wire.coordinator_error(scene.group) == 0)
    # The filter matches the topics of this scene, and others that belong to no scene.
    scene.member().join(Blacklist(f"left-.*|(?!kept-{scene.group}).*"))
    owned = scene.zk.get_children(f"/consumers/{scene.group}/owners")
    assert owned == [kept]
    assert scene.owners(left) == {}
    second = scene.member("all", exclude_internal_topics=True).join(Blacklist("left-.*"))
    topics = set(scene.zk.get_children(f"/consumers/{scene.group}/owners"))
    assert kept in topics and "__consumer_offsets" not in topics and left not in topics
    second.close()


@pytest.mark.scenario("client-14")
def test_14_a_filter_of_words_in_quotes(scene: Scene) -> None:
    one, two, longer = scene.topic(1, "a"), scene.topic(1, "b"), scene.topic(1, "aa")
    scene.member().join(Whitelist(f'"{one}, {two}"'))
    registered = json.loads(scene.registration("c1"))
    assert registered["subscription"] == {f"{one}|{two}": 1}
    assert (registered["pattern"], registered["version"]) == ("white_list", 1)
    assert scene.owners(one) == scene.owners(two) == {0: "c1-0"}
    assert scene.owners(longer) == {}


@pytest.mark.scenario("client-15")
def test_15_no_broker_then_one(kind: str, zookeeper: ZooKeeper, tmp_path: Path) -> None:
    broker = Broker(kind, tmp_path / "broker", f"{zookeeper.connect}/{tmp_path.name}-{kind}")
    broker.start()
    try:
        with Scene(broker, tmp_path) as scene:
            topic = scene.topic(2)
            scene.write(topic, numbers(3))
            broker.stop()
            eventually("no broker", lambda: not scene.zk.get_children("/brokers/ids"))
            member = scene.member().join({topic: 1})
            assert scene.owners(topic) == {}
            broker.start()
            scene.owned(topic, {0: "c1-0", 1: "c1-0"})
            assert [message.value for message in member.take(3)] == numbers(3)
    finally:
        broker.kill()


# --- what a stream does


@pytest.mark.scenario("client-16")
def test_16_a_stream_that_waits_in_vain(scene: Scene) -> None:
    topic = scene.topic(1)
    member = scene.member(consumer_timeout_ms=200).join({topic: 1})
    for _ in range(2):
        begin = time.monotonic()
        with pytest.raises(ConsumerTimeoutError):
            next(member.streams[0])
        assert 0.19 < time.monotonic() - begin < 5
    scene.write(topic, numbers(1))
    assert [message.value for message in member.take(1)] == [b"0"]


@pytest.mark.scenario("client-17")
def test_17_streams_are_made_once(scene: Scene) -> None:
    topic = scene.topic(1)
    member = scene.member().join({topic: 1})
    for again in ({topic: 1}, Whitelist("x")):
        with pytest.raises(MessageStreamsExistError):
            member.join(again)


@pytest.mark.scenario("client-18")
def test_18_a_message_above_the_fetch_size(scene: Scene) -> None:
    topic = scene.topic(1)
    scene.write(topic, [b"small", b"x" * 5000])
    member = scene.member(fetch_message_max_bytes=1000, consumer_timeout_ms=WAIT_S * 1000)
    [stream] = member.join({topic: 1}).streams
    assert next(stream).value == b"small"
    with pytest.raises(MessageSizeTooLargeError, match="Increase the fetch size"):
        next(stream)
    with pytest.raises(StreamFailedError):
        next(stream)
    member.close()
    # The offset is that of the large message: a consumer with a larger fetch size can read it.
    assert scene.offset(topic) == "1"


@pytest.mark.scenario("client-19")
def test_19_a_position_inside_a_compressed_set(scene: Scene) -> None:
    topic = scene.topic(1)
    scene.write(topic, numbers(10), packed=True)
    scene.set_offset(topic, 6)
    member = scene.member().join({topic: 1})
    assert [message.offset for message in member.take(4)] == [6, 7, 8, 9]


@pytest.mark.scenario("client-20")
def test_20_a_decoder_that_fails(scene: Scene) -> None:
    topic = scene.topic(1)
    scene.write(topic, [b"1", b"bad", b"3"])
    connector = scene.member(consumer_timeout_ms=WAIT_S * 1000).connector
    [stream] = connector.create_message_streams({topic: 1}, value_decoder=int)[topic]
    assert next(stream).value == 1
    message = next(stream)
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            _ = message.value
    assert next(stream).value == 3
    assert connector.commit_offsets()
    assert scene.offset(topic) == "3"


@pytest.mark.scenario("client-21")
@pytest.mark.parametrize(("reset", "expected"), [("smallest", 0), ("largest", 5)])
@pytest.mark.parametrize("stored", [1000, None])
def test_21_out_of_range(scene: Scene, reset: str, expected: int, stored: int | None) -> None:
    topic = scene.topic(1)
    scene.write(topic, numbers(5))
    if stored is not None:
        scene.set_offset(topic, stored)
    member = scene.member(auto_offset_reset=reset).join({topic: 1})
    if reset == "largest":
        assert member.nothing_follows()
        deadline = time.monotonic() + WAIT_S
        while member.nothing_follows():  # whatever comes after the reset
            scene.write(topic, [b"new"])
            assert time.monotonic() < deadline
        assert member.take(1)[0].offset >= expected
    else:
        assert member.take(1)[0].offset == expected


# --- offsets


@pytest.fixture(scope="module")
def behind_proxy(
    kind: str, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Broker, Proxy]]:
    proxy = Proxy()
    props = {"advertised.port": proxy.port, "offsets.topic.num.partitions": 1}
    chroot = f"{zookeeper.connect}/behind-proxy-{kind}"
    broker = Broker(kind, tmp_path_factory.mktemp(f"proxied-{kind}"), chroot, props=props)
    proxy.target = broker.port
    broker.start()
    yield broker, proxy
    broker.kill()
    proxy.close()


class Refusals:
    """Answers requests of one kind with codes in turn, counts them, then lets them pass."""

    def __init__(self, request: type, answer: Callable[[Any, int], Any], codes: list[int]) -> None:
        self.asked = 0
        self.codes = codes
        self._request = request
        self._answer = answer

    def __call__(self, request: Any) -> Any:
        if not isinstance(request, self._request):
            return None
        self.asked += 1
        return self._answer(request, self.codes.pop(0)) if self.codes else None


def refused_commit(request: Any, code: int) -> Any:
    response = schemas.OffsetCommitPartitionResponse
    topics = [
        schemas.OffsetCommitTopicResponse(
            t.topic, [response(p.partition, code) for p in t.partitions]
        )
        for t in request.topics
    ]
    return schemas.OffsetCommitResponse(topics)


def refused_fetch(request: Any, code: int) -> Any:
    response = schemas.OffsetFetchPartitionResponse
    topics = [
        schemas.OffsetFetchTopicResponse(t.topic, [response(p, -1, "", code) for p in t.partitions])
        for t in request.topics
    ]
    return schemas.OffsetFetchResponse(topics)


def refused_offsets(request: Any, code: int) -> Any:
    response = schemas.OffsetsPartitionResponse
    topics = [
        schemas.OffsetsTopicResponse(
            t.topic, [response(p.partition, code, []) for p in t.partitions]
        )
        for t in request.topics
    ]
    return schemas.OffsetsResponse(topics)


@pytest.fixture
def proxied(behind_proxy: tuple[Broker, Proxy], tmp_path: Path) -> Iterator[tuple[Scene, Proxy]]:
    broker, proxy = behind_proxy
    with Scene(broker, tmp_path) as made:
        yield made, proxy
    proxy.intercept = None


@pytest.mark.scenario("client-22")
@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_22_a_commit_before_the_first_fetch(proxied: tuple[Scene, Proxy], storage: str) -> None:
    scene, proxy = proxied
    topic = scene.topic(1)
    proxy.intercept = Refusals(schemas.OffsetsRequest, refused_offsets, [6] * 1000)
    member = scene.member(offsets_storage=storage).join({topic: 1})
    eventually("a try to find the start", lambda: proxy.intercept.asked > 0)  # type: ignore[union-attr]
    assert member.connector.commit_offsets()
    member.close()
    assert scene.offset(topic) is None
    with scene.broker.wire() as wire:
        assert wire.committed(scene.group, topic, 0)[0] == -1


@pytest.mark.scenario("client-23")
def test_23_a_coordinator_that_moved_and_one_that_loads(proxied: tuple[Scene, Proxy]) -> None:
    scene, proxy = proxied
    topic = scene.topic(1)
    scene.write(topic, numbers(5))
    kept = {"offsets_storage": "kafka", "dual_commit_enabled": False}
    member = scene.member(**kept).join({topic: 1})
    assert len(member.take(3)) == 3
    proxy.intercept = refusals = Refusals(schemas.OffsetCommitRequest, refused_commit, [16])
    assert not member.connector.commit_offsets()
    eventually("a commit", member.connector.commit_offsets)
    assert refusals.asked == 2
    member.close()
    proxy.intercept = refusals = Refusals(schemas.OffsetFetchRequest, refused_fetch, [14, 16, 14])
    member = scene.member("c2", **kept).join({topic: 1})
    assert refusals.asked == 4
    assert member.take(1)[0].offset == 3
    assert scene.offset(topic) is None


@pytest.mark.scenario("client-24")
@pytest.mark.parametrize(
    ("in_zookeeper", "in_kafka", "start"), [(4, 2, 4), (2, 4, 4), (None, 3, 3)]
)
def test_24_dual_commit_starts_at_the_maximum(
    scene: Scene, in_zookeeper: int | None, in_kafka: int, start: int
) -> None:
    topic = scene.topic(1)
    scene.write(topic, numbers(6))
    if in_zookeeper is not None:
        scene.set_offset(topic, in_zookeeper)
    with scene.broker.wire() as wire:
        eventually("a coordinator", lambda: not wire.coordinator_error(scene.group))
        eventually("a commit", lambda: not wire.commit(scene.group, topic, 0, in_kafka))
    member = scene.member(offsets_storage="kafka", dual_commit_enabled=True).join({topic: 1})
    assert member.take(1)[0].offset == start
    member.take(1)
    assert member.connector.commit_offsets()
    assert scene.offset(topic) == str(start + 2)
    with scene.broker.wire() as wire:
        assert wire.committed(scene.group, topic, 0) == (start + 2, 0)


@pytest.mark.scenario("client-25")
def test_25_commits_to_kafka_that_fail(proxied: tuple[Scene, Proxy]) -> None:
    scene, proxy = proxied
    topic = scene.topic(1)
    scene.write(topic, numbers(5))
    member = scene.member(offsets_storage="kafka").join({topic: 1})
    assert len(member.take(5)) == 5
    proxy.intercept = refusals = Refusals(schemas.OffsetCommitRequest, refused_commit, [15] * 99)
    assert not member.connector.commit_offsets()
    assert refusals.asked == 1
    member.close()
    assert refusals.asked == 1 + 6
    assert scene.offset(topic) is None


@pytest.mark.scenario("client-26")
def test_26_a_rebalance_without_auto_commit(scene: Scene) -> None:
    topic = scene.topic(2)
    scene.write(topic, numbers(10))
    first = scene.member("c1", auto_commit_enable=False).join({topic: 1})
    assert len(first.take(4)) == 4
    assert first.connector.commit_offsets()
    assert len(first.take(3)) == 3
    scene.member("c2", auto_commit_enable=False).join({topic: 1})
    scene.owned(topic, {0: "c1-0", 1: "c2-0"})
    assert [message.offset for message in first.take(6)] == [4, 5, 6, 7, 8, 9]


# --- leaders


@pytest.mark.scenario("client-27")
def test_27_the_leader_changes(kind: str, zookeeper: ZooKeeper, tmp_path: Path) -> None:
    chroot = f"{zookeeper.connect}/{tmp_path.name}-{kind}"
    # A broker may come back into the isr while it is leaving; it is thrown out after that time.
    props = {"replica.lag.time.max.ms": 1000}
    pair = [Broker(kind, tmp_path / str(n), chroot, broker_id=n, props=props) for n in range(2)]
    try:
        for broker in pair:
            broker.start()
        with Scene(pair[1], tmp_path) as scene:
            topic = f"moves-{scene.group}"
            payload = json.dumps({"version": 1, "partitions": {"0": [0, 1]}}).encode()
            scene.zk.create(f"/brokers/topics/{topic}", payload, makepath=True)
            state = f"/brokers/topics/{topic}/partitions/0/state"

            def led_by(leader: int, isr: int) -> bool:
                with contextlib.suppress(Exception):
                    found = json.loads(scene.zk.get(state)[0])
                    return found["leader"] == leader and len(found["isr"]) == isr
                return False

            eventually("a full isr", lambda: led_by(0, 2))
            member = scene.member().join({topic: 1}).collect()
            addresses = [broker.address for broker in pair]
            with KafkaProducer(
                bootstrap_servers=addresses, acks="all", retries=1000, linger_ms=2, batch_size=500
            ) as producer:
                for number in range(2000):
                    producer.send(topic, b"%d" % number)
                    if number == 700:
                        pair[0].stop()
                        eventually("the other leads", lambda: led_by(1, 1))
                producer.flush(WAIT_S)
            with pair[1].wire() as wire:
                end = wire.offset(topic, 0)
            eventually("every message", lambda: len(member.messages) >= end)
            assert [message.offset for message in member.messages] == list(range(end))
            # A produce whose answer was lost is repeated; nothing else is.
            assert list(dict.fromkeys(member.values)) == numbers(2000)
    finally:
        for broker in pair:
            broker.kill()
