"""Files of memory with what consumers are sent instead of stored wrappers."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.log.segments.file_slice import FileSlice
from kafka08.message.scan import iter_entries
from kafka08.message.sets import assign_offsets, encode_set
from kafka08.message.wrappers import Rebuilt, absolute_slice
from kafka08.server.rebuild import cache as rebuild_cache
from kafka08.server.rebuild.cache import STRIP_OVERHEAD, WRAPPER_OVERHEAD, RebuildCache
from tests.message.sets import LIMIT, entries, has_absolute_offsets, plain, rebuild, wrapper

LOTS = 10**6
ROOM = 100 * STRIP_OVERHEAD


def run(cache: RebuildCache, *place: int) -> bytes | None:
    found = cache.run(*place)
    return found.read() if isinstance(found, FileSlice) else found


def get(cache: RebuildCache, serial: int, position: int) -> bytes | None:
    found = cache.known(serial, position, position + 1)
    assert set(found) <= {position}
    return found[position].read() if found else None


def cost(strips: int, wrappers: int, length: int) -> int:
    return strips * STRIP_OVERHEAD + wrappers * WRAPPER_OVERHEAD + length


def test_runs_of_known_entries() -> None:
    cache = RebuildCache(ROOM)
    assert run(cache, 7, 0, 50, LOTS) is None
    for position, data in ((0, b"one"), (30, b"three"), (60, b"five")):
        cache.put(7, position, 30, data)
    assert run(cache, 7, 0, 90, LOTS) == b"onethreefive"
    assert run(cache, 7, 30, 90, LOTS) == b"threefive"
    # a cut last entry is left out, and so is what lies behind what is known
    assert run(cache, 7, 0, 89, LOTS) == b"onethree"
    assert run(cache, 7, 0, 30, LOTS) == b"one"
    assert run(cache, 7, 60, 130, LOTS) == b"five"
    # the first is never cut, the next ones must fit
    assert run(cache, 7, 0, 90, 1) == b"one"
    assert run(cache, 7, 0, 90, 7) == b"one"
    assert run(cache, 7, 0, 90, 8) == b"onethree"
    # no whole entry, within an entry, nothing there, other bytes
    assert run(cache, 7, 60, 89, LOTS) is None
    assert run(cache, 7, 15, 60, LOTS) is None
    assert run(cache, 7, 90, 130, LOTS) is None
    assert run(cache, 8, 0, 90, LOTS) is None
    assert [get(cache, 7, at) for at in (0, 30, 60, 61, 90)] == [
        b"one", b"three", b"five", None, None,
    ]  # fmt: skip
    assert get(cache, 8, 0) is None


def test_where_something_is_missing_in_between_the_file_is_to_be_read() -> None:
    cache = RebuildCache(cost(1, 3, 11))
    for position, data in ((0, b"one"), (30, b"three"), (90, b"six")):
        cache.put(7, position, 30, data)
    assert run(cache, 7, 0, 90, LOTS) == b"onethree"
    assert run(cache, 7, 0, 120, 8) == b"onethree"
    assert run(cache, 7, 0, 120, LOTS) is None
    assert run(cache, 7, 90, 120, LOTS) == b"six"


def test_old_bytes_that_become_known_after_newer_ones() -> None:
    cache = RebuildCache(ROOM)
    for position in (60, 0, 90, 30):
        cache.put(7, position, 30, b"%d" % position)
    assert run(cache, 7, 0, 120, LOTS) == b"030"
    assert run(cache, 7, 60, 120, LOTS) == b"6090"
    assert cache.size == cost(2, 4, 7)


def test_what_is_known_stays_as_it_is() -> None:
    cache = RebuildCache(ROOM)
    cache.put(7, 30, 30, b"first")
    size = cache.size
    for position, length in ((30, 30), (40, 5), (59, 30), (20, 11), (0, 90)):
        cache.put(7, position, length, b"second")
    assert cache.size == size
    assert run(cache, 7, 30, 60, LOTS) == b"first"


def test_the_oldest_files_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild_cache, "STRIP_BYTES", 200 + 2 * WRAPPER_OVERHEAD)
    cache = RebuildCache(cost(3, 6, 600))
    for position in range(0, 1000, 10):
        cache.put(7, position, 10, bytes(100))
        assert cache.size <= cache.max_bytes
    assert cache.size == cost(3, 6, 600)
    assert [position for position in range(0, 1000, 10) if get(cache, 7, position)] == [
        940, 950, 960, 970, 980, 990,
    ]  # fmt: skip
    # a slice ends with its file, the next one begins with the next
    assert run(cache, 7, 940, 1000, LOTS) == bytes(200)
    cache.put(8, 0, 10, bytes(100))
    assert get(cache, 7, 940) is None and get(cache, 7, 960) == bytes(100)
    cache.put(8, 10, 10, bytes(500))  # larger than a file is meant to be
    assert run(cache, 8, 0, 20, LOTS) is None or cache.size <= cache.max_bytes
    assert get(cache, 8, 10) == bytes(500)


def test_a_little_of_the_next_file_goes_with_what_would_be_too_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rebuild_cache, "STRIP_BYTES", 8)
    monkeypatch.setattr(rebuild_cache, "WRAPPER_OVERHEAD", 0)
    cache = RebuildCache(ROOM)
    for position, data in ((0, b"one"), (30, b"three"), (60, b"five"), (90, b"six"), (120, b"x")):
        cache.put(7, position, 30, data)
    everything = (0, 150, LOTS)
    assert run(cache, 7, *everything) == run(cache, 7, *everything, 8) == b"onethree"
    assert run(cache, 7, *everything, 9) == run(cache, 7, *everything, 15) == b"onethreefivesixx"
    # not past the limits
    assert run(cache, 7, 0, 90, LOTS, 9) == b"onethreefive"
    assert run(cache, 7, 0, 150, 15, 9) == b"onethreefivesix"
    assert run(cache, 7, 0, 150, 14, 9) == b"onethreefive"
    assert run(cache, 7, 0, 150, 11, 9) == b"onethree"
    assert run(cache, 7, 0, 61, LOTS, 9) is None  # what is left of the file is for its reader
    # not known
    assert run(cache, 7, 60, 200, LOTS, 9) is None
    assert run(cache, 7, 60, 200, LOTS, 8) == b"fivesixx"


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = RebuildCache(cost(1, 1, 10))
    cache.put(7, 0, 30, bytes(11))
    assert get(cache, 7, 0) is None and cache.size == 0


def test_a_slice_on_its_way_outlives_its_file() -> None:
    cache = RebuildCache(cost(1, 1, 10))
    cache.put(7, 0, 30, b"on its way")
    found = cache.run(7, 0, 30, LOTS)
    cache.put(8, 0, 30, b"the next")
    assert get(cache, 7, 0) is None
    assert isinstance(found, FileSlice) and found.read() == b"on its way"


@pytest.mark.parametrize("call", ["memfd_create", "pwrite"])
def test_without_memory_or_descriptors_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    cache = RebuildCache(ROOM)
    cache.put(7, 0, 30, b"before")

    def refuse(*_: Any) -> int:
        raise OSError(errno.ENFILE, "Too many open files in system")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        for position in (0, 30):
            cache.put(8, position, 30, b"none")
    assert caplog.text.count("are not kept") == 1
    assert get(cache, 8, 0) is None and get(cache, 7, 0) == b"before"
    cache.put(8, 0, 30, b"again")
    assert get(cache, 8, 0) == b"again"
    assert cache.size == cost(2, 2, 11)


places = st.tuples(st.integers(0, 40), st.integers(1, 5), st.binary(min_size=1, max_size=60))


@given(puts=st.lists(places, max_size=30), asked=st.data())
def test_it_never_sends_anything_else(
    puts: list[tuple[int, int, bytes]], asked: st.DataObject
) -> None:
    cache = RebuildCache(cost(3, 6, 200))
    known: dict[int, tuple[int, bytes]] = {}
    for position, length, data in puts:
        was_known = get(cache, 7, position) is not None
        cache.put(7, position, length, data)
        if not was_known and get(cache, 7, position) == data:
            known[position] = (length, data)
        assert 0 <= cache.size <= cache.max_bytes
    position, length = asked.draw(st.integers(0, 45)), asked.draw(st.integers(0, 30))
    limit = asked.draw(st.integers(0, 150))
    sent = run(cache, 7, position, position + length, limit)
    if sent is None:
        return
    wanted, at = b"", position
    while len(wanted) < len(sent):
        stored, data = known[at]
        wanted, at = wanted + data, at + stored
    assert sent == wanted
    assert at <= position + length
    assert len(sent) <= limit or sent == known[position][1]


def test_it_saves_the_second_rebuild() -> None:
    rebuilds: list[int] = []
    view: dict[int, bytes] = {}
    right = encode_set([(None, b"x")] * 3, 2, 500)
    wrong = wrapper(plain([(None, b"text")] * 3), 2)
    data = wrong + right

    def serve(part: bytes, position: int) -> bytes:
        made: list[Rebuilt] = []
        sent = absolute_slice(
            part, max_bytes=10**6, known=lambda at: view.get(position + at), made=made
        )
        rebuilds.append(len(made))
        view.update({position + at: kept for at, _, kept in made})
        return sent

    first = serve(data, 70)
    assert serve(data, 70) == first == rebuild(wrong) + right
    assert serve(right, 70 + len(wrong)) == right
    assert rebuilds == [2, 0, 0]
    assert view == {70: rebuild(wrong), 70 + len(wrong): right}


@settings(max_examples=80)
@given(found=st.lists(entries(), max_size=8), over=st.integers(0, 60), data=st.data())
def test_runs_give_what_reading_gives(
    found: list[tuple[bytes, list[Any]]], over: int, data: st.DataObject
) -> None:
    """Whether rebuilt at append or for the reader."""
    buffer = bytearray(b"".join([entry for entry, _ in found]))
    made: list[Rebuilt] = []
    valid = assign_offsets(buffer, 1000, LIMIT, rebuilt=made).valid_bytes
    kept = bytes(buffer[:valid])
    wrappers = {}
    for entry in iter_entries(kept):
        one = kept[entry.position : entry.position + entry.size_total]
        if entry.codec:
            sent = one if has_absolute_offsets(one) else rebuild(one)
            wrappers[entry.position] = (len(one), sent)
    assert {position: (size, sent) for position, size, sent in made} == wrappers
    cache = RebuildCache(ROOM)
    for position, size, sent in made:
        cache.put(7, 50 + position, size, sent)
    starts = [entry.position for entry in iter_entries(kept)]
    start = data.draw(st.sampled_from(starts)) if starts else 0
    stop = data.draw(st.integers(start, valid))
    limit = stop - start + over
    wanted = absolute_slice(kept[start:stop], max_bytes=limit)
    ready = run(cache, 7, 50 + start, 50 + stop, limit)
    assert ready is None or (ready and wanted.startswith(ready))
    known = cache.known(7, 50 + start, 50 + stop)

    def find(position: int) -> bytes | None:
        kept = known.get(50 + start + position)
        return None if kept is None else kept.read()

    made = []
    again = absolute_slice(kept[start:stop], max_bytes=limit, known=find, made=made)
    assert again == wanted
    assert not [place for place, size, _ in made if place + size <= stop - start]
