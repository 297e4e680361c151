"""Wrapped sets through everything that happens to a log: true offsets, whole wrappers."""

from __future__ import annotations

import os
from pathlib import Path
from struct import iter_unpack

import pytest

from kafka08.log.cleaning import compaction
from kafka08.log.cleaning.cleaner_job import CleanedGroup, Job, SealedSegment
from kafka08.log.cleaning.throttler import Throttler
from kafka08.log.log import Log
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.sets import iter_messages
from tests.fakes.runtime import FakeClock
from tests.log.support import append, everything, open_log, segment_paths, writable

GZIP, SNAPPY, LZ4 = 1, 2, 3


def wrapper(codec: int, inner: list[int], *texts: str, nested: bool = False) -> memoryview:
    """A producer's wrapper whose messages carry these offsets; nested: the first two once more."""
    leaves = [encode_entry(b"k", text.encode(), at) for at, text in zip(inner, texts, strict=True)]
    if nested:
        leaves[:2] = [encode_entry(None, compress(GZIP, b"".join(leaves[:2])), 0, GZIP)]
    return writable(encode_entry(None, compress(codec, b"".join(leaves)), 99, codec))


def odd_wrappers(log: Log) -> list[tuple[int, str]]:
    """Four wrappers and two plain messages: offsets 0-2, 3, 4-6, 7-9, 10, 11-12."""
    log.append(wrapper(GZIP, [0, 0, 0], "a", "b", "c"))
    append(log, "d")
    log.append(wrapper(SNAPPY, [-1, -1, -1], "e", "f", "g"))
    log.append(wrapper(LZ4, [0, 1, 2], "h", "i", "j", nested=True))
    append(log, "k")
    log.append(wrapper(GZIP, [5, 9], "l", "m"))
    return list(enumerate("abcdefghijklm"))


def test_retention_takes_wrappers_whole(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200, retention_bytes=200, retention_ms=1 << 50)
    content = odd_wrappers(log)
    assert len(log.segments) > 2
    assert log.delete_old_segments()
    start = log.log_start_offset
    assert 0 < start < 13
    assert everything(log) == content[start:]


def test_truncation_inside_a_wrapper_takes_it_whole_and_the_refetch_brings_it_back(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    leader = open_log(tmp_path / "leader", clock)
    content = odd_wrappers(leader)
    follower = open_log(tmp_path / "follower", clock)
    follower.append(writable(leader.read(0, 1 << 20).read()), assign_offsets=False)
    follower.truncate_to(8)
    assert follower.log_end_offset == 8
    assert everything(follower) == content[:7]
    assert len(follower.read(7, 1 << 20)) == 0  # the gap
    # a fetch at 8 is answered with the whole wrapper, which ends at 9
    follower.append(writable(leader.read(8, 1 << 20).read()), assign_offsets=False)
    assert everything(follower) == content
    assert (
        Path(follower.segments[0].path).read_bytes() == Path(leader.segments[0].path).read_bytes()
    )


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_truncated_inside_a_wrapper_is_reopened(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    content = odd_wrappers(log)
    log.truncate_to(8)
    log.flush()
    log.close()
    log = open_log(tmp_path, clean_shutdown=clean, recovery_point=8, index_interval_bytes=0)
    assert log.log_end_offset == 7  # the last whole wrapper; a follower fetches the rest again
    assert everything(log) == content[:7]


def test_recovery_cuts_a_damaged_wrapper_and_keeps_those_before(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    content = odd_wrappers(log)
    path = segment_paths(log.directory)[0]
    damaged = log.segments[0].position_of(8)
    assert damaged is not None
    data = bytearray(path.read_bytes())
    data[damaged + 40] ^= 1
    path.write_bytes(data)
    log = open_log(tmp_path, index_interval_bytes=0)
    assert log.log_end_offset == 7
    assert everything(log) == content[:7]
    append(log, "again")
    assert everything(log)[-1] == (7, "again")


def test_a_rebuilt_index_leads_to_every_message_of_every_wrapper(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    content = odd_wrappers(log)
    log.flush()
    log.close()
    index = segment_paths(log.directory, ".index")[0]
    written = index.read_bytes()
    os.unlink(index)
    log = open_log(tmp_path, clean_shutdown=True, index_interval_bytes=0)
    log.flush()
    log.close()
    rebuilt = list(iter_unpack(">ii", index.read_bytes()))
    # append leaves the entry for the second set to the third: its counter begins at zero
    assert set(iter_unpack(">ii", written)) <= set(rebuilt)
    assert [offset for offset, _ in rebuilt] == [3, 4, 7, 10, 11]
    log = open_log(tmp_path, clean_shutdown=True, index_interval_bytes=0)
    assert everything(log) == content


def test_every_offset_is_found_in_its_wrapper(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    content = odd_wrappers(log)
    first_of = [0, 0, 0, 3, 4, 4, 4, 7, 7, 7, 10, 11, 11]
    for offset, first in enumerate(first_of):
        found = list(iter_messages(log.read(offset, 1 << 20).read()))
        texts = [(m.offset, (m.value or b"").decode()) for m in found]
        assert texts == content[first:], offset
        # a bound inside a wrapper keeps it back
        for bound in range(offset, 13):
            until = first_of[bound]
            kept = list(iter_messages(log.read(offset, 1 << 20, bound).read()))
            assert [m.offset for m in kept] == list(range(first, until)), (offset, bound)


def test_compaction_keeps_true_offsets_in_wrappers(tmp_path: Path) -> None:
    clock = FakeClock()
    log = open_log(tmp_path, clock, segment_bytes=400, cleanup_policy="compact")

    def put(codec: int, inner: list[int], *pairs: tuple[bytes, bytes]) -> None:
        leaves = [encode_entry(k, v, at) for at, (k, v) in zip(inner, pairs, strict=True)]
        log.append(writable(encode_entry(None, compress(codec, b"".join(leaves)), 0, codec)))

    put(GZIP, [0, 0, 0], (b"a", b"0"), (b"b", b"1"), (b"a", b"2"))
    put(SNAPPY, [0, 1, 2], (b"c", b"3"), (b"b", b"4"), (b"d", b"5"))
    put(LZ4, [-1, -1], (b"e", b"6"), (b"c", b"7"))
    log.roll()
    put(GZIP, [0], (b"a", b"8"))
    log.flush()
    sources = [
        SealedSegment(s.base_offset, following.base_offset, s.size, 0)
        for s, following in zip(log.segments, log.segments[1:], strict=False)
    ]
    job = Job(log.directory, sources, 0, 0, 1000, 1 << 16, 400, 1024, 100, 1 << 20)
    groups: list[CleanedGroup] = []
    compaction.clean(job, lambda line: None, groups.append, Throttler(float("inf"), -1))
    for group in groups:
        if group.changed:
            log.files.prepare_swap(group.bases)
            log.files.replace(0)
    data = b"".join(Path(s.path).read_bytes() for s in log.segments)
    assert [(m.offset, m.key, m.value) for m in iter_messages(data)] == [
        (2, b"a", b"2"),
        (4, b"b", b"4"),
        (5, b"d", b"5"),
        (6, b"e", b"6"),
        (7, b"c", b"7"),
        (8, b"a", b"8"),
    ]
    for offset, first in ((0, 2), (3, 4), (4, 4), (5, 4), (6, 6), (7, 6), (8, 8)):
        found = next(iter_messages(log.read(offset, 1 << 20).read()))
        assert found.offset == first, offset
