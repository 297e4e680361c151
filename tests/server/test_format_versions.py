"""Produce 1 to 8 and Fetch 1 to 11: formats by version, limits, refusals."""

from __future__ import annotations

import pytest

from kafka08.common import LATER_FORMATS_TIME, TopicPartition
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import (
    DEBUG_REPLICA_ID,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    RequestHeader,
)
from kafka08.server.apis.fetch import FetchApi
from kafka08.server.apis.produce import ProduceApi
from kafka08.server.rebuild.view import ConsumerView
from tests.message.batches import batch, simple, timed
from tests.server.support import ME, PEER, THIRD, Rig, message_set

LOTS = 1 << 20


def produce(rig: Rig, version: int, data: bytes) -> tuple[int, int]:
    api = ProduceApi(rig.runtime, rig.replicas, ConsumerView(rig.runtime))
    topics = [ProduceTopic("t", [ProducePartition(0, memoryview(bytearray(data)))])]
    answer = api.handle(RequestHeader(0, version, 1, "c"), ProduceRequest(1, 1000, topics))
    assert answer is not None
    found = answer.topics[0].partitions[0]
    return found.error, found.base_offset


def fetch(rig: Rig, version: int, offset: int = 0, size: int = LOTS, most: int = LOTS):
    api = FetchApi(rig.runtime, rig.replicas, ConsumerView(rig.runtime))
    request = FetchRequest(
        -1, 0, 1, [FetchTopic("t", [FetchPartition(0, offset, size)])], max_bytes=most
    )
    found = api.handle(RequestHeader(1, version, 1, "c"), request).topics[0].partitions[0]
    data = found.message_set
    return found, bytes(data if isinstance(data, bytes) else data.read())


@pytest.mark.scenario("modern-13")
@pytest.mark.parametrize(
    ("version", "data", "code"),
    [
        (3, batch(simple(b"a")), 0),
        (8, batch(simple(b"a"), codec=4), 0),
        (6, batch(simple(b"a"), codec=4), 76),
        (2, batch(simple(b"a"), codec=4), 0),
        (3, batch(simple(b"a")) * 2, 87),
        (3, b"", 87),
        (3, timed([(b"k", b"a")]), 87),
        (3, message_set("a"), 87),
        (3, batch(simple(b"a"), count=2), 87),
        (2, batch(simple(b"a"), count=2), 2),
        (2, timed([(b"k", b"a")]), 0),
    ],
)
def test_what_each_version_of_produce_takes(rig: Rig, version: int, data: bytes, code: int) -> None:
    rig.lead()
    assert produce(rig, version, data) == (code, -1 if code else 0)


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (11, 2)])
def test_the_format_by_the_version_of_fetch(rig: Rig, version: int, magic: int) -> None:
    rig.lead()
    produce(rig, 3, batch(simple(b"a", b"b"), codec=1))
    found, data = fetch(rig, version)
    assert {entry.magic for entry in iter_entries(data)} == {magic}
    assert [m.value for m in iter_messages(data)] == [b"a", b"b"]
    assert found.last_stable_offset == (2 if version >= 4 else -1)
    assert found.log_start_offset == (0 if version >= 4 else -1)


def test_the_first_batch_is_whole_and_the_limit_is_for_all(rig: Rig) -> None:
    rig.lead()
    for _ in range(3):
        produce(rig, 3, batch(simple(b"a" * 100, b"b")))
    one = len(batch(simple(b"a" * 100, b"b")))
    for version in (3, 4, 11):
        for size, most in ((10, LOTS), (LOTS, 10)):
            _, data = fetch(rig, version, 0, size, most)
            assert [m.offset for m in iter_messages(data)] == [0, 1]
    assert len(fetch(rig, 4, 0, LOTS, 2 * one)[1]) == 2 * one


BARE = [(b"k", b"%d" % number, 0, []) for number in range(3)]
NOT_HERE = 7


def stored(rig: Rig) -> bytes:
    log = rig.replicas.partition(TopicPartition("t", 0)).leader_log()
    return log.read(0, LOTS).read()


@pytest.mark.scenario("modern-53")
@pytest.mark.parametrize("codec", range(5))
def test_a_partition_with_an_original_replica_stores_format_0(rig: Rig, codec: int) -> None:
    rig.lead(replicas=[ME, PEER])
    assert produce(rig, 8, batch(BARE, codec=codec)) == (0, 0)
    rig.replicas.follow_later(frozenset({ME}))
    assert produce(rig, 8, batch(BARE, codec=codec)) == (0, 3)
    assert produce(rig, 2, timed([(b"k", b"3")])) == (0, 6)
    rig.replicas.follow_later(frozenset({ME, PEER}))
    assert produce(rig, 8, batch(BARE, codec=codec)) == (0, 7)
    entries = list(iter_entries(stored(rig)))
    assert [entry.magic for entry in entries if entry.offset in (2, 5, 6, 9)] == [2, 0, 0, 2]
    assert [entry.codec for entry in entries if entry.offset == 5] == [1 if codec == 4 else codec]
    values = [b"0", b"1", b"2"]
    assert [m.value for m in iter_messages(stored(rig))] == [*values, *values, b"3", *values]


@pytest.mark.scenario("modern-53")
def test_only_partitions_with_a_replica_there_are_concerned(rig: Rig) -> None:
    rig.replicas.follow_later(frozenset({ME, PEER}))
    rig.lead(replicas=[ME, PEER])
    assert produce(rig, 8, batch(simple(b"a"))) == (0, 0)
    rig.lead(replicas=[ME, NOT_HERE], leader_epoch=1)
    assert produce(rig, 8, batch(BARE)) == (0, 1)
    assert {entry.magic for entry in iter_entries(stored(rig)) if entry.offset} == {0}


@pytest.mark.scenario("modern-53")
@pytest.mark.parametrize("codec", range(5))
def test_headers_are_refused_where_they_would_be_lost(rig: Rig, codec: int) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.replicas.follow_later(frozenset({ME, THIRD}))
    assert produce(rig, 8, batch(simple(b"a"), codec=codec)) == (43, -1)
    assert produce(rig, 2, batch(simple(b"a"), codec=codec)) == (2, -1)
    assert stored(rig) == b""


@pytest.mark.parametrize("version", [2, 8])
def test_a_compacted_topic_takes_no_null_key_in_any_format(rig: Rig, version: int) -> None:
    rig.topic_settings["t"] = {"cleanup.policy": "compact"}
    rig.lead(replicas=[ME, PEER])
    rig.replicas.follow_later(frozenset({ME, THIRD}))
    keyless = batch([(None, b"v", 0, [])])
    assert produce(rig, version, keyless) == (2 if version == 2 else 87, -1)
    assert produce(rig, version, batch(BARE)) == (0, 0)


@pytest.mark.parametrize(
    ("release", "formats"),
    [("0.8.2", {0}), ("0.10.0", {0, 1}), ("0.11.0-IV2", {0, 1, 2}), ("3.0", {0, 1, 2})],
)
def test_a_topic_limits_the_format(rig: Rig, release: str, formats: set[int]) -> None:
    rig.topic_settings["t"] = {"message.format.version": release}
    rig.lead()
    assert produce(rig, 8, batch(BARE, codec=4)) == (0, 0)
    assert produce(rig, 2, timed([(b"k", b"3")])) == (0, 3)
    assert produce(rig, 0, message_set("4")) == (0, 4)
    assert {entry.magic for entry in iter_entries(stored(rig))} == formats
    assert [m.value for m in iter_messages(stored(rig))] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_long_sets_are_converted_by_another_thread(rig: Rig, codec: int) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.replicas.follow_later(frozenset({ME, THIRD}))
    many = [(b"k", b"x" * 900, 0, [])] * 1200
    assert produce(rig, 8, batch(many[:900] if not codec else many, codec=codec))[0] == 0
    assert {entry.magic for entry in iter_entries(stored(rig))} == {0}


def test_a_converted_set_that_is_too_large_is_refused(rig: Rig) -> None:
    rig.topic_settings["t"] = {"message.format.version": "0.8.2", "max.message.bytes": "400"}
    rig.lead()
    many = [(b"k", b"%032x" % (number * 2654435761 % 2**32), 0, []) for number in range(9)]
    sent = batch(many, codec=1)
    while len(sent) <= 400 and len(many) < 100:
        many.append((b"k", b"%08x" % (len(many) * 2654435761 % 2**32), 0, []))
        bigger = batch(many, codec=1)
        if len(bigger) > 400:
            break
        sent = bigger
    assert produce(rig, 8, sent) == (10, -1)


def read_by(rig: Rig, replica_id: int, offset: int) -> bytes:
    return bytes(rig.fetch(("t", 0, offset, LOTS), replica_id=replica_id)["t", 0][2])


def test_an_original_replica_is_not_given_what_it_cannot_read(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    partition = rig.lead(replicas=[ME, PEER, THIRD], isr=[ME])
    rig.append("a")
    produce(rig, 8, batch(BARE))
    rig.append("b")
    rig.replicas.follow_later(frozenset({ME, THIRD}))
    for _ in range(2):
        assert read_by(rig, PEER, 0) == b"" == read_by(rig, PEER, 3)
    assert caplog.text.count("Broker 2 of 0.8.2.2 cannot be a replica of [t,0]") == 1
    assert partition.remote[PEER].log_end_offset == -1
    assert read_by(rig, THIRD, 0) == stored(rig)
    assert len(list(iter_messages(read_by(rig, -1, 0)))) == 5
    assert read_by(rig, PEER, 4) == stored(rig)[-27:], "what comes after it has format 0"
    assert partition.remote[PEER].log_end_offset == 4
    rig.replicas.follow_later(frozenset({ME, PEER}))
    assert read_by(rig, PEER, 0) == stored(rig)


def test_the_controller_is_told_what_originals_cannot_read(rig: Rig) -> None:
    asked = OffsetsRequest(
        DEBUG_REPLICA_ID, [OffsetsTopic("t", [OffsetsPartition(0, LATER_FORMATS_TIME, 1)])]
    )

    def told() -> tuple[int, list[int]]:
        found = rig.call(asked).topics[0].partitions[0]
        return found.error, found.offsets

    log = rig.lead().leader_log()
    rig.append("a")
    assert told() == (0, [0])
    produce(rig, 8, batch(BARE))
    rig.append("b")
    assert told() == (0, [4])
    log.roll()
    log.config = log.config.override({"retention.bytes": "0"})
    log.delete_old_segments()
    assert told() == (0, [0]), "nothing of it is left"
    rig.follow()
    assert told() == (6, [])


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_idempotent_producers_keep_their_order_in_format_0(rig: Rig, codec: int) -> None:
    rig.lead(replicas=[ME, PEER])
    rig.replicas.follow_later(frozenset({ME, THIRD}))
    first = batch(BARE, codec=codec, producer_id=5, producer_epoch=0, base_sequence=0)
    second = batch(BARE, codec=codec, producer_id=5, producer_epoch=0, base_sequence=3)
    assert produce(rig, 8, first) == (0, 0)
    assert produce(rig, 8, second) == (0, 3)
    for sent, base in ((first, 0), (second, 3)):
        assert produce(rig, 8, sent) == (0, base), "it was stored before"
    gap = batch(BARE, codec=codec, producer_id=5, producer_epoch=0, base_sequence=9)
    assert produce(rig, 8, gap) == (45, -1)
    assert len(list(iter_messages(stored(rig)))) == 6
    assert {entry.magic for entry in iter_entries(stored(rig))} == {0}
