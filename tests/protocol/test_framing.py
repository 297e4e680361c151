from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol import framing
from kafka08.protocol.framing import FrameDecoder
from tests.protocol.values import receive, stream

MAX = 2 * framing.LARGEST_BUFFER


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


@given(
    bodies=st.lists(st.binary(min_size=1, max_size=30) | st.just(bytes(5000)), max_size=6),
    cuts=st.lists(st.integers(0, 31_000), max_size=8),
)
def test_frames_cut_anywhere(bodies: list[bytes], cuts: list[int]) -> None:
    data = framed(*bodies)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    decoder = FrameDecoder(MAX)
    received: list[bytes] = []
    for start, end in pairwise(edges):
        received += stream(decoder, data[start:end])
    assert received == bodies
    assert decoder.pending == 0


def test_frames_are_writable_slices_of_the_buffer() -> None:
    decoder = FrameDecoder(MAX)
    buffer = decoder.get_buffer()
    first, second = receive(decoder, framed(b"one", b"two") + b"\0")
    first[0] = ord("O")
    assert (bytes(first), bytes(second)) == (b"One", b"two")
    assert first.obj is second.obj is buffer.obj
    assert decoder.pending == 1


def test_a_partial_rest_moves_to_the_front_of_the_same_buffer() -> None:
    decoder = FrameDecoder(MAX)
    frame = framed(b"x" * 3000)
    assert receive(decoder, frame + frame[:1000]) != []
    before = decoder.get_buffer()
    assert len(before) == framing.SMALLEST_BUFFER - 1000
    (second,) = receive(decoder, frame[1000:])
    assert second.obj is before.obj
    assert bytes(second) == b"x" * 3000


def test_a_held_frame_does_not_stop_the_buffer_from_growing() -> None:
    decoder = FrameDecoder(MAX)
    head = framed(b"held")
    large = framed(b"y" * 9000)
    (held,) = receive(decoder, head + large[:100])
    assert len(decoder.get_buffer()) == len(large) - 100
    assert [bytes(frame) for frame in receive(decoder, large[100:])] == [b"y" * 9000]
    assert bytes(held) == b"held"


def test_a_large_frame_takes_memory_as_it_comes_and_gives_it_back() -> None:
    size = 5 * framing.LARGEST_BUFFER + 12345
    decoder = FrameDecoder(size)
    assert receive(decoder, struct.pack(">i", size)) == []
    left, frames, sizes = size, [], set()
    while left:
        buffer = decoder.get_buffer()
        sizes.add(decoder.pending + len(buffer))
        count = min(len(buffer), left, 100_000)
        buffer[:count] = b"z" * count
        frames = [bytes(frame) for frame in decoder.received(count)]
        left -= count
    assert frames == [b"z" * size]
    largest = framing.LARGEST_BUFFER
    assert sorted(sizes) == [largest, 2 * largest, 4 * largest, size + 4]
    assert len(decoder.get_buffer()) == framing.SMALLEST_BUFFER


def test_the_buffer_grows_while_reads_fill_it_and_goes_back_after_a_quiet_time() -> None:
    decoder = FrameDecoder(MAX)
    sizes = []
    for _ in range(6):
        sizes.append(len(decoder.get_buffer()))
        receive(decoder, framed(b"a" * (sizes[-1] - 4)))
    assert sizes == [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 18, 1 << 18]
    for _ in range(framing.QUIET_READS - 1):
        receive(decoder, framed(b"small"))
    assert len(decoder.get_buffer()) == 1 << 18
    for _ in range(2 * framing.QUIET_READS + 1):
        receive(decoder, framed(b"small"))
    assert len(decoder.get_buffer()) == 1 << 12


@pytest.mark.parametrize("size", [0, -1, -(2**31), 101, 2**31 - 1])
def test_a_bad_size_word_is_refused_once_complete(size: int) -> None:
    decoder = FrameDecoder(100)
    word = struct.pack(">i", size)
    assert receive(decoder, word[:3]) == []
    with pytest.raises(ProtocolError, match=f"frame of {size} bytes"):
        receive(decoder, word[3:])
    with pytest.raises(ProtocolError):
        decoder.get_buffer()
    with pytest.raises(ProtocolError):
        stream(FrameDecoder(100), word)


def test_the_largest_size_is_allowed() -> None:
    assert stream(FrameDecoder(100), framed(b"x" * 100)) == [b"x" * 100]


def test_frames_in_front_of_a_bad_size_word_come_first() -> None:
    decoder = FrameDecoder(100)
    assert [bytes(f) for f in receive(decoder, framed(b"good") + bytes(4))] == [b"good"]
    with pytest.raises(ProtocolError):
        decoder.get_buffer()
