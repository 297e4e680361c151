"""Consumers of 0.8 on topics that later clients fill: they get every message, once."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafka08.log.segments.file_slice import FileSlice
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.message.wrappers import absolute_slice
from kafka08.server.rebuild import view as rebuild
from tests.log.support import writable
from tests.message.batches import batch, encode_record, simple, timed, timed_wrapper, varint
from tests.message.sets import has_absolute_offsets
from tests.server.apis.test_fetch import wait
from tests.server.support import ME, PEER, Rig, message_set

T = ("t", 0)
LOTS = 1 << 20
CONTROL = {"attributes": 0x30}


def messages(data: Any) -> list[tuple]:
    return [(m.offset, m.value) for m in iter_messages(bytes(data))]


def follow(rig: Rig, *stored: bytes) -> None:
    """The log holds these entries, as if a later broker had left them, and this broker leads."""
    log = rig.lead().leader_log()
    log.append(writable(b"".join(stored)), assign_offsets=False)
    rig.lead(leader_epoch=1)


def consume(rig: Rig, offset: int = 0, max_bytes: int = LOTS) -> list[tuple]:
    """Everything from ``offset`` on, fetch after fetch, as a consumer of 0.8 reads it."""
    end = rig.fetch((*T, offset, LOTS))[T][1]
    found: list[tuple] = []
    while offset < end:
        data = bytes(rig.fetch((*T, offset, max_bytes))[T][2])
        new = [message for message in messages(data) if message[0] >= offset]
        if not new:
            break
        found += new
        offset = found[-1][0] + 1
    return found


@pytest.mark.scenario("modern-7", "modern-10")
@pytest.mark.parametrize("codec", range(5))
def test_batches_reach_consumers_of_0_8(rig: Rig, codec: int) -> None:
    rig.lead()
    rig.append("old")
    assert rig.produce((*T, batch(simple(b"a", b"b", b"c"), 0, codec))) == {T: (0, 1)}
    assert rig.produce((*T, timed([(None, b"d")]))) == {T: (0, 4)}
    inner = timed([(None, b"e"), (None, b"f")])
    assert rig.produce((*T, timed_wrapper(inner, 2))) == {T: (0, 5)}
    rig.append("new")
    expected = list(enumerate([b"old", b"a", b"b", b"c", b"d", b"e", b"f", b"new"]))
    for max_bytes in (LOTS, 60, 30):
        assert consume(rig, 0, max_bytes) == expected
    data = bytes(rig.fetch((*T, 0, LOTS))[T][2])
    assert {entry.magic for entry in iter_entries(data)} == {0}
    for entry in iter_entries(data):
        if entry.codec:
            assert has_absolute_offsets(data[entry.position : entry.stop])
    # once more, now from the cache
    assert bytes(rig.fetch((*T, 0, LOTS))[T][2]) == data


@pytest.mark.sources
@pytest.mark.scenario("modern-24")
@pytest.mark.parametrize("codec", range(5))
def test_ten_consumers_on_the_tail_and_each_batch_is_converted_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, codec: int
) -> None:
    converted: list[Any] = []

    def counted(*args: Any, made: list[Any], **options: Any) -> bytes:
        sent = absolute_slice(*args, made=made, **options)
        converted.extend(made)
        return sent

    monkeypatch.setattr(rebuild, "absolute_slice", counted)
    rig.lead()
    for number in range(3):
        rig.produce((*T, batch(simple(b"a", b"b"), 0, codec)))
        sent = [bytes(rig.fetch((*T, 2 * number, LOTS))[T][2]) for _ in range(10)]
        assert sent == sent[:1] * 10
        assert messages(sent[0]) == [(2 * number, b"a"), (2 * number + 1, b"b")]
    assert len(converted) == 3


@pytest.mark.parametrize("codec", range(5))
def test_plain_batches_are_not_kept_for_a_consumer_that_is_behind(rig: Rig, codec: int) -> None:
    values = [random.Random(n).randbytes(rebuild.READY_BYTES) for n in range(3)]
    rig.lead()
    for value in values:
        rig.produce((*T, batch(simple(value), 0, codec)))
    log = rig.lead().leader_log()
    view = rebuild.ConsumerView(rig.runtime)
    for max_bytes, kept in ((log.size - 1, bool(codec)), (log.size + 1, True)):
        first, second = (view.bytes_to_send(log.read(0, max_bytes), max_bytes) for _ in range(2))
        assert isinstance(second, FileSlice) == kept
        for sent in (first, second):
            data = sent.read() if isinstance(sent, FileSlice) else sent
            assert messages(data)[:2] == [(0, values[0]), (1, values[1])]


@pytest.mark.scenario("modern-5")
def test_followers_get_what_is_stored(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER], isr=[ME])
    sent = batch(simple(b"a", b"b"), 0, 1)
    rig.produce((*T, sent))
    assert bytes(rig.fetch((*T, 0, LOTS), replica_id=PEER)[T][2])[16:] == sent[16:]


@pytest.mark.scenario("modern-16")
@pytest.mark.parametrize("codec", range(5))
def test_an_offset_inside_a_batch_begins_there(rig: Rig, codec: int) -> None:
    rig.lead()
    rig.produce((*T, batch(simple(b"a", b"b", b"c"), 0, codec)))
    for _ in range(2):
        found = messages(rig.fetch((*T, 1, LOTS))[T][2])
        assert found == [(0, b"a"), (1, b"b"), (2, b"c")][0 if codec else 1 :]


@pytest.mark.scenario("modern-17")
@pytest.mark.parametrize("max_bytes", [1, 20, 40, 100])
def test_a_size_below_the_first_batch_gives_all_of_it(rig: Rig, max_bytes: int) -> None:
    rig.lead()
    many = simple(*[b"x" * 50] * 20)
    rig.produce((*T, batch(many)), (*T, batch(many)))
    rig.produce((*T, batch(many)))
    found = messages(rig.fetch((*T, 0, max_bytes))[T][2])
    assert [offset for offset, _ in found] == list(range(20))
    assert len(consume(rig, 0, max_bytes)) == 40


COMMITTED = [
    batch(simple(b"0", b"1"), 0, attributes=0x10),
    batch([(b"\0\0\0\1", b"", 0, [])], 2, **CONTROL),
    batch(simple(b"3", b"4"), 3, attributes=0x10),
    batch([(b"\0\0\0\0", b"", 0, [])], 5, **CONTROL),
    batch(simple(b"6"), 6, attributes=0x10),
    batch([(b"\0\0\0\1", b"", 0, [])], 7, **CONTROL),
]


@pytest.mark.scenario("modern-18")
@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("max_bytes", [LOTS, 70, 1])
def test_markers_are_passed_over(rig: Rig, offset: int, max_bytes: int) -> None:
    follow(rig, *COMMITTED)
    expected = [(at, b"%d" % at) for at in (0, 1, 3, 4, 6) if at >= offset]
    assert consume(rig, offset, max_bytes) == expected


@pytest.mark.scenario("modern-19")
def test_nothing_but_markers_counts_as_nothing(rig: Rig) -> None:
    follow(rig, *COMMITTED)
    answer, took = wait(rig, partitions=[(*T, 7, LOTS)])
    assert answer == {T: (0, 8, b"")} and took == 0.5
    answer, took = wait(
        rig, lambda: rig.produce((*T, message_set("next"))), partitions=[(*T, 7, LOTS)]
    )
    assert messages(answer[T][2]) == [(8, b"next")] and took == 0


@pytest.mark.scenario("modern-20")
@pytest.mark.parametrize("codec", range(5))
def test_the_removed_end_of_a_batch(rig: Rig, codec: int) -> None:
    """Kafka 3.9.1 sends the rest of the batch again and again if there is room for nothing else."""
    compacted = batch(simple(b"a", b"c"), 4, codec, deltas=[0, 2], last_delta=3)
    empty = batch([], 8, codec, last_delta=1)
    follow(rig, compacted, empty, batch(simple(b"d"), 10, codec))
    for max_bytes in (LOTS, len(compacted), 1):
        assert consume(rig, 4, max_bytes) == [(4, b"a"), (6, b"c"), (10, b"d")]
        for offset in (7, 8, 9):
            assert messages(rig.fetch((*T, offset, max_bytes))[T][2]) == [(10, b"d")]


@pytest.mark.scenario("modern-12")
def test_refusals_that_0_8_clients_understand(rig: Rig) -> None:
    rig.lead()
    mixed = message_set("a") + batch(simple(b"a"))
    wrong = batch(simple(b"a"), count=2)
    broken = bytearray(batch(simple(b"a")))
    broken[-1] ^= 1
    for data in (mixed, wrong, bytes(broken)):
        assert rig.produce((*T, data)) == {T: (2, -1)}
    assert rig.fetch((*T, 0, LOTS))[T][1] == 0


@pytest.mark.scenario("modern-23")
def test_a_batch_that_inflates_too_far_is_refused(rig: Rig) -> None:
    rig.lead()
    record = encode_record(0, (b"k", bytes(65 << 20), 0, []))
    assert varint(-1) == b"\x01"
    bomb = batch([(b"k", bytes(65 << 20), 0, [])], codec=4)
    assert len(bomb) < len(record) // 100
    assert rig.produce((*T, bomb))[T][0] == 10
