"""Segments rewritten for 0.8.2.2: what changes, what stays, and what a crash leaves."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.log.log import Log
from kafka08.log.segments import integrity
from kafka08.log.segments.index import OffsetIndex
from kafka08.message.entry import encode_entry
from kafka08.message.scan import iter_entries
from kafka08.message.sets import assign_offsets, encode_set, iter_messages
from kafka08.settings.topic import LogConfig
from tests.fakes.runtime import FakeClock
from tests.log.faulty_files import Crash
from tests.message.batches import batch, simple, timed, timed_wrapper
from tests.message.sets import has_absolute_offsets
from tools.logs import conversion
from tools.logs.conversion import Done, NotWalkableError, SegmentLimits

LIMITS = SegmentLimits(max_message_bytes=1 << 20, index_interval_bytes=200)
Records = list[tuple[bytes | None, bytes | None]]


def some(count: int, size: int = 20, seed: int = 1) -> Records:
    noise = random.Random(seed)
    return [(b"%d" % i, noise.randbytes(size)) for i in range(count)]


def stored(*sets: bytes, base: int = 0) -> bytes:
    """As our leader writes these produced sets."""
    parts = []
    for each in sets:
        data = bytearray(each)
        appended = assign_offsets(memoryview(data), base, 1 << 26)
        base = appended.last_offset + 1
        parts.append(bytes(data))
    return b"".join(parts)


def put(directory: Path, data: bytes, base: int = 0) -> str:
    path = directory / f"{base:020d}.log"
    path.write_bytes(data)
    os.utime(path, ns=(10**18, 10**18))
    conversion.rebuild_index(str(path), LIMITS)
    return str(path)


def run(work: Generator[int, None, Done]) -> tuple[Done, int]:
    total = 0
    while True:
        try:
            total += next(work)
        except StopIteration as end:
            return end.value, total


def convert(path: str, limits: SegmentLimits = LIMITS, **options: Any) -> Done:
    done, _ = run(conversion.convert_segment(path, limits, **options))
    return done


def contents(data: bytes) -> list[tuple[Any, ...]]:
    """All there is to a message but the wrapper it came in."""
    return [(m.offset, m.key, m.value, m.crc, m.attributes) for m in iter_messages(data)]


def messages(data: bytes) -> list[tuple[Any, ...]]:
    return [tuple(message[:3]) for message in iter_messages(data)]


def is_fit(data: bytes) -> bool:
    assert not any(entry.magic for entry in iter_entries(data))
    return all(
        not entry.codec
        or has_absolute_offsets(data[entry.position : entry.position + entry.size_total])
        for entry in iter_entries(data)
    )


MIXED = stored(
    encode_set(some(3)),
    encode_set(some(10), 1),
    encode_set(some(1), 2),
    encode_set(some(4)),
    encode_set(some(7), 2),
    encode_set(some(30), 1) + encode_set(some(5), 3) + encode_set(some(2)),
    base=40,
)

LATER = b"".join(
    [
        encode_set(some(3), base_offset=40),
        batch(simple(*[b"x%d" % i * 9 for i in range(12)]), 43, 1),
        timed([(b"k", b"v" * 50)] * 3, 55),
        timed_wrapper(timed([(b"k", b"w")] * 3), 2, 60),
        batch([(b"\0\0\0\1", b"", 0, [])], 61, attributes=0x30),
        batch(simple(*[b"y" * 50] * 6), 62),
        batch(simple(b"z"), 68, 4),
    ]
)


def test_later_formats_become_format_0(tmp_path: Path) -> None:
    path = put(tmp_path, LATER, 40)
    for dry_run in (True, False):
        done = convert(path, dry_run=dry_run, is_last=True)
        assert (done.counts["wrappers"], done.counts["later"], done.problems) == (0, 8, ())
        assert (
            done.counts["headers"],
            done.counts["timestamps"],
            done.counts["control"],
            done.counts["fillers"],
        ) == (19, 25, 1, 0)
    data = Path(path).read_bytes()
    assert messages(data) == messages(LATER)
    assert is_fit(data) and {entry.codec for entry in iter_entries(data)} == {0, 1, 2}
    assert convert(path, is_last=True).counts["later"] == 0


def test_the_log_keeps_its_end(tmp_path: Path) -> None:
    marker = batch([(b"\0\0\0\1", b"", 0, [])], 1, attributes=0x30)
    data = batch(simple(b"a")) + marker
    done = convert(put(tmp_path, data), is_last=True)
    assert (done.counts["control"], done.counts["fillers"]) == (1, 1)
    path = tmp_path / f"{0:020d}.log"
    assert messages(path.read_bytes()) == [(0, b"k", b"a"), (1, b"", b"")]
    done = convert(put(tmp_path, data))
    assert (done.counts["control"], done.counts["fillers"]) == (1, 0)
    assert messages(path.read_bytes()) == [(0, b"k", b"a")]


def test_a_converted_batch_is_split_if_it_is_too_large(tmp_path: Path) -> None:
    data = batch([(b"k", each[1], 0, []) for each in some(40)], 0, 1)
    path = put(tmp_path, data)
    done = convert(path, LIMITS._replace(max_message_bytes=400))
    made = Path(path).read_bytes()
    assert done.counts["oversized"] == 0 and messages(made) == messages(data)
    sizes = [entry.size_total for entry in iter_entries(made)]
    assert len(sizes) > 1 and max(sizes) <= 400


def test_wrappers_get_true_offsets_and_nothing_else_changes(tmp_path: Path) -> None:
    path = put(tmp_path, MIXED, 40)
    done, told = run(conversion.convert_segment(path, LIMITS))
    made = Path(path).read_bytes()
    assert (done.counts["wrappers"], done.counts["made"], done.problems) == (5, 5, ())
    assert (done.size_before, done.size_after) == (len(MIXED), len(made))
    assert told == len(MIXED)
    assert is_fit(made)
    assert not is_fit(MIXED)
    assert contents(made) == contents(MIXED)
    assert [e.offset for e in iter_entries(made)] == [e.offset for e in iter_entries(MIXED)]
    assert os.stat(path).st_mtime_ns == 10**18
    assert sorted(os.listdir(tmp_path)) == [f"{40:020d}.index", f"{40:020d}.log"]


def test_the_index_leads_to_every_offset(tmp_path: Path) -> None:
    path = put(tmp_path, MIXED, 40)
    convert(path)
    made = Path(path).read_bytes()
    index = OffsetIndex(conversion.index_path(path), 40)
    assert index.entries >= 3
    assert index.problem(len(made), thorough=True) is None
    entries = list(iter_entries(made))
    for slot in range(index.entries):
        offset, position = index.entry(slot)
        (target,) = [e for e in entries if e.position == position]
        first = next(iter_messages(made[position : position + target.size_total]))
        assert first.offset == offset  # as 0.8.2.2 rebuilds it
    index.close()


def test_what_is_right_is_not_touched(tmp_path: Path) -> None:
    right = encode_set(some(5), 1, base_offset=0) + encode_set(some(5), 0, base_offset=5)
    path = put(tmp_path, right)
    before = os.stat(path)
    assert convert(path) == Done(len(right), len(right), (0,), (), Counter())
    assert os.stat(path).st_ino == before.st_ino
    convert(put(tmp_path, MIXED, 40))
    assert (
        convert(put(tmp_path, Path(tmp_path / f"{40:020d}.log").read_bytes(), 40)).counts[
            "wrappers"
        ]
        == 0
    )


def test_survivors_of_compaction_keep_their_offsets(tmp_path: Path) -> None:
    inner = encode_entry(b"a", b"1", 3) + encode_entry(b"b", b"2", 7)
    entry = encode_entry(b"key", conversion.compress(1, inner), 7, 1)
    path = put(tmp_path, entry)
    assert convert(path).counts["wrappers"] == 0
    assert Path(path).read_bytes() == entry


def test_nesting_is_flattened(tmp_path: Path) -> None:
    nested = encode_entry(None, conversion.compress(1, encode_set(some(3), 2)), 2, 1)
    path = put(tmp_path, nested)
    assert convert(path).counts["wrappers"] == 1
    made = Path(path).read_bytes()
    assert is_fit(made)
    assert contents(made) == contents(nested)


def test_lz4_frames_of_later_clients_are_replaced(tmp_path: Path) -> None:
    inner = encode_set(some(3))
    foreign = encode_entry(None, lz4.frame.compress(inner), 2, 3)
    assert has_absolute_offsets(foreign)
    path = put(tmp_path, foreign)
    assert convert(path).counts["wrappers"] == 1
    made = Path(path).read_bytes()
    assert contents(made) == contents(foreign)
    assert convert(path).counts["wrappers"] == 0


def test_a_wrapper_that_grows_too_large_is_split(tmp_path: Path) -> None:
    equal: Records = [(None, b"x" * 40)] * 4000
    produced = encode_entry(None, conversion.compress(1, encode_set(equal[:1]) * 4000), 0, 1)
    data = stored(produced, encode_set(some(2)), base=7)
    limit = len(produced) + 100
    path = put(tmp_path, data, 7)
    grown = convert(path, dry_run=True)
    assert grown.counts["made"] == 1
    assert grown.size_after > len(data) + 100
    done = convert(path, SegmentLimits(limit, 200))
    made = Path(path).read_bytes()
    assert done.counts["wrappers"] == 1
    assert done.counts["made"] > 1
    assert done.counts["oversized"] == 0
    assert max(entry.size_total for entry in iter_entries(made)) <= limit
    assert is_fit(made)
    assert contents(made) == contents(data)


def test_one_message_cannot_be_split(tmp_path: Path) -> None:
    data = stored(encode_set(some(1, 3000), 1), base=5)
    path = put(tmp_path, data, 5)
    done = convert(path, SegmentLimits(2000, 200))
    assert (done.counts["made"], done.counts["oversized"]) == (1, 1)
    assert contents(Path(path).read_bytes()) == contents(data)


def test_a_file_that_grows_too_large_goes_on_in_another(tmp_path: Path) -> None:
    path = put(tmp_path, MIXED, 40)
    limits = LIMITS._replace(max_segment_bytes=600)
    dry = convert(path, limits, dry_run=True)
    assert Path(path).read_bytes() == MIXED
    done = convert(path, limits)
    assert done == dry
    files = sorted(tmp_path.glob("*.log"))
    assert [int(file.stem) for file in files] == list(done.bases)
    assert len(files) > 1
    pieces = [file.read_bytes() for file in files]
    assert contents(b"".join(pieces)) == contents(MIXED)
    for base, file, data in zip(done.bases, files, pieces, strict=True):
        assert base <= contents(data)[0][0]
        assert file.with_suffix(".index").exists()
        assert file.stat().st_mtime_ns == 10**18


def test_what_cannot_be_read_stays_as_it_is(tmp_path: Path) -> None:
    entries = list(iter_entries(MIXED))
    wrappers = [entry for entry in entries if entry.codec]
    data = bytearray(MIXED)
    data[wrappers[2].position + 40] ^= 1
    path = put(tmp_path, bytes(data), 40)
    done = convert(path)
    assert done.counts["wrappers"] == 4
    assert done.problems == (
        f"position {wrappers[2].position}, offset {wrappers[2].offset}: wrong crc",
    )
    bad = bytes(data[wrappers[2].position : wrappers[2].position + wrappers[2].size_total])
    assert bad in Path(path).read_bytes()
    for spoilt in (MIXED[:-1], MIXED + b"junk", MIXED.replace(b"\0\0\0\0\0\0\0\x2a", bytes(8))):
        file = tmp_path / f"{40:020d}.log"
        file.write_bytes(spoilt)
        done = convert(str(file))
        assert done.counts["wrappers"] == 0
        assert done.problems
        assert file.read_bytes() == spoilt
        assert len(os.listdir(tmp_path)) == 2
        with pytest.raises(NotWalkableError):
            conversion.rebuild_index(str(file), LIMITS)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from([0, 1, 2, 3]), st.integers(0, 9)),
        min_size=1,
        max_size=12,
    ),
    st.integers(60, 2000),
    st.integers(100, 2000),
)
def test_any_sets(tmp_path_factory: Any, sets: Any, limit: int, segment: int) -> None:
    directory = tmp_path_factory.mktemp("any")
    data = stored(*(encode_set(some(n, 9, s), codec) for n, codec, s in sets), base=9)
    path = put(directory, data, 9)
    convert(path, SegmentLimits(limit, 100, 10 << 20, segment))
    made = [file.read_bytes() for file in sorted(directory.glob("*.log"))]
    assert all(map(is_fit, made))
    assert contents(b"".join(made)) == contents(data)
    shutil.rmtree(directory)


CALLS = ("unlink", "replace", "fsync", "utime")


@pytest.mark.parametrize("data", ["mixed", "later"])
def test_a_crash_anywhere_leaves_what_the_next_run_finishes(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = MIXED if data == "mixed" else LATER
    limits = LIMITS._replace(max_segment_bytes=600)
    steps = 0
    while True:
        directory = tmp_path / f"t-{steps}"
        directory.mkdir()
        path = put(directory, before, 40)
        for suffix in conversion.LATER_SUFFIXES:
            Path(path).with_suffix(suffix).touch()
        os.replace(integrity.write(path, integrity.summed(path)), integrity.seal_path(path))
        left = [steps]

        def counted(call: Any, left: list[int] = left) -> Any:
            def wrapper(*words: Any, **options: Any) -> Any:
                if not left[0]:
                    raise Crash
                left[0] -= 1
                return call(*words, **options)

            return wrapper

        with monkeypatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, counted(getattr(os, name)))
            try:
                convert(path, limits)
                break
            except Crash:
                pass
        if steps % 2:
            conversion.settle(str(directory))
        else:  # or a broker comes first
            Log(str(directory), LogConfig(), clean_shutdown=True, clock=FakeClock()).close()
        for log in sorted(directory.glob("*.log")):
            if not log.with_suffix(".index").exists():  # the tool looks first, too
                conversion.rebuild_index(str(log), limits)
            convert(str(log), limits)
        files = sorted(directory.glob("*.log"))
        assert messages(b"".join(file.read_bytes() for file in files)) == messages(before)
        assert all(is_fit(file.read_bytes()) for file in files)
        conversion.settle(str(directory))
        for suffix in conversion.LATER_SUFFIXES:  # some are another start's, or of no segment
            for left_over in directory.glob(f"*{suffix}"):
                left_over.unlink()
        assert len(os.listdir(directory)) == 2 * len(files) + len(list(directory.glob("*.crc32c")))
        for file in files:
            index = OffsetIndex(str(file.with_suffix(".index")), int(file.stem))
            assert index.problem(file.stat().st_size, thorough=True) is None
            index.close()
        steps += 1
    assert steps > 10
