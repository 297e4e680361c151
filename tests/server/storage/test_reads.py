"""Fetch 4 and later on topics that old and new producers write in turn: formats 0 and 1 and format
2 are never in one answer, and nobody waits for that."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.protocol.requests import RequestHeader
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
)
from kafka08.server.apis.fetch import FetchApi
from tests.log.support import writable
from tests.message.batches import batch, simple, timed, timed_wrapper
from tests.message.sets import plain, wrapper
from tests.server.support import ME, PEER, Rig

T = ("t", 0)
LOTS = 1 << 20
OLD = plain([(b"k", b"v")] * 2)
PAIRS = [(b"k", b"v")] * 2


def sets_of(magic: int) -> list[bytes]:
    """Sets of two messages in this format, one for each codec."""
    if magic == 0:
        return [OLD, *(wrapper(plain(PAIRS), codec) for codec in (1, 2, 3))]
    if magic == 1:
        return [timed(PAIRS), *(timed_wrapper(timed(PAIRS), codec, 1, 1001) for codec in (1, 2, 3))]
    return [batch(simple(b"v", b"v"), codec=codec) for codec in range(5)]


def ask(
    rig: Rig,
    offset: int = 0,
    *,
    version: int = 11,
    size: int = LOTS,
    most: int = LOTS,
    wait_ms: int = 0,
    min_bytes: int = 1,
    replica_id: int = -1,
    partitions: tuple[int, ...] = (0,),
) -> dict[int, FetchPartitionResponse]:
    asked = [FetchPartition(number, offset, size) for number in partitions]
    request = FetchRequest(replica_id, wait_ms, min_bytes, [FetchTopic("t", asked)], max_bytes=most)
    api = FetchApi(rig.runtime, rig.replicas, rig.view)
    answer = api.handle(RequestHeader(1, version, 1, "c"), request)
    return {each.partition: each for each in answer.topics[0].partitions}


def bytes_of(answer: FetchPartitionResponse) -> bytes:
    data = answer.message_set
    return data.read() if hasattr(data, "read") else bytes(data)


def families(data: bytes) -> set[bool]:
    return {each.magic == 2 for each in iter_entries(data)}


def consume(rig: Rig, offset: int = 0, **asked: Any) -> list[list[int]]:
    """The offsets of the messages in each answer, fetch after fetch. Each has one family, and
    something to send. A fetch begins after the last entry, whose last messages may be compacted
    away."""
    answers = []
    end = ask(rig, offset)[0].high_watermark
    while offset < end:
        found = ask(rig, offset, **asked)[0]
        assert found.error == 0
        data = bytes_of(found)
        assert len(families(data)) == 1
        new = [each.offset for each in iter_messages(data) if each.offset >= offset]
        assert new
        answers.append(new)
        offset = list(iter_entries(data))[-1].offset + 1
    return answers


@pytest.mark.parametrize("version", [4, 11])
@pytest.mark.parametrize("order", list(itertools.permutations((0, 1, 2))))
def test_every_order_of_formats_in_every_codec(
    rig: Rig, order: tuple[int, ...], version: int
) -> None:
    log = rig.lead().leader_log()
    formats = []
    for magic in (*order, *order):
        for data in sets_of(magic):
            log.append(writable(data))
            formats += [magic == 2] * 2
    rig.lead()
    expected = [
        [offset for offset, _ in run]
        for _, run in itertools.groupby(enumerate(formats), lambda each: each[1])
    ]
    assert consume(rig, version=version) == expected
    assert consume(rig, version=version) == expected  # wrappers come from the cache now
    for size in (1, 70, 200):  # an answer can end before its family does
        found = consume(rig, version=version, size=size)
        assert list(itertools.chain(*found)) == list(range(len(formats)))


@pytest.mark.parametrize("offset", range(6))
def test_a_fetch_from_any_offset(rig: Rig, offset: int) -> None:
    log = rig.lead().leader_log()
    for data in (OLD, batch(simple(b"a", b"b")), timed(PAIRS)):
        log.append(writable(data))
    rig.lead()
    last = (offset // 2 + 1) * 2
    assert consume(rig, offset)[0] == list(range(offset, last))


def mixed(rig: Rig, partition: int = 0) -> tuple[int, int]:
    """Two messages of format 0 and a batch of two; their bytes."""
    log = rig.lead(partition=partition).leader_log()
    new = batch(simple(b"a", b"b"))
    log.append(writable(OLD))
    log.append(writable(new))
    rig.lead(partition=partition)
    return len(OLD), len(new)


def test_followers_get_all(rig: Rig) -> None:
    old, new = mixed(rig)
    rig.lead(replicas=[ME, PEER])
    for version in (0, 4, 5, 11):
        data = bytes_of(ask(rig, version=version, replica_id=PEER)[0])
        assert len(data) == old + new
    assert families(data) == {False, True}
    assert families(bytes_of(ask(rig, replica_id=-2)[0])) == {False}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [150, 250, LOTS])
def test_versions_that_do_not_read_batches(rig: Rig, version: int, size: int) -> None:
    """Their answers go on over the change, all in formats 0 and 1."""
    log = rig.lead().leader_log()
    for magic in (0, 2, 1, 2, 0):
        for data in sets_of(magic)[:2]:
            log.append(writable(data))
    rig.lead()
    offset, magics = 0, set()
    while offset < 20:
        data = bytes_of(ask(rig, offset, version=version, size=size)[0])
        magics |= {each.magic for each in iter_entries(data)}
        new = [each.offset for each in iter_messages(data) if each.offset >= offset]
        assert new == list(range(offset, new[-1] + 1))
        offset = new[-1] + 1
    assert magics == ({0} if version < 2 else {0, 1})


def waiting(rig: Rig, *actions: Callable[[], Any], **asked: Any) -> tuple[list[int], float]:
    before = rig.clock.now
    rig.runtime.while_waiting = list(actions)
    found = ask(rig, wait_ms=500, **asked)
    assert rig.runtime.while_waiting == []
    return [len(bytes_of(each)) for each in found.values()], rig.clock.now - before


def test_nobody_waits_for_more_than_one_family(rig: Rig) -> None:
    old, new = mixed(rig)
    assert waiting(rig, min_bytes=LOTS) == ([old], 0)
    # The newest family can grow.
    assert waiting(rig, lambda: None, offset=2, min_bytes=LOTS) == ([new], 0.5)


def test_a_change_of_family_ends_a_wait(rig: Rig) -> None:
    rig.lead()
    rig.append("a")
    size = len(bytes_of(ask(rig)[0]))

    def append(data: bytes) -> Callable[[], Any]:
        return lambda: rig.produce((*T, data))

    assert waiting(rig, append(batch(simple(b"b"))), min_bytes=LOTS) == ([size], 0)


def test_one_of_several_partitions_ends_with_its_family(rig: Rig) -> None:
    old, _ = mixed(rig)
    rig.lead(partition=1)
    rig.append("a", partition=1)
    found, took = waiting(rig, partitions=(1, 0), min_bytes=LOTS)
    assert found[1] == old and found[0] > 0 and took == 0
    # the limit for all partitions
    found, _ = waiting(rig, partitions=(0, 1), most=old)
    assert found == [old, 0]


def test_the_high_watermark_at_the_change(rig: Rig) -> None:
    log = rig.lead(replicas=[ME, PEER]).leader_log()
    log.append(writable(OLD))
    log.append(writable(batch(simple(b"a", b"b"))))
    ask(rig, 2, replica_id=PEER)
    # These bytes can grow: entries above it are not looked at.
    found, took = waiting(rig, lambda: ask(rig, 4, replica_id=PEER), min_bytes=LOTS)
    assert (found, took) == ([len(OLD)], 0)
    found, took = waiting(rig, lambda: None, offset=2, min_bytes=LOTS)
    assert took == 0.5


def test_the_end_of_a_segment_at_the_change(rig: Rig) -> None:
    log = rig.lead().leader_log()
    for data in (OLD, batch(simple(b"a", b"b")), OLD):
        log.append(writable(data))
        log.roll()
    rig.lead()
    assert consume(rig) == [[0, 1], [2, 3], [4, 5]]
    assert waiting(rig, min_bytes=LOTS) == ([len(OLD)], 0)


def test_limits_below_the_first_entry(rig: Rig) -> None:
    """It is whole in versions from 3 on, and alone."""
    old, new = mixed(rig)
    for size in (1, 11, 17, old // 2 - 1):
        assert len(bytes_of(ask(rig, size=size)[0])) == old // 2
    for size in (1, 17, new - 1, new):
        assert len(bytes_of(ask(rig, 2, size=size)[0])) == new
    for size in range(old, old + new + 1):
        assert len(bytes_of(ask(rig, size=size)[0])) == old


def test_records_deleted_up_to_the_change_and_within_a_batch(rig: Rig) -> None:
    mixed(rig)
    log = rig.replicas.partition(T).leader_log()  # type: ignore[arg-type]
    log.delete_records(1)
    assert ask(rig, 0)[0].error == 1
    assert consume(rig, 1) == [[1], [2, 3]]
    log.delete_records(3)
    assert consume(rig, 3) == [[3]]


def test_a_sent_slice_is_not_changed_by_later_appends(rig: Rig) -> None:
    rig.lead()
    rig.append("a")
    found = ask(rig)[0].message_set
    rig.produce((*T, batch(simple(b"b"))))
    assert families(found.read()) == {False}
    assert consume(rig) == [[0], [1]]


def test_a_message_of_0_8_between_batches_that_grow_when_they_are_rebuilt(rig: Rig) -> None:
    """Producers' wrappers with inner offsets from 0 are rebuilt for consumers."""
    log = rig.lead().leader_log()
    for _ in range(3):
        log.append(writable(wrapper(plain(PAIRS * 5), 1)))
        log.append(writable(batch(simple(b"a"))))
    rig.lead()
    runs = consume(rig)
    assert [len(run) for run in runs] == [10, 1] * 3
    assert consume(rig) == runs


def test_a_cleaned_log(rig: Rig) -> None:
    """A segment that the cleaner wrote from several ones is a new file with any formats in turn."""
    log = rig.lead().leader_log()
    kept = [
        plain([(b"a", b"1")], 0),
        plain([(b"b", b"1")], 3),
        batch([(b"c", b"1", 0, [])], 5, last_delta=3, deltas=[1]),
        timed([(b"d", b"1")], 12),
        batch([], 13, last_delta=2),
        batch([(b"e", b"1", 0, [])], 16),
    ]
    log.append(writable(b"".join(kept)), assign_offsets=False)
    rig.lead()
    assert consume(rig) == [[0, 3], [6], [12], [16]]
    for offset, expected in ((1, [3]), (4, [6]), (9, [12]), (13, [16])):
        assert consume(rig, offset)[0] == expected
    # A batch without records alone is an answer that clients pass: it names its last offset.
    log.append(writable(plain([(b"f", b"1")], 17)), assign_offsets=False)
    log.append(writable(batch([], 18, last_delta=1)), assign_offsets=False)
    log.append(writable(plain([(b"g", b"1")], 20)), assign_offsets=False)
    rig.lead()
    [empty] = iter_entries(bytes_of(ask(rig, 18)[0]))
    assert (empty.offset, empty.magic) == (19, 2)
