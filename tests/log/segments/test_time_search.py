"""The first message since a time in the segments of a log, against a list of its messages."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from kafka08.log.log import Log
from kafka08.log.segments import time_search
from kafka08.log.segments.time_search import search, snapshot
from kafka08.message.compression import MAX_INFLATED
from kafka08.message.entry import encode_entry
from kafka08.message.times import Found
from tests.log.support import append, open_log, writable
from tests.message.batches import batch, timed_wrapper


def first_since(log: Log, time: int) -> Found | None:
    for segment in log.segments:
        if segment.newest.timestamp >= time:
            of = snapshot(segment)
            position = None
            while position is None or position < of.size:
                found, position = search(of, position, time, 0, MAX_INFLATED)
                if found is not None:
                    return found
    return None


def add_some(log: Log, rng: random.Random) -> list[int]:
    """Append a random set; the timestamps of its messages."""
    kind, codec = rng.choice(["old", "timed", "wrapper", "batch", "batch"]), rng.choice([0, 0, 1])
    times = [rng.randrange(1000) for _ in range(rng.randint(1, 5))]
    value = b"v" * rng.randrange(80)
    if kind == "old":
        append(log, *["old"] * len(times))
        return [-1] * len(times)
    if kind == "batch":
        records = [(b"k", value, time - times[0], []) for time in times]
        data = batch(records, 0, codec, time=times[0])
    else:
        each = enumerate(times)
        data = b"".join(encode_entry(b"k", value, n, timestamp=t) for n, t in each)
        if kind == "wrapper":
            data = timed_wrapper(data, 1, len(times) - 1, time=max(times))
    log.append(writable(data))
    return times


@pytest.mark.parametrize("seed", range(12))
def test_a_log_through_its_life(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    log = open_log(tmp_path, segment_bytes=1500, index_interval_bytes=200)
    times: list[int] = []  # of all messages
    for _ in range(12):
        for _ in range(rng.randint(1, 15)):
            times += add_some(log, rng)
        what = rng.choice(["none", "truncate", "clean", "crash", "lose"])
        if what == "truncate":
            log.truncate_to(rng.randint(0, log.log_end_offset))
            end = log.segments[-1].next_offset()[0]  # a batch is cut as a whole
            log.truncate_to(end)
            del times[end:]
        elif what != "none":
            if what != "crash":
                log.flush()
                log.close()
            if what == "lose":
                for path in Path(log.directory).glob("*.timeindex"):
                    os.unlink(path)
            log = open_log(tmp_path, clean_shutdown=what == "clean", config=log.config)
        for time in (0, 999, *(rng.randrange(1001) for _ in range(5))):
            matching = (Found(n, at) for n, at in enumerate(times) if at >= time)
            assert first_since(log, time) == next(matching, None)


def test_the_index_saves_most_of_the_reading(tmp_path, monkeypatch):
    log = open_log(tmp_path, segment_index_bytes=1 << 20)
    for time in range(2000):
        log.append(writable(encode_entry(b"k", b"v" * 60, timestamp=time)))
    monkeypatch.setattr(time_search, "PIECE_BYTES", 400)
    found = search(snapshot(log.segments[0]), None, 1500, 0, MAX_INFLATED)
    assert found.found == Found(1500, 1500)


def test_pieces(tmp_path, monkeypatch):
    log = open_log(tmp_path)
    for time in [50, *[10] * 50, 60]:
        log.append(writable(encode_entry(b"k", b"v" * 60, timestamp=time)))
    monkeypatch.setattr(time_search, "PIECE_BYTES", 500)
    monkeypatch.setattr(time_search, "_CHUNK", 64)
    of = snapshot(log.segments[0])
    found, position = search(of, None, 55, 0, MAX_INFLATED)
    assert found is None
    assert 500 <= position < 800
    assert first_since(log, 55) == Found(51, 60)


def test_a_segment_that_was_cut_or_damaged_meanwhile_ends(tmp_path):
    log = open_log(tmp_path)
    for time in range(20):
        log.append(writable(encode_entry(b"k", b"v" * 60, timestamp=time)))
    of = snapshot(log.segments[0])
    log.truncate_to(10)
    assert search(of, None, 15, 0, MAX_INFLATED) == (None, of.size)
    path = Path(log.segments[0].path)
    path.write_bytes(b"\x7f" * path.stat().st_size)
    assert search(of, 0, 15, 0, MAX_INFLATED) == (None, of.size)


@pytest.mark.parametrize("chunk", [64, 1 << 16])
def test_messages_below_the_start_do_not_count(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(time_search, "_CHUNK", chunk)
    log = open_log(tmp_path, index_interval_bytes=1)
    for time in [50, *[10] * 20, 60, 5, 70]:
        log.append(writable(encode_entry(b"k", b"v" * 60, timestamp=time)))
    of = snapshot(log.segments[0])
    for start, time, expected in ((0, 20, 0), (1, 20, 21), (22, 20, 23), (22, 0, 22), (1, 0, 1)):
        assert search(of, None, time, start, MAX_INFLATED).found.offset == expected
    assert search(of, None, 65, 24, MAX_INFLATED) == (None, of.size)
