"""The three codecs of magic 0, as bytes to bytes, never inflating past a bound.

gzip: an ordinary stream; concatenated members are read, and as in java.util.zip what follows the
last member and does not look like another one is ignored.
snappy: written in the framing of xerial's snappy-java with 32 KiB blocks; read with that framing
(any block size) or as one raw block.
lz4: the standard frame, except that the header checksum that 0.8.2.2 writes also covers the magic
number. That one is always written; on input the standard one is accepted as well, and so are the
frame options that 0.8.2.2 refuses (linked blocks, content size and checksum).
Mirrors kafka.message.CompressionFactory. Knows nothing of messages.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from typing import Any

from kafka08.errors import KafkaError, MessageSizeTooLargeError, UnknownError
from kafka08.message.entry import BytesLike

# Inflating is on the broker's produce path: isal does it in a third of zlib's time. Where it has
# no wheel, zlib stands in, level 1 for its fastest.
fast_zlib: Any = zlib
try:
    from isal import isal_zlib

    fast_zlib = isal_zlib
except ImportError:
    pass


def _library(name: str) -> Any:
    """None where it is missing: on Spark's executors there may be no more than a zip of Python
    files, and most topics need none of these. One that is written for another Python is missing
    too."""
    try:
        return importlib.import_module(name)
    except (ImportError, SyntaxError):
        return None


snappy, lz4_frame, xxhash = map(_library, ("snappy", "lz4.frame", "xxhash"))

NONE = 0
GZIP = 1
SNAPPY = 2
LZ4 = 3
NAMES = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4"}

# What one wrapper may inflate to unless the caller says otherwise.
MAX_INFLATED = 64 * 1024 * 1024

FASTEST = 1  # the gzip level of what is compressed on a consumer's time

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
# The most that one byte of input can stand for; a claim beyond it need not be allocated.
_SNAPPY_RATIO = 22
_LZ4_RATIO = 256


class CodecMissingError(KafkaError):
    """The library of a codec is not installed here."""


_PACKAGES = {GZIP: "isal", SNAPPY: "python-snappy", LZ4: "lz4 and xxhash"}
_MISSING = {
    codec: _PACKAGES[codec]
    for codec, libraries in ((SNAPPY, (snappy,)), (LZ4, (lz4_frame, xxhash)))
    if None in libraries
}
_SAMPLE = bytes(range(64)) * 16


def _check_installed(codec: int) -> None:
    if codec in _MISSING:
        raise CodecMissingError(
            f"{NAMES[codec]} needs the Python package {_MISSING[codec]}, which cannot be imported "
            "here (on Spark, every worker needs it)"
        )


def check_codecs() -> None:
    """Send a value through each codec. Raises CodecMissingError when a library is not installed or
    does not work: another Python's, or a module that only has the same name."""
    for codec in (GZIP, SNAPPY, LZ4):
        try:
            sound = decompress(codec, compress(codec, _SAMPLE)) == _SAMPLE
        except CodecMissingError:
            raise
        except Exception as error:  # such a module may raise anything
            raise CodecMissingError(_unfit(codec, repr(error))) from error
        if not sound:
            raise CodecMissingError(_unfit(codec, "other bytes come back than were compressed"))


def _unfit(codec: int, reason: str) -> str:
    library = {GZIP: fast_zlib, SNAPPY: snappy, LZ4: lz4_frame}[codec]
    place = getattr(library, "__file__", library.__name__)
    return (
        f"{NAMES[codec]} does not work with the Python package {_PACKAGES[codec]} that is "
        f"installed ({place}): {reason}"
    )


class InflatesTooFarError(MessageSizeTooLargeError):
    """A compressed value holds more than the caller has room for."""


class CorruptCompressionError(KafkaError):
    """A compressed value that cannot be decoded; on the wire -1, as 0.8.2.2 answers."""

    text = "A compressed message set cannot be decoded"


def compress(codec: int, data: BytesLike, *, level: int = 6) -> bytes:
    """``data`` in the form 0.8.2.2 writes; ``level`` is gzip's: 6 for size, 1 for speed.

    Raises UnknownError, CodecMissingError.
    """
    if _MISSING:
        _check_installed(codec)
    if codec == GZIP:
        if level == FASTEST and fast_zlib is not zlib:
            fast: bytes = fast_zlib.compress(data, level, _GZIP_WBITS)
            return fast
        deflate = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WBITS)
        return deflate.compress(data) + deflate.flush()
    if codec == SNAPPY:
        return _compress_snappy(data)
    if codec == LZ4:
        return _compress_lz4(data)
    raise UnknownError(f"Unknown compression codec {codec}")


def decompress(codec: int, data: BytesLike, max_bytes: int = MAX_INFLATED) -> bytes:
    """The inflated bytes, at most ``max_bytes`` of them.

    Raises CorruptCompressionError for what cannot be decoded, InflatesTooFarError for more
    than ``max_bytes``, UnknownError for a codec that is none, CodecMissingError.
    """
    if _MISSING:
        _check_installed(codec)
    if codec == GZIP:
        return _decompress_gzip(data, max_bytes)
    if codec == SNAPPY:
        return _decompress_snappy(data, max_bytes)
    if codec == LZ4:
        return _decompress_lz4(data, max_bytes)
    raise UnknownError(f"Unknown compression codec {codec}")


def _too_large(max_bytes: int) -> InflatesTooFarError:
    return InflatesTooFarError(f"A compressed message inflates past {max_bytes} bytes")


def _decompress_gzip(data: BytesLike, max_bytes: int) -> bytes:
    view = memoryview(data)
    parts: list[bytes] = []
    room = max_bytes
    position = 0
    # of what follows the first member little is fed at once: zlib copies what it does not use
    piece_bytes = len(view)
    while not position or view[position : position + len(_GZIP_START)] == _GZIP_START:
        inflate = fast_zlib.decompressobj(_GZIP_WBITS)
        while not inflate.eof:
            piece = view[position : position + piece_bytes]
            if not piece:
                raise CorruptCompressionError("The gzip stream ends early")
            try:
                # one byte over the bound tells a bomb from a stream that just fits
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
    # fewer than 4 bytes left are no block for the original either
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
    """What 0.8 and 0.9 take for the header checksum: over the magic number too."""
    return int(xxhash.xxh32_intdigest(header)) >> 8 & 0xFF


# The last byte is its _historical_checksum.
_LZ4_HEADER = _LZ4_MAGIC + _LZ4_DESCRIPTOR + b"\x1a"


def _compress_lz4(data: BytesLike) -> bytes:
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
    return _LZ4_HEADER + frame[len(_LZ4_HEADER) :]


def _decompress_lz4(data: BytesLike, max_bytes: int) -> bytes:
    header = _standard_lz4_header(bytes(data[:19]))
    limit = min(max_bytes, len(data) * _LZ4_RATIO)
    frame = lz4_frame.LZ4FrameDecompressor()
    try:
        frame.decompress(header, 0)
        inflated: bytes = frame.decompress(memoryview(data)[len(header) :], limit + 1)
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
        raise CorruptCompressionError("This is no lz4 frame")
    flags = start[4]
    end = 6 + 8 * bool(flags & _LZ4_CONTENT_SIZE) + 4 * bool(flags & _LZ4_DICTIONARY)
    if len(start) <= end:
        raise CorruptCompressionError("The lz4 frame ends early")
    standard = xxhash.xxh32_intdigest(start[4:end]) >> 8 & 0xFF
    if start[end] not in (standard, _historical_checksum(start[:end])):
        raise CorruptCompressionError("The checksum of the lz4 header is wrong")
    return start[:end] + bytes((standard,))
