"""The stretch of one family that a file remembers, against a look at every entry."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.log.disk import open_unnamed
from kafka08.log.segments import one_family
from kafka08.log.segments.one_family import OneFamily
from kafka08.message.scan import iter_entries
from tests.log.support import open_log, writable
from tests.log.test_formats import SETS
from tests.message.batches import batch, simple, timed
from tests.message.sets import plain

OLD, TIMED, BATCH = plain([(b"k", b"old")]), timed([(b"k", b"timed")]), batch(simple(b"new"))
LONG_OLD, LONG_BATCH = plain([(None, b"x" * 9000)]), batch(simple(b"y" * 9000))
NO_FILE = -1  # reading it is an error


@pytest.fixture
def fd() -> Iterator[int]:
    found = open_unnamed("entries")
    yield found
    os.close(found)


def family_end(data: bytes, position: int, end: int) -> int:
    """The slow way."""
    entries = [each for each in iter_entries(data) if position <= each.position < end]
    others = [e.position for e in entries if (e.magic == 2) != (entries[0].magic == 2)]
    return others[0] if others else end


def test_appends_of_one_family_are_not_read_again() -> None:
    for entry in (OLD, TIMED, BATCH):
        known, size = OneFamily(), len(entry)
        for n in range(3):
            known.appended(writable(entry), n * size, False)
        for end in (1, size, 3 * size - 1, 3 * size):
            assert known.end(NO_FILE, 0, end) == end
        with pytest.raises(OSError):
            known.end(NO_FILE, 0, 3 * size + 1)


def test_formats_0_and_1_are_one_family(fd: int) -> None:
    data = OLD + TIMED + OLD + BATCH + BATCH + TIMED
    os.pwrite(fd, data, 0)
    messages, batches = 2 * len(OLD) + len(TIMED), 2 * len(BATCH)
    known = OneFamily()
    assert known.end(fd, 0, len(data)) == messages
    assert known.end(NO_FILE, 0, messages) == messages
    assert known.end(fd, messages, len(data)) == messages + batches
    assert known.end(fd, messages + batches, len(data)) == len(data)


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_cut_last_entry_of_the_other_family_stays_out(fd: int, cut: int) -> None:
    for one, other in ((OLD, BATCH), (BATCH, OLD)):
        os.pwrite(fd, one + other, 0)
        end = len(one) + min(cut, len(other))
        assert OneFamily().end(fd, 0, end) == len(one)
        known = OneFamily()
        known.appended(writable(one), 0, True)
        assert known.end(fd, 0, end) == len(one)
        os.ftruncate(fd, 0)


def test_bytes_before_the_end_of_the_first_entry_are_of_its_family(fd: int) -> None:
    os.pwrite(fd, BATCH + OLD, 0)
    for end in range(1, len(BATCH) + 1):
        assert OneFamily().end(fd, 0, end) == end


def test_readers_share_what_they_found(fd: int) -> None:
    data = OLD * 1000
    os.pwrite(fd, data, 0)
    known = OneFamily()
    middle = len(OLD) * 500
    assert known.end(fd, 0, middle) == middle
    assert known.end(NO_FILE, len(OLD) * 3, middle - 5) == middle - 5
    assert known.end(fd, middle, len(data)) == len(data)
    known.appended(writable(TIMED), len(data), False)
    assert known.end(NO_FILE, 0, len(data) + len(TIMED)) == len(data) + len(TIMED)


def test_a_look_at_unknown_entries_is_bounded(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_family, "_LONGEST", 3 * len(OLD))
    monkeypatch.setattr(one_family, "FIRST_READ", len(OLD))
    monkeypatch.setattr(one_family, "_LONG_READ", len(OLD))
    data = OLD * 10 + LONG_OLD * 2
    os.pwrite(fd, data, 0)
    known = OneFamily()
    assert known.end(fd, 0, len(data)) == 3 * len(OLD)
    assert known.end(fd, 0, len(data)) == 6 * len(OLD)  # it goes on where it was known
    assert known.end(fd, 9 * len(OLD), len(data)) == 10 * len(OLD) + len(LONG_OLD)
    large = 10 * len(OLD)
    assert OneFamily().end(fd, large, len(data) - 1) == large + len(LONG_OLD)
    assert OneFamily().end(fd, large, large + 100) == large + 100  # the first one is not cut off


def test_what_follows_damage_counts_to_its_family(fd: int) -> None:
    for size in (0, 13, -1, -(2**31)):
        data = OLD + struct.pack(">qi", 1, size) + OLD[12:] + BATCH
        os.pwrite(fd, data, 0)
        assert OneFamily().end(fd, 0, len(data)) == len(data)
        assert OneFamily().end(fd, len(OLD), len(data)) == len(data)
        os.ftruncate(fd, 0)
    beyond = OLD + struct.pack(">qi", 1, 2**31 - 1) + OLD[12:]
    os.pwrite(fd, beyond, 0)
    known = OneFamily()
    assert known.end(fd, 0, len(beyond)) == len(beyond)
    known.appended(writable(BATCH), len(beyond), False)
    os.pwrite(fd, BATCH, len(beyond))
    assert known.end(fd, len(beyond), len(beyond + BATCH)) == len(beyond + BATCH)
    assert OneFamily().end(fd, 0, 1000) == 1000  # after a cut there is less than was asked for


@given(data=st.data())
@pytest.mark.parametrize("first_read", [17, 100, 4096])
def test_it_agrees_with_a_look_at_every_entry(first_read: int, data: st.DataObject) -> None:
    """Appends of any sets, cuts and reads in any order."""
    fd, known, stored = open_unnamed("entries"), OneFamily(), b""
    sets = st.lists(st.sampled_from([OLD, TIMED, BATCH, LONG_OLD, LONG_BATCH]), min_size=1)
    before = one_family.FIRST_READ
    one_family.FIRST_READ = first_read
    try:
        for action in data.draw(st.lists(st.sampled_from("aarrc"), max_size=30)):
            starts = [each.position for each in iter_entries(stored)]
            if action == "a":
                added = b"".join(data.draw(sets))
                os.pwrite(fd, added, len(stored))
                if data.draw(st.booleans()):  # a file that was opened after that
                    known.appended(writable(added), len(stored), False)
                stored += added
            elif action == "c":
                at = data.draw(st.sampled_from([*starts, len(stored)]))
                stored = stored[:at]
                os.ftruncate(fd, at)
                known.cut(at)
            elif starts:
                position = data.draw(st.sampled_from(starts))
                end = data.draw(st.integers(position + 1, len(stored)))
                expected = family_end(stored, position, end)
                assert known.end(fd, position, end) == expected
                # the same once more
                assert known.end(fd, position, end) == expected
    finally:
        one_family.FIRST_READ = before
        os.close(fd)


def families(path: Path, clean: bool) -> None:
    log = open_log(path, clean_shutdown=clean)
    position = 0
    found = []
    while position < log.size:
        part = log.segments[0].read(0, 1, None)
        assert part is not None
        part.position, part.size = position, log.size - position
        one = part.of_one_family()
        assert (one is part) == (len(one) == len(part))
        found.append({each.magic == 2 for each in iter_entries(one.read())})
        position = one.end
    assert found == [{False}, {True}, {False}, {True}, {False}]


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_is_opened_again(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path)
    for data in SETS:
        log.append(writable(data))
    families(tmp_path, clean)


def test_a_log_that_is_cut_and_goes_on(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for data in (OLD, BATCH, BATCH):
        log.append(writable(data))
    assert len(log.read(0, 1 << 20).of_one_family()) == len(OLD)
    log.truncate_to(1)
    log.append(writable(OLD))
    log.append(writable(TIMED))
    part = log.read(0, 1 << 20)
    assert part.of_one_family() is part
    log.truncate_to(0)
    for data in (BATCH, OLD):
        log.append(writable(data))
    assert len(log.read(0, 1 << 20).of_one_family()) == len(BATCH)


def test_a_set_of_a_leader_with_both(tmp_path: Path) -> None:
    log = open_log(tmp_path / "leader")
    for data in (OLD, BATCH, TIMED):
        log.append(writable(data))
    follower = open_log(tmp_path / "follower")
    copied = log.read(0, 1 << 20).read()
    follower.append(writable(copied), assign_offsets=False)
    follower.append(writable(BATCH))
    sizes = [len(follower.read(offset, 1 << 20).of_one_family()) for offset in range(4)]
    assert sizes == [len(OLD), len(BATCH), len(TIMED), len(BATCH)]
    assert len(follower.read(0, 1 << 20)) == len(copied + BATCH)
