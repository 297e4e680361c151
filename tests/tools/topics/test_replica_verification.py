from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.client import requests
from kafka08.common import Broker, TopicPartition
from kafka08.errors import ConfigError, LeaderNotAvailableError
from kafka08.message.sets import encode_set
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster, connect
from tests.fakes.runtime import FakeClock
from tools import brokers
from tools.options import UsageError
from tools.topics import replica_verification
from tools.topics.replica_verification import Copy, OffsetMismatchError, Verifier, fetch_copies

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)


def messages(*texts: str, base: int = 0) -> bytes:
    return encode_set([(None, text.encode()) for text in texts], base_offset=base)


def verifier(
    *partitions: TopicPartition, interval_ms: int = 1000, clock: FakeClock | None = None
) -> Verifier:
    return Verifier(dict.fromkeys(partitions, 0), clock or FakeClock(), interval_ms)


def test_agreement_goes_on_up_to_the_shortest_copy_and_the_high_watermark() -> None:
    subject = verifier(T0)
    three, two = messages("a", "b", "c"), messages("a", "b")
    assert list(subject.verify({T0: {1: Copy(3, three), 2: Copy(3, two)}})) == []
    assert subject.offsets == {T0: 2}
    rest = messages("c", "d", base=2)
    assert list(subject.verify({T0: {1: Copy(3, rest), 2: Copy(4, rest)}})) == []
    assert subject.offsets == {T0: 3}


def test_a_replica_that_does_not_answer_delays_its_partition() -> None:
    subject = verifier(T0, U0)
    one = messages("a")
    copies = {T0: {1: Copy(1, one), 2: Copy()}, U0: {1: Copy(1, one), 3: Copy(1, one)}}
    assert list(subject.verify(copies)) == []
    assert subject.offsets == {T0: 0, U0: 1}


def test_checksums_that_differ_are_told_and_passed() -> None:
    subject = verifier(T0)
    ours, theirs = messages("a", "b", "c"), messages("a", "x", "c")
    [line] = subject.verify({T0: {1: Copy(3, ours), 2: Copy(3, ours), 3: Copy(3, theirs)}})
    time, _, text = line.partition(": ")
    assert len(time) == len("2015-06-01 12:00:00,123")
    start, crc, other_crc = text.rpartition("replica 1's checksum ")[0], *_crcs(ours, theirs)
    assert start == "partition [t,0] has unmatched checksum at offset 1; "
    assert text == f"{start}replica 1's checksum {crc}; replica 3's checksum {other_crc}"
    assert subject.offsets == {T0: 3}


def _crcs(*sets: bytes) -> list[int]:
    second = len(messages("a")) + 12
    return [int.from_bytes(data[second : second + 4], "big") for data in sets]


def test_offsets_that_differ_end_it() -> None:
    subject = verifier(T0)
    copies = {T0: {1: Copy(9, messages("a", base=3)), 2: Copy(9, messages("a", base=4))}}
    text = r": partition \[t,0\]: replica 1's offset 3 doesn't match replica 2's offset 4$"
    with pytest.raises(OffsetMismatchError, match=text):
        list(subject.verify(copies))


def test_the_largest_lag_is_reported_after_each_interval() -> None:
    clock = FakeClock()
    subject = verifier(T0, U0, clock=clock)
    one = messages("a")
    copies = {T0: {1: Copy(1, one)}, U0: {1: Copy(7, one), 2: Copy(8, one)}}
    clock.now_ms += 1000
    assert list(subject.verify(copies)) == []
    clock.now_ms += 1
    [line] = subject.verify(copies)
    expected = ": max lag is 7 for partition [u,0] at offset 1 among 2 paritions"
    assert line.endswith(expected)
    assert list(subject.verify(copies)) == []


def test_fetching() -> None:
    found = {T0: schemas.FetchPartitionResponse(0, 0, 5, memoryview(b"x"))}
    consumer: Any = SimpleNamespace(fetch=lambda *asked, **more: found)
    copies = fetch_copies(consumer, {T0: 5, U0: 5}, 100, 10)
    assert copies == {T0: Copy(5, memoryview(b"x")), U0: Copy()}

    def fail(*asked: object, **more: object) -> Any:
        raise ConnectionResetError

    consumer.fetch = fail
    assert fetch_copies(consumer, {T0: 5}, 100, 10) == {T0: Copy(-1, b"")}


def cluster_of(leader: int, sets: dict[int, bytes]) -> FakeCluster:
    """Brokers that hold ``sets`` of partition 0 of t, on ports that are their ids. The second round
    finds nothing new."""
    brokers = {number: Broker(number, "h", number) for number in sets}
    cluster = FakeCluster(brokers.values())
    cluster.create("t", 1, leader)

    def script(port: int, request: Any) -> Any:
        if isinstance(request, schemas.MetadataRequest):
            partition = schemas.PartitionMetadata(0, 0, leader, list(sets), list(sets))
            topics = [schemas.TopicMetadata(0, name, [partition]) for name in ("t", "other")]
            endpoints = [schemas.BrokerEndpoint(*broker) for broker in brokers.values()]
            return schemas.MetadataResponse(endpoints, topics)
        if isinstance(request, schemas.FetchRequest):
            data = b"" if request.topics[0].partitions[0].offset else sets[port]
            found = schemas.FetchPartitionResponse(0, 0, 9, memoryview(data))
            return schemas.FetchResponse([schemas.FetchTopicResponse("t", [found])])
        return None

    cluster.script = script
    return cluster


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    def with_cluster(cluster: FakeCluster, *words: str) -> int:
        for module in (brokers, replica_verification):
            connect(monkeypatch, module, cluster)
        return replica_verification.main(["--broker-list", "h:1", "--time", "-2", *words])

    return with_cluster


def test_from_the_command_line_to_the_mismatch(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = cluster_of(1, {1: messages("a"), 2: messages("a", base=4)})
    assert run(cluster, "--topic-white-list", "t") == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.endswith(": verification process is started.")
    assert last.endswith(
        ": partition [t,0]: replica 1's offset 0 doesn't match replica 2's offset 4"
    )
    assert [fetch[:3] for fetch in cluster.sent(schemas.FetchRequest)] == [(-2, 1000, 1)] * 2
    assert [offsets.topics for offsets in cluster.sent(schemas.OffsetsRequest)] == [
        requests.offsets_request({T0: -2}).topics
    ]


def test_what_cannot_be_verified(run: Callable[..., int]) -> None:
    cluster = cluster_of(-1, {1: b""})
    with pytest.raises(LeaderNotAvailableError, match=r"No leader for partition \[t,0\]"):
        run(cluster, "--topic-white-list", "t")
    with pytest.raises(Exception, match="No replica of any such topic"):
        run(cluster, "--topic-white-list", "nothing")
    with pytest.raises(ConfigError, match=r"\[ is an invalid regex"):
        run(cluster, "--topic-white-list", "[")


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ([], "Validate that all replicas for a set of topics have the same data."),
        (["--time", "-1"], 'Missing required argument "[broker-list]"'),
        (["--broker-list", "h"], "Please provide valid host:port like host1:9091,host2:9092"),
    ],
)
def test_usage(words: list[str], start: str) -> None:
    with pytest.raises(UsageError) as caught:
        replica_verification.main(words)
    assert str(caught.value).startswith(start)
