"""The codecs of message sets, as functions on bytes, with a bound on the inflated size.

gzip: an ordinary stream. Concatenated members are read; as in java.util.zip, bytes after the last
member that do not look like another one are ignored.
snappy: written in the framing of xerial's snappy-java with 32 KiB blocks; read with that framing
(any block size) or as one raw block.
lz4: the standard frame, except that the header checksum of 0.8.2.2 also covers the magic number.
That checksum is written in format 0, the standard one in later formats. On input both are accepted,
and so are frame options that 0.8.2.2 refuses (linked blocks, content size and checksum).
zstd: standard frames, in format 2 only. Of a frame that ends early the beginning is returned: its
records do not add up then.
Mirrors kafka.message.CompressionFactory. Does not know messages.
"""

from __future__ import annotations

import importlib
import struct
import threading
import zlib
from types import ModuleType
from typing import Any, Final, NoReturn

from kafka08.errors import KafkaError, MessageSizeTooLargeError, UnknownError
from kafka08.message.entry import BATCH, BytesLike

# Inflating is on the broker's produce path: isal takes a third of zlib's time. On platforms without
# a wheel of isal, zlib is used instead, with level 1 as its fastest.
fast_zlib: ModuleType = zlib
try:
    from isal import isal_zlib

    fast_zlib = isal_zlib
except ImportError:
    pass


class CodecMissingError(KafkaError):
    """The library of a codec is not installed here."""


class _Missing:
    """In the place of a library that cannot be imported: any use of it raises CodecMissingError."""

    def __init__(self, codec: int) -> None:
        self._codec = codec

    def __getattr__(self, name: str) -> NoReturn:
        raise CodecMissingError(
            f"{NAMES[self._codec]} needs the Python package {_PACKAGES[self._codec]}, which cannot "
            "be imported here (on Spark, every worker needs it)"
        )


def _library(name: str, codec: int) -> Any:
    """The module, or a _Missing: Spark's executors may have only a zip of Python files, and most
    topics do not need these libraries. A library built for another Python counts as missing."""
    try:
        return importlib.import_module(name)
    except (ImportError, SyntaxError):
        return _Missing(codec)


NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4  # in format 2 only
NAMES = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}

# The default limit of a wrapper's inflated size.
MAX_INFLATED: Final = 64 * 1024 * 1024

FASTEST = 1  # the gzip level for data that is compressed while a consumer waits
# The gzip level for data that is compressed before a consumer asks: a sixth more time than the
# fastest, and almost as small as zlib at level 6, which takes six times as long.
SMALLER = 3

_GZIP_WBITS = 31
_GZIP_START = b"\x1f\x8b\x08"
_GZIP_PIECE = 4096
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
_BLOCK_SIZE = struct.Struct(">i")
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_DESCRIPTOR = b"\x60\x40"  # version 01 and independent blocks; blocks of at most 64 KiB
_LZ4_CONTENT_SIZE = 0x08
_LZ4_DICTIONARY = 0x01
_ZSTD_PIECE = 128 << 10
_ZSTD_WINDOW = 1 << 27  # the most that decoders accept by default
# The most bytes that one byte of input can inflate to; larger claims are rejected unallocated.
_SNAPPY_RATIO = 22
_LZ4_RATIO = 256


snappy, zstandard = _library("snappy", SNAPPY), _library("zstandard", ZSTD)
lz4_frame, xxhash = _library("lz4.frame", LZ4), _library("xxhash", LZ4)

_PACKAGES = {GZIP: "isal", SNAPPY: "python-snappy", LZ4: "lz4 and xxhash", ZSTD: "zstandard"}
_SAMPLE = b"kafka08" * 3
_COMPRESSED = {
    GZIP: b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbNL\xcbN4\xb0\xc8F\xa1\0/\xe2\xa00\x15\0\0\0",
    SNAPPY: _XERIAL_HEADER + b"\0\0\0\x17\x15P" + _SAMPLE,
    LZ4: b'\x04"M\x18`@\x82\x10\0\0\0ukafka08\x07\0Pfka08\0\0\0\0',
    ZSTD: b"(\xb5/\xfd \x15m\0\08kafka08\x01\0\x92\x8b\x11",
}


def check_codecs() -> None:
    """Test each codec with a value. Raises CodecMissingError if a library is not installed or does
    not work, such as one for another Python, or another module of the same name."""
    for codec, data in _COMPRESSED.items():
        try:
            sound = decompress(codec, data) == _SAMPLE
        except CodecMissingError:
            raise
        except Exception as error:  # a wrong module may raise any exception
            raise CodecMissingError(_unfit(codec, repr(error))) from error
        if not sound:
            raise CodecMissingError(_unfit(codec, "other bytes come out than were compressed"))


def _unfit(codec: int, reason: str) -> str:
    library = {GZIP: fast_zlib, SNAPPY: snappy, LZ4: lz4_frame, ZSTD: zstandard}[codec]
    place = getattr(library, "__file__", library.__name__)
    return (
        f"{NAMES[codec]} does not work with the Python package {_PACKAGES[codec]} that is "
        f"installed ({place}): {reason}"
    )


class InflatesTooFarError(MessageSizeTooLargeError):
    """A compressed value inflates to more than the caller's limit."""


class CorruptCompressionError(KafkaError):
    """A compressed value that cannot be decoded; on the wire -1, as 0.8.2.2 answers."""

    text = "A compressed message set cannot be decoded"


def compress(codec: int, data: BytesLike, *, level: int = 6, magic: int = 0) -> bytes:
    """``data`` compressed as for a message of format ``magic``: in the form 0.8.2.2 writes for 0.

    ``level`` is gzip's: 6 for size, 1 or 3 for speed. Raises UnknownError, CodecMissingError.
    """
    if codec == GZIP:
        return _compress_gzip(data, level)
    if codec == SNAPPY:
        return _compress_snappy(data)
    if codec == LZ4:
        return _compress_lz4(data, magic)
    if codec == ZSTD and magic == BATCH:
        packed: bytes = zstandard.ZstdCompressor().compress(data)
        return packed
    raise UnknownError(f"Unknown compression codec {codec}")


def decompress(codec: int, data: BytesLike, max_bytes: int = MAX_INFLATED) -> bytes:
    """The inflated bytes, at most ``max_bytes`` of them.

    Raises CorruptCompressionError for data that cannot be decoded, InflatesTooFarError for more
    than ``max_bytes``, UnknownError for an unknown codec, CodecMissingError.
    """
    if codec == GZIP:
        return _decompress_gzip(data, max_bytes)
    if codec == SNAPPY:
        return _decompress_snappy(data, max_bytes)
    if codec == LZ4:
        return _decompress_lz4(data, max_bytes)
    if codec == ZSTD:
        return _decompress_zstd(data, max_bytes)
    raise UnknownError(f"Unknown compression codec {codec}")


def _too_large(max_bytes: int) -> InflatesTooFarError:
    return InflatesTooFarError(f"A compressed message inflates past {max_bytes} bytes")


def _compress_gzip(data: BytesLike, level: int) -> bytes:
    if level <= SMALLER and fast_zlib is not zlib:
        fast: bytes = fast_zlib.compress(data, level, _GZIP_WBITS)
        return fast
    deflate = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WBITS)
    return deflate.compress(data) + deflate.flush()


def _decompress_gzip(data: BytesLike, max_bytes: int) -> bytes:
    view = memoryview(data)
    parts: list[bytes] = []
    room = max_bytes
    position = 0
    # after the first member the input is passed in small pieces, as zlib copies unused input
    piece_bytes = len(view)
    while not position or view[position : position + len(_GZIP_START)] == _GZIP_START:
        inflate = fast_zlib.decompressobj(_GZIP_WBITS)
        while not inflate.eof:
            piece = view[position : position + piece_bytes]
            if not piece:
                raise CorruptCompressionError("The gzip stream ends early")
            try:
                # one byte over the bound distinguishes a bomb from a stream that just fits
                parts.append(inflate.decompress(piece, room + 1))
            except (zlib.error, fast_zlib.error) as error:
                raise CorruptCompressionError(f"Bad gzip data: {error}") from error
            room -= len(parts[-1])
            if room < 0:
                raise _too_large(max_bytes)
            position += len(piece)
        position -= len(inflate.unused_data)
        piece_bytes = _GZIP_PIECE
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_snappy(data: BytesLike) -> bytes:
    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = snappy.compress(view[start : start + _XERIAL_BLOCK])
        parts.append(_BLOCK_SIZE.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: BytesLike, max_bytes: int) -> bytes:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC or len(view) < len(_XERIAL_HEADER):
        return _decompress_snappy_block(view, max_bytes)
    if _BLOCK_SIZE.unpack_from(view, len(_XERIAL_MAGIC))[0] < 1:
        raise CorruptCompressionError("The version of the snappy framing is too old")
    blocks = []
    room = max_bytes
    position = len(_XERIAL_HEADER)
    # the original also ignores fewer than 4 remaining bytes
    while position + 4 <= len(view):
        size = _BLOCK_SIZE.unpack_from(view, position)[0]
        position += 4
        if not 0 < size <= len(view) - position:
            raise CorruptCompressionError(f"A snappy block has the impossible size {size}")
        try:
            block = _decompress_snappy_block(view[position : position + size], room)
        except InflatesTooFarError:
            raise _too_large(max_bytes) from None
        blocks.append(block)
        room -= len(block)
        position += size
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def _decompress_snappy_block(block: memoryview, max_bytes: int) -> bytes:
    length = _snappy_length(block)
    if length > max_bytes:
        raise _too_large(max_bytes)
    if length > len(block) * _SNAPPY_RATIO:
        raise CorruptCompressionError(f"{len(block)} bytes of snappy cannot hold {length}")
    try:
        inflated: bytes = snappy.uncompress(block)
    except snappy.UncompressError as error:
        raise CorruptCompressionError(f"Bad snappy data: {error.__cause__ or error}") from error
    if len(inflated) != length:
        raise CorruptCompressionError("The snappy block ends early")
    return inflated


def _snappy_length(block: memoryview) -> int:
    """The little-endian base 128 number that a raw block starts with."""
    length = 0
    for index, byte in enumerate(block[:5]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return length
    raise CorruptCompressionError("A snappy block has no length")


def _historical_checksum(header: BytesLike) -> int:
    """The header checksum of 0.8 and 0.9, which also covers the magic number."""
    return int(xxhash.xxh32_intdigest(header)) >> 8 & 0xFF


# The last byte is its _historical_checksum.
_LZ4_HEADER = _LZ4_MAGIC + _LZ4_DESCRIPTOR + b"\x1a"
# That of Java's producers in format 2: its checksum is the standard one.
_USUAL_LZ4_HEADER = _LZ4_MAGIC + _LZ4_DESCRIPTOR + b"\x82"


def _compress_lz4(data: BytesLike, magic: int) -> bytes:
    frame: bytes = lz4_frame.compress(
        data,
        block_size=lz4_frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        block_checksum=False,
        store_size=False,
    )
    if frame[:6] != _LZ4_HEADER[:6]:  # pragma: no cover
        raise CorruptCompressionError("The lz4 library wrote a frame with another descriptor")
    return frame if magic else _LZ4_HEADER + frame[len(_LZ4_HEADER) :]


def _decompress_lz4(data: BytesLike, max_bytes: int) -> bytes:
    start = bytes(data[:19])
    limit = min(max_bytes, len(data) * _LZ4_RATIO)
    frame = lz4_frame.LZ4FrameDecompressor()
    rest = memoryview(data)
    try:
        if not start.startswith(_USUAL_LZ4_HEADER):
            header = _standard_lz4_header(start)
            frame.decompress(header, 0)
            rest = rest[len(header) :]
        inflated: bytes = frame.decompress(rest, limit + 1)
    except (RuntimeError, ValueError, EOFError) as error:
        raise CorruptCompressionError(f"Bad lz4 data: {error}") from error
    if len(inflated) > limit:
        raise _too_large(max_bytes)
    if not frame.eof:
        raise CorruptCompressionError("The lz4 frame ends early")
    return inflated


def _standard_lz4_header(start: bytes) -> bytes:
    """The header of the frame with the checksum that the lz4 library expects."""
    if len(start) < len(_LZ4_HEADER) or not start.startswith(_LZ4_MAGIC):
        raise CorruptCompressionError("This is not an lz4 frame")
    flags = start[4]
    end = 6 + 8 * bool(flags & _LZ4_CONTENT_SIZE) + 4 * bool(flags & _LZ4_DICTIONARY)
    if len(start) <= end:
        raise CorruptCompressionError("The lz4 frame ends early")
    standard = xxhash.xxh32_intdigest(start[4:end]) >> 8 & 0xFF
    if start[end] not in (standard, _historical_checksum(start[:end])):
        raise CorruptCompressionError("The checksum of the lz4 header is wrong")
    return start[:end] + bytes((standard,))


class _ZstdState(threading.local):
    """Each thread's decompressor: a new one for every batch would take most of a batch's time."""

    kept: Any = None


_zstd_state = _ZstdState()


def _decompress_zstd(data: BytesLike, max_bytes: int) -> bytes:
    state, _zstd_state.kept = _zstd_state.kept, None
    if state is None:
        state = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    parts: list[bytes] = []
    room = max_bytes
    try:
        with state.stream_reader(data, read_across_frames=True) as reader:
            # one byte over the bound distinguishes a bomb from a stream that just fits
            while part := reader.read(min(room + 1, _ZSTD_PIECE)):
                parts.append(part)
                room -= len(part)
                if room < 0:
                    raise _too_large(max_bytes)
    except zstandard.ZstdError as error:
        raise CorruptCompressionError(f"Bad zstd data: {error}") from error
    if len(parts) == 1:
        _zstd_state.kept = state  # that of a long batch keeps a window of its size
        return parts[0]
    return b"".join(parts)
