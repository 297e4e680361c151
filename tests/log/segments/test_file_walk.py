"""The walk over the entries of a file, in chunks of any size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.log.segments import file_walk
from kafka08.log.segments.file_walk import FileWalk, stretches
from kafka08.message import scan
from kafka08.message.entry import BAD_CRC, CUT, END, PAUSED, encode_entry
from tests.message.batches import batch, simple, timed
from tests.message.walked import ONE, PRODUCED, THREE, damaged_sets, produced


@pytest.mark.parametrize("chunk", [61, 100, 400, 1 << 20])
def test_a_file_in_stretches(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(file_walk, "CHUNK", chunk)
    data = PRODUCED + produced(2, 10, b"x" * 300) + PRODUCED[:-1]
    path = tmp_path / "log"
    path.write_bytes(b"before" + data)
    with path.open("rb") as file:
        found = [
            row
            for piece, stop in stretches(file.fileno(), 6, 6 + len(data))
            for row in scan.producer_batches(piece, 0, stop)
        ]
    assert [row[0] for row in found] == [1, 1 << 62, 2, 1]


@pytest.mark.scenario("modern-10")
@pytest.mark.parametrize("chunk", [27, 60, 100, 1 << 20])
def test_a_file_with_all_formats(tmp_path, chunk):
    data = (
        ONE
        + timed([(b"k", b"v" * 70)], 11)
        + batch(simple(b"a" * 90, b"b"), 12)
        + batch(simple(b"c"), 20, last_delta=7)
    )
    path = tmp_path / "log"
    path.write_bytes(data)
    with path.open("rb") as file:
        for headers_only in (False, True):
            walked = FileWalk(
                file.fileno(), 0, len(data), headers_only=headers_only, check_crc=True, last=9,
                chunk=chunk,
            ).step()  # fmt: skip
            assert walked[:4] + walked[5:] == (len(data), 4, 10, 27, END, 2)
        up_to = FileWalk(file.fileno(), 0, len(data), headers_only=True, up_to=26, chunk=chunk)
        assert up_to.step()[1:4] == (3, 10, 13)
    damaged = bytearray(data)
    damaged[len(data) - 100] ^= 1
    path.write_bytes(damaged)
    with path.open("rb") as file:
        walked = FileWalk(file.fileno(), 0, len(data), check_crc=True, chunk=chunk).step()
        assert walked.count == 2
        assert walked.ended == BAD_CRC


class TestFileWalk:
    @pytest.fixture
    def opened(self, tmp_path: Path):
        files = []

        def write(data: bytes) -> int:
            path = tmp_path / f"{len(files)}.log"
            path.write_bytes(data)
            files.append(os.open(path, os.O_RDONLY))
            return files[-1]

        yield write
        for fd in files:
            os.close(fd)

    @settings(max_examples=150, deadline=None)
    @given(data=damaged_sets(), chunk=st.integers(26, 300), last=st.none() | st.just(-1))
    def test_chunks_do_not_matter(self, data, chunk, last):
        fd = os.memfd_create("entries")
        try:
            os.write(fd, data)
            found = FileWalk(fd, 0, len(data), check_crc=True, last=last, chunk=chunk).step()
        finally:
            os.close(fd)
        wanted = scan.walk(data, 0, len(data), check_crc=True, last=last, wrappers=True)
        assert found == wanted

    @pytest.mark.parametrize("chunk", [26, 40, 100, 1 << 20])
    def test_pauses_and_goes_on(self, opened, chunk):
        walk = FileWalk(opened(THREE), 0, len(THREE), last=-1, chunk=chunk)
        assert walk.step(until=1) == (len(ONE), 1, 10, 10, 0, PAUSED, 0)
        assert walk.step(until=len(ONE)) == (len(ONE), 0, -1, -1, 0, PAUSED, 0)
        assert walk.step() == (len(THREE), 2, 11, 15, 0, END, 0)
        assert walk.step() == (len(THREE), 0, -1, -1, 0, END, 0)

    @pytest.mark.parametrize("chunk", [26, 100, 1 << 20])
    def test_headers_only(self, opened, chunk):
        fd = opened(THREE)
        assert FileWalk(fd, 0, len(THREE), headers_only=True, chunk=chunk).step() == (
            len(THREE), 3, 10, 15, 0, END, 0,
        )  # fmt: skip
        cut = FileWalk(fd, 0, len(THREE) - 1, headers_only=True, chunk=chunk).step()
        assert (cut.count, cut.ended) == (2, CUT)

    def test_an_entry_larger_than_a_chunk_is_checked_in_pieces(self, opened):
        big = encode_entry(None, os.urandom(5000), 7, 1)
        fd = opened(ONE + big)
        found = FileWalk(fd, 0, len(ONE + big), check_crc=True, chunk=64).step()
        assert found == (len(ONE + big), 2, 10, 7, 1, END, 0)
        fd = opened(ONE + big[:-1] + bytes([big[-1] ^ 1]))
        found = FileWalk(fd, 0, len(ONE + big), check_crc=True, chunk=64).step()
        assert found == (len(ONE), 1, 10, 10, 0, BAD_CRC, 0)

    def test_a_file_that_became_shorter_ends_the_walk(self, opened):
        fd = opened(THREE[: len(ONE) + 5])
        found = FileWalk(fd, 0, len(THREE), chunk=64).step()
        assert (found.count, found.stop, found.ended) == (1, len(ONE), CUT)
