"""The codecs: the forms 0.8.2.2 writes and reads, bounds, and damage."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc
import zlib
from pathlib import Path

import lz4.frame
import pytest
import snappy
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import KafkaError, MessageSizeTooLargeError, UnknownError
from kafka08.message import compression
from kafka08.message.compression import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    CodecMissingError,
    CorruptCompressionError,
    InflatesTooFarError,
    check_codecs,
    compress,
    decompress,
)

CODECS = (GZIP, SNAPPY, LZ4)
XERIAL = bytes.fromhex("82534e41505059000000000100000001")
TEXT = b"to be or not to be " * 10
BIG = bytes(range(256)) * 700


def historical(frame: bytes) -> bytes:
    """A standard lz4 frame with the header checksum of 0.8."""
    return frame[:6] + bytes((xxhash.xxh32_intdigest(frame[:6]) >> 8 & 0xFF,)) + frame[7:]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
@given(data=st.binary(max_size=400), times=st.sampled_from([1, 300]))
def test_round_trip(codec, wrap, data, times):
    data *= times
    assert decompress(codec, wrap(compress(codec, wrap(data))), len(data)) == data


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=200), at=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_damage_raises_only_our_errors(codec, data, at, byte):
    damaged = bytearray(compress(codec, data))
    damaged[at % len(damaged)] = byte
    for value in (damaged, damaged[: at % len(damaged)], bytes(damaged) + data):
        try:
            assert len(decompress(codec, value, 10_000)) <= 10_000
        except KafkaError:
            pass


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=100))
def test_arbitrary_bytes_raise_only_our_errors(codec, data):
    for value in (data, XERIAL + data, compress(codec, b"")[:7] + data):
        try:
            decompress(codec, value, 10_000)
        except KafkaError:
            pass


@pytest.mark.parametrize("codec", CODECS)
def test_bound_is_exact(codec):
    packed = compress(codec, BIG)
    assert decompress(codec, packed, len(BIG)) == BIG
    with pytest.raises(MessageSizeTooLargeError):
        decompress(codec, packed, len(BIG) - 1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("cut", [1, 5])
def test_a_cut_stream_is_corrupt(codec, cut):
    with pytest.raises(CorruptCompressionError) as caught:
        decompress(codec, compress(codec, TEXT)[:-cut], 10_000)
    assert caught.value.code == -1


@pytest.mark.parametrize("codec", CODECS)
def test_an_empty_value_is_corrupt(codec):
    with pytest.raises(CorruptCompressionError):
        decompress(codec, b"", 10_000)


@pytest.mark.parametrize("codec", [0, 5, 7])
def test_unknown_codec(codec):
    with pytest.raises(UnknownError):
        decompress(codec, b"x", 10)
    with pytest.raises(UnknownError):
        compress(codec, b"x")


def test_zstd_is_written_in_format_2_only():
    for magic in (0, 1):
        with pytest.raises(UnknownError):
            compress(ZSTD, TEXT, magic=magic)
    packed = compress(ZSTD, TEXT, magic=2)
    assert decompress(ZSTD, packed + packed) == TEXT + TEXT  # frames may follow each other
    assert decompress(ZSTD, packed, len(TEXT)) == TEXT
    with pytest.raises(InflatesTooFarError):
        decompress(ZSTD, packed, len(TEXT) - 1)
    for bad in (packed[:6] + b"?" + packed[7:], b"x"):
        with pytest.raises(CorruptCompressionError):
            decompress(ZSTD, bad)


def test_a_zstd_frame_says_nothing_about_the_next_one():
    sound, long = (compress(ZSTD, data, magic=2) for data in (TEXT, BIG * 4))
    cut, broken = sound[:-9], sound[:12] + b"\xff" * 9
    for bad in (cut, broken, b"no frame", b""):
        for whole in (sound, long):
            with contextlib.suppress(CorruptCompressionError):
                assert TEXT.startswith(decompress(ZSTD, bad))
            assert decompress(ZSTD, whole, 1 << 30) == (TEXT if whole is sound else BIG * 4)
        with pytest.raises(InflatesTooFarError):
            decompress(ZSTD, sound, len(TEXT) - 1)
        assert decompress(ZSTD, sound, len(TEXT)) == TEXT


def test_lz4_has_the_standard_checksum_from_format_1_on():
    old, new = compress(LZ4, TEXT), compress(LZ4, TEXT, magic=1)
    assert lz4.frame.decompress(new) == decompress(LZ4, new) == decompress(LZ4, old) == TEXT
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(old)


def test_gzip_output_is_plain():
    assert compress(GZIP, TEXT)[:10].hex() in ("1f8b0800000000000003", "1f8b0800000000000000")


def test_gzip_members_and_what_follows_them():
    member = compress(GZIP, TEXT)
    assert decompress(GZIP, member * 3, 10_000) == TEXT * 3
    assert decompress(GZIP, member + b"rest", 10_000) == TEXT
    for bad in (member + member[:-3], member + member[:3] + b"\0" * 40):
        with pytest.raises(CorruptCompressionError):
            decompress(GZIP, bad, 10_000)
    with pytest.raises(MessageSizeTooLargeError):
        decompress(GZIP, member * 3, len(TEXT) * 3 - 1)


def test_gzip_checks_its_own_crc():
    packed = bytearray(compress(GZIP, TEXT))
    packed[-8] ^= 1
    with pytest.raises(CorruptCompressionError):
        decompress(GZIP, packed, 10_000)


def test_gzip_bomb_takes_bounded_memory():
    # after a full flush a stretch of zeros always deflates to the same bytes: a GB made quickly
    deflate = zlib.compressobj(1, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    start = deflate.compress(zeros) + deflate.flush(zlib.Z_FULL_FLUSH)
    bomb = start + (deflate.compress(zeros) + deflate.flush(zlib.Z_FULL_FLUSH)) * 1023
    bound = 64 << 20
    tracemalloc.start()
    try:
        with pytest.raises(MessageSizeTooLargeError):
            decompress(GZIP, bomb, bound)
        assert tracemalloc.get_traced_memory()[1] < 4 * bound
    finally:
        tracemalloc.stop()


def test_snappy_output_is_framed_in_blocks_of_32_kib():
    packed = compress(SNAPPY, BIG)
    assert packed.startswith(XERIAL)
    position, sizes = len(XERIAL), []
    while position < len(packed):
        (size,) = struct.unpack_from(">i", packed, position)
        sizes.append(len(snappy.uncompress(packed[position + 4 : position + 4 + size])))
        position += 4 + size
    assert sizes == [32768] * 5 + [len(BIG) - 5 * 32768]


def test_snappy_input_raw_and_framed():
    raw = snappy.compress(TEXT)
    block = struct.pack(">i", len(raw)) + raw
    assert decompress(SNAPPY, raw, 10_000) == TEXT
    assert decompress(SNAPPY, XERIAL + block * 2, 10_000) == TEXT * 2
    assert decompress(SNAPPY, XERIAL, 10_000) == b""
    # as in snappy-java: fewer than four bytes are not a block, and later versions are read
    assert decompress(SNAPPY, XERIAL + block + b"abc", 10_000) == TEXT
    assert decompress(SNAPPY, XERIAL[:8] + struct.pack(">ii", 9, 9) + block, 10_000) == TEXT


@pytest.mark.parametrize(
    "value",
    [
        XERIAL[:8],
        XERIAL + b"\0\0\0\0",
        XERIAL + b"\xff\xff\xff\xff\0",
        XERIAL + b"\0\0\0\x05ab",
        XERIAL[:8] + bytes(8),
        snappy.compress(TEXT) + b"x",
        b"\xff" * 6,
        # claims 1 MB, holds nothing: not worth allocating
        b"\x80\x80\x40",
    ],
)
def test_bad_snappy(value):
    with pytest.raises(CorruptCompressionError):
        decompress(SNAPPY, value, 1 << 30)


def test_snappy_bombs_are_seen_before_inflating():
    with pytest.raises(MessageSizeTooLargeError):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f", 1000)
    block = snappy.compress(bytes(1000))
    framed = XERIAL + (struct.pack(">i", len(block)) + block) * 3
    assert len(decompress(SNAPPY, framed, 3000)) == 3000
    with pytest.raises(MessageSizeTooLargeError, match="2999"):
        decompress(SNAPPY, framed, 2999)


def test_lz4_output_has_the_historical_header():
    assert compress(LZ4, b"x")[:7].hex() == "04224d1860401a"
    assert compress(LZ4, b"").hex() == "04224d1860401a00000000"


@pytest.mark.parametrize(
    "options",
    [
        {"store_size": False, "block_linked": False},
        {"store_size": True, "block_linked": False},
        {"store_size": False, "block_linked": True},
        {"store_size": True, "block_linked": True, "content_checksum": True},
        {"store_size": False, "block_linked": False, "block_checksum": True},
        {"store_size": False, "block_size": lz4.frame.BLOCKSIZE_MAX4MB},
    ],
)
def test_lz4_input_of_every_kind(options):
    for data in (b"", TEXT, BIG):
        assert decompress(LZ4, lz4.frame.compress(data, **options), len(BIG)) == data
    if not options["store_size"]:
        frame = historical(lz4.frame.compress(BIG, **options))
        assert decompress(LZ4, frame, len(BIG)) == BIG


def test_bad_lz4():
    good = compress(LZ4, TEXT)
    assert decompress(LZ4, good + b"trailing", 10_000) == TEXT
    for bad in (
        good[:6] + b"\0" + good[7:],
        good[:6],
        b"\x05" + good[1:],
        good[:-4],
        lz4.frame.compress(TEXT, content_checksum=True)[:-4] + b"abcd",
        lz4.frame.compress(TEXT, store_size=True)[:12],
    ):
        with pytest.raises(CorruptCompressionError):
            decompress(LZ4, bad, 10_000)


class Foreign:
    """Has the library's name, and does something else."""

    __name__ = "foreign"

    @staticmethod
    def decompress(*_args: object, **_options: object) -> bytes:
        return b"nothing"


def test_codecs_that_work_pass() -> None:
    check_codecs()


@pytest.mark.parametrize(
    ("library", "words"),
    [("snappy", "snappy .*python-snappy.*foreign"), ("lz4_frame", "lz4 .*lz4 and xxhash.*foreign")],
)
def test_a_library_that_does_not_work_is_named(
    library: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, library, Foreign())
    with pytest.raises(CodecMissingError, match=words):
        check_codecs()


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = compression._library("no_such_module", SNAPPY)
    monkeypatch.setattr(compression, "snappy", missing)
    with pytest.raises(CodecMissingError, match="snappy needs the Python package python-snappy"):
        check_codecs()


def test_a_module_of_another_python_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_python_two.py").write_text("print 'hello'\n")
    monkeypatch.syspath_prepend(tmp_path)
    library = compression._library("of_python_two", LZ4)
    with pytest.raises(CodecMissingError, match="lz4 needs the Python package lz4 and xxhash"):
        library.compress(b"")
