"""Sets that are rebuilt at append, and the bytes that consumers are sent for them."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import KafkaError
from kafka08.log.log import Log
from kafka08.log.numbering import RebuiltSet
from kafka08.log.segments.file_slice import FileSlice
from kafka08.log.tail import AHEAD_BYTES
from kafka08.message import records
from kafka08.message.entry import BATCH, encode_entry
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages, next_offset
from kafka08.message.wrappers import absolute_slice
from kafka08.runtime import ThreadRuntime
from kafka08.server.rebuild.cache import STRIP_OVERHEAD
from kafka08.server.rebuild.view import (
    READY_BYTES,
    REFUSE,
    SEND,
    SEND_NOW,
    SKIP,
    ConsumerVersions,
    ConsumerView,
)
from tests.log.support import open_log, writable
from tests.message.batches import batch, simple
from tests.message.sets import CODECS, has_absolute_offsets, plain, rebuild, wrapper
from tests.server.support import ME, PEER, Rig

T = ("t", 0)
LOTS = 1 << 20
TEXTS = [(None, b"text %d" % number) for number in range(30)]
SENT = plain(TEXTS, 100)  # nowhere the true offsets


def stored(log: Log, offset: int = 0) -> bytes:
    return log.read(offset, LOTS).read()


def spoil(log: Log) -> None:
    """From here on nothing can be learnt from the files."""
    for segment in log.segments:
        os.pwrite(segment.file.fileno(), bytes(segment.size), 0)


def append(log: Log, view: ConsumerView, data: bytes) -> RebuiltSet | None:
    prepared = log.append(writable(data)).rebuilt
    if prepared is not None:
        view.remember(prepared)
    return prepared


def served(log: Log, view: ConsumerView, offset: int = 0, max_bytes: int = LOTS) -> Any:
    return content(view.bytes_to_send(log.read(offset, max_bytes), max_bytes))


def content(sent: Any) -> Any:
    return sent.read() if isinstance(sent, FileSlice) else sent


def all_served(log: Log, view: ConsumerView) -> bytes:
    """The bytes that a consumer gets with one fetch after the other."""
    found = b""
    while (offset := next_offset(found, 0)) < log.log_end_offset:
        found += served(log, view, offset)
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_a_produced_wrapper_is_ready_before_anybody_asks(rig: Rig, codec: int) -> None:
    partition = rig.lead(replicas=[ME, PEER], isr=[ME])
    log = partition.leader_log()
    sets = [wrapper(SENT, codec, key=key) for key in (None, b"key")]
    for data in sets:
        rig.produce((*T, data))
    wanted = b"".join(
        [
            rebuild(data[entry.position : entry.position + entry.size_total])
            for data in [stored(log)]
            for entry in iter_entries(data)
        ]
    )
    as_stored = rig.fetch((*T, 0, LOTS), replica_id=PEER)[T][2]
    assert as_stored[8 : len(sets[0])] == sets[0][8:]
    spoil(log)
    assert rig.fetch((*T, 0, LOTS))[T][2] == wanted
    assert rig.fetch((*T, 0, LOTS))[T][2] == wanted


def test_mixed_sets_are_rebuilt_where_they_came_to_lie(tmp_path: Path) -> None:
    """A wrapper without messages is taken out, nested ones are flattened, plain ones stay."""
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    nested = wrapper(plain(TEXTS[:2]), 2)
    pieces = [
        wrapper(SENT, 1),
        wrapper(b"", 3),
        encode_entry(b"k", b"v"),
        wrapper(b"", 2),
        wrapper(nested + plain(TEXTS), 3),
        wrapper(SENT, 2),
    ]
    append(log, view, pieces[0])
    prepared = append(log, view, b"".join(pieces))
    assert prepared is not None and prepared.position == len(pieces[0])
    data = stored(log)
    by_place = {entry.position: entry for entry in iter_entries(data)}
    assert len(prepared.wrappers) == 3
    for position, stored_bytes, sent in prepared.wrappers:
        entry = by_place[prepared.position + position]
        assert stored_bytes == entry.size_total
        assert sent == rebuild(data[entry.position : entry.position + stored_bytes])
    assert served(log, view) == absolute_slice(data, max_bytes=LOTS)
    offsets = [message.offset for message in iter_messages(served(log, view))]
    assert offsets == list(range(30 + 30 + 1 + 32 + 30))


def test_what_is_right_is_kept_as_it_is(tmp_path: Path) -> None:
    """So that it can be sent with its neighbours: the set at offset 0 mostly is."""
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    right = wrapper(plain(TEXTS), 1)
    prepared = append(log, view, right)
    assert prepared is not None and [kept.data for kept in prepared.wrappers] == [stored(log)]
    append(log, view, wrapper(SENT, 1))
    wanted = absolute_slice(stored(log), max_bytes=LOTS)
    spoil(log)
    assert served(log, view) == wanted
    odd = log.append(writable(wrapper(plain(TEXTS[:2], 80) + plain(TEXTS[2:4], 92), 1))).rebuilt
    assert odd is not None  # moved on by one, or its gap would look true
    assert has_absolute_offsets(odd.wrappers[0].data)


def test_plain_sets_and_followers_need_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.append(writable(SENT)).rebuilt is None
    log.append(writable(wrapper(SENT, 1)))
    follower = open_log(tmp_path / "follower")
    copied = follower.append(writable(stored(log)), assign_offsets=False)
    assert copied.count and copied.rebuilt is None


def test_normalised_sets_are_right_and_known_to_be(tmp_path: Path) -> None:
    log, view = open_log(tmp_path, compressed_sets="normalised"), ConsumerView(ThreadRuntime())
    for _ in range(2):
        assert append(log, view, wrapper(SENT, 2)) is None
    part = log.read(0, LOTS)
    assert part.file.sendable_until == len(part)
    assert view.bytes_to_send(part, LOTS) is part


def test_wrappers_found_right_are_not_looked_at_again(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    log.append(writable(encode_set(TEXTS, 1, 0)), assign_offsets=False)
    part = log.read(0, LOTS)
    assert part.file.sendable_until == 0
    assert view.bytes_to_send(part, LOTS) is part
    assert part.file.sendable_until == len(part)


def test_much_that_is_known_to_be_right_goes_ahead(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    append(log, view, encode_set([(None, bytes(1000))] * (READY_BYTES // 1000)))
    append(log, view, wrapper(SENT, 2))
    part = log.read(0, LOTS)
    assert part.file.sendable_until > READY_BYTES
    assert len(served(log, view)) == part.file.sendable_until
    assert all_served(log, view) == absolute_slice(part.read(), max_bytes=LOTS)
    later = READY_BYTES // 2000
    assert served(log, view, later) == absolute_slice(stored(log, later), max_bytes=LOTS)


def test_much_that_is_known_goes_ahead_of_what_is_not(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    noise = random.Random(1).randbytes(READY_BYTES // 2)
    for _ in range(3):
        append(log, view, wrapper(plain([(None, noise)], 100), 2))
    log.tail_readers.prepared(AHEAD_BYTES)
    append(log, view, wrapper(SENT, 2))
    data = stored(log)
    first, second, third, _ = (entry.size_total for entry in iter_entries(data))
    assert len(served(log, view)) == pytest.approx(first + second + third, abs=100)
    # too little to go alone: what is missing is made
    assert served(log, view, 2) == absolute_slice(data[first + second :], max_bytes=LOTS)
    assert all_served(log, view) == absolute_slice(data, max_bytes=LOTS)


def test_what_nobody_looked_into_is_not_known_to_be_right(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    log.tail_readers.prepared(AHEAD_BYTES)
    append(log, view, encode_set(TEXTS, 2, 0))
    assert log.read(0, LOTS).file.sendable_until == 0
    assert served(log, view) == encode_set(TEXTS, 2, 0)


def test_readers_whose_slices_overlap_learn_what_is_right(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    for base in (0, 30, 60):
        log.append(writable(encode_set(TEXTS, 1, base)), assign_offsets=False)
    whole = log.read(0, LOTS)
    first = next(iter_entries(whole.read())).size_total
    view.bytes_to_send(log.read(0, first + 50), LOTS)
    assert whole.file.sendable_until == first
    assert len(served(log, view)) == whole.file.sendable_until == len(whole)


def test_a_log_without_readers_is_not_prepared_for_ever(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    first = append(log, view, wrapper(SENT, 1))
    log.tail_readers.prepared(AHEAD_BYTES)
    assert first is not None
    assert append(log, view, wrapper(SENT, 1)) is None
    log.tail_readers.read_at(30, log.log_end_offset)
    assert append(log, view, wrapper(SENT, 1)) is not None
    data = stored(log)
    assert served(log, view) == absolute_slice(data, max_bytes=LOTS) != data


def test_fetches_of_consumers_are_the_demand(rig: Rig) -> None:
    log = rig.lead(replicas=[ME, PEER], isr=[ME]).leader_log()
    log.tail_readers.prepared(AHEAD_BYTES)
    rig.fetch((*T, 0, LOTS), replica_id=PEER)
    assert not log.tail_readers.are_near
    rig.fetch((*T, 0, LOTS))
    assert log.tail_readers.are_near


def test_after_a_truncation_nothing_of_the_old_is_sent(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    append(log, view, wrapper(SENT, 2))
    append(log, view, wrapper(SENT, 2))
    served(log, view)
    log.truncate_to(30)
    append(log, view, wrapper(plain(TEXTS[::-1]), 2))
    data = stored(log)
    for _ in range(2):
        assert all_served(log, view) == absolute_slice(data, max_bytes=LOTS)
    values = [message.value for message in iter_messages(all_served(log, view))]
    assert values == [value for _, value in TEXTS + TEXTS[::-1]]


def test_rolled_segments_have_their_own(tmp_path: Path) -> None:
    log, view = open_log(tmp_path, segment_bytes=600), ConsumerView(ThreadRuntime())
    for codec in CODECS:
        append(log, view, wrapper(SENT, codec))
    assert len(log.segments) == 3
    wanted = [rebuild(stored(log, offset)) for offset in (0, 30, 60)]
    spoil(log)
    assert [served(log, view, offset) for offset in (0, 30, 60)] == wanted


def test_damage_after_the_append_reaches_no_reader_past_the_cache(tmp_path: Path) -> None:
    """Without anything remembered a spoilt wrapper is passed on for its reader to find out."""
    log = open_log(tmp_path)
    append(log, ConsumerView(ThreadRuntime()), wrapper(SENT, 1))
    data = bytearray(stored(log))
    data[-3] ^= 1
    part = log.read(0, LOTS)
    os.pwrite(part.fileno(), data, 0)
    assert served(log, ConsumerView(ThreadRuntime())) == data


def test_slices_that_lie_differently(tmp_path: Path) -> None:
    """Any start and end gives what reading the file would give, a cut last entry aside."""
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    for number in range(6):
        append(log, view, wrapper(plain(TEXTS[: number + 1]), 1))
    data = stored(log)
    sizes = [entry.size_total for entry in iter_entries(data)]
    for offset, skipped in ((0, 0), (1, 1), (3, 2), (15, 5)):
        start = sum(sizes[:skipped])
        for max_bytes in (sizes[skipped] - 1, sizes[skipped], sum(sizes[: skipped + 2]), LOTS):
            wanted = absolute_slice(data[start : start + max_bytes], max_bytes=max_bytes)
            sent = served(log, view, offset, max_bytes)
            assert wanted.startswith(sent)
            assert sent or not list(iter_entries(wanted))
    assert all_served(log, view) == absolute_slice(data, max_bytes=LOTS)
    assert served(log, view, 0, sizes[0] - 1) == data[: sizes[0] - 1]


class Pool(ThreadRuntime):
    """Notes what is handed to other threads; ``meanwhile`` happens before it is done."""

    def __init__(self) -> None:
        self.handed = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def blocking(self, function: Callable[..., Any], *args: Any) -> Any:
        self.handed += 1
        self.meanwhile()
        return function(*args)


def much(log: Log) -> bytes:
    """More than is rebuilt without leaving the thread, and none of it prepared."""
    log.tail_readers.prepared(AHEAD_BYTES)
    noise = random.Random(2).randbytes(READY_BYTES)
    for half in (noise[: READY_BYTES // 2], noise[READY_BYTES // 2 :]):
        log.append(writable(wrapper(plain([(None, half)], 100), 2)))
    log.append(writable(wrapper(SENT, 2)))
    return absolute_slice(stored(log), max_bytes=LOTS)


def test_much_is_rebuilt_on_another_thread(tmp_path: Path) -> None:
    log, pool = open_log(tmp_path), Pool()
    view, wanted = ConsumerView(pool), much(log)
    assert served(log, view, 2) and pool.handed == 0
    assert served(log, view) == wanted and pool.handed == 1
    assert all_served(log, view) == wanted and pool.handed == 1


@pytest.mark.parametrize("codec", [0, 2])
def test_only_compiled_code_converts_much_on_the_loop(tmp_path: Path, codec: int) -> None:
    log, pool = open_log(tmp_path), Pool()
    values = [random.Random(7).randbytes(READY_BYTES // 4) for _ in range(6)]
    for value in values:
        log.append(writable(batch(simple(value), codec=codec)))
    sent = ConsumerView(pool).bytes_to_send(log.read(0, LOTS), LOTS, target=0)
    assert [found.value for found in iter_messages(content(sent))] == values
    assert pool.handed == (1 if codec or records.native is None else 0)


@pytest.mark.scenario("modern-24")
def test_of_those_who_want_the_same_one_makes_it(tmp_path: Path) -> None:
    log, pool = open_log(tmp_path), Pool()
    view, wanted = ConsumerView(pool), much(log)
    got: list[bytes] = []
    others = [threading.Thread(target=lambda: got.append(all_served(log, view))) for _ in "abc"]

    def all_start() -> None:
        for other in others:
            other.start()

    pool.meanwhile = all_start
    assert served(log, view) == wanted
    for other in others:
        other.join(10)
    assert got == [wanted] * 3 and pool.handed == 1


def test_a_log_that_is_cut_meanwhile(tmp_path: Path) -> None:
    """Its reader gets what was there, or hears of it; those who come later get what is there."""
    log, pool = open_log(tmp_path), Pool()
    view = ConsumerView(pool)
    much(log)
    pool.meanwhile = lambda: log.truncate_to(1)
    with pytest.raises(KafkaError, match="truncated during read"):
        served(log, view)
    pool.meanwhile = lambda: None
    log.append(writable(wrapper(plain(TEXTS[::-1]), 2)))
    for _ in range(2):
        assert all_served(log, view) == absolute_slice(stored(log), max_bytes=LOTS)


def test_little_memory_serves_all_the_same(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime(), 2 * STRIP_OVERHEAD)
    for codec in CODECS * 4:
        append(log, view, wrapper(SENT, codec))
    data = stored(log)
    for max_bytes in (LOTS, 1500, 700):
        wanted = absolute_slice(data[:max_bytes], max_bytes=max_bytes)
        assert wanted.startswith(served(log, view, 0, max_bytes))


CONTROL = 1 << 5  # the attribute of a batch that marks the end of a transaction


def test_what_a_consumer_may_be_sent_has_a_name(tmp_path: Path) -> None:
    log, view = open_log(tmp_path), ConsumerView(ThreadRuntime())
    old, of_batches = (
        ConsumerVersions(0, is_limited=False, refusal=1),
        ConsumerVersions(BATCH, is_limited=True, refusal=1),
    )
    message, two, marker = (
        plain([(None, b"x")], 0),
        batch(simple(b"a", b"b"), 1),
        batch(simple(b"m"), 3, attributes=CONTROL),
    )
    log.append(writable(message + two + marker), assign_offsets=False)

    def decided(
        reader: ConsumerVersions, offset: int, size: int = LOTS, **how: bool
    ) -> tuple[int, int, int]:
        how = {"is_cut": False, "converts": True, **how}
        outcome, part, following = view.decide(log.read(offset, size), offset, reader, **how)
        return outcome, len(part), following

    whole = len(message + two + marker)
    assert decided(old, 0) == (SEND, whole, 0)
    assert decided(old, 0, converts=False) == (REFUSE, whole, 0)
    assert decided(old, 0, len(message), converts=False) == (SEND, len(message), 0)
    assert decided(old, 3) == (SKIP, len(marker), 4)
    assert decided(of_batches, 0) == (SEND_NOW, len(message), 0)
    assert decided(of_batches, 3) == (SEND, len(marker), 3)
    assert decided(of_batches, 1, 30) == (SEND, 30, 1)
    assert decided(of_batches, 1, 30, is_cut=True) == (SEND, len(two), 1)
