"""DumpLogSegments: what is in log and index files, and whether they agree.

Mirrors kafka.tools.DumpLogSegments, line for line, with one difference: messages inside a wrapper
show their true offsets, numbered back from the wrapper's, whatever the producer stored. Opens
files for reading only and needs no broker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from struct import iter_unpack
from typing import BinaryIO

from kafka08.common import java_string_hash
from kafka08.errors import ConfigError, InvalidMessageError, KafkaError
from kafka08.log.segments import integrity
from kafka08.message import records
from kafka08.message.batch import Batch, header_of
from kafka08.message.compression import NAMES
from kafka08.message.crc import crc32
from kafka08.message.entry import (
    BATCH,
    CODEC_MASK,
    HEADER,
    LOG_OVERHEAD,
    MAGIC_AT,
    MIN_MESSAGE_SIZE,
    OFFSET_AND_SIZE,
    AnyMessage,
    Message,
    TimedMessage,
    has_right_crc,
    key_and_value,
    magic_of,
)
from kafka08.message.leaves import inflated_records
from kafka08.message.sets import iter_messages
from kafka08.producer.serializers import load
from kafka08.settings.settings import LONG
from tools.options import OptionParser

Decoder = Callable[[bytes], object]
Pairs = dict[str, list[tuple[int, int]]]

CODECS = {
    0: "NoCompressionCodec",
    1: "GZIPCompressionCodec",
    2: "SnappyCompressionCodec",
    3: "LZ4CompressionCodec",
}
# Of a mutable hash map of Scala 2.11.
_FIRST_SIZE = 16
_ROTATION = 4  # the bits of the first size, kept when the table grows
_MIX = 0x9E3775CD
_INT = 0xFFFFFFFF
_INTRO = "Parse a log file and dump its contents to the console, to look at a suspicious segment."


class NoDecoderError(KafkaError):
    """Nothing of that name decodes."""

    java_class = "java.lang.ClassNotFoundException"


_DECODER = (
    "a class of the original, or the module.attribute of a Python callable that is given bytes. "
    "(default: kafka.serializer.StringDecoder)"
)
PARSER = OptionParser(
    _INTRO,
    f"""
--print-data-log  Show keys and values too.
--verify-index-only  Check index files without showing their entries.
--files <file1, file2, ...>  REQUIRED: Log and index files to dump.
--max-message-size <Integer: size>  Size of the largest message. (default: 5242880)
--deep-iteration  Show the messages inside compressed ones.
--verify-integrity  Compare log files with their side files (.crc32c), which 0.8.2.2 does not
    have.
--key-decoder-class []  How to show a key: {_DECODER}
--value-decoder-class []  How to show a value: {_DECODER}
""",
)


def main(argv: list[str]) -> int:
    """Dumps to stdout; what does not agree goes to stderr at the end. Exit status 0."""
    args = PARSER.parse_command(argv, "files")
    max_message_bytes = args.value("max-message-size")
    decoders = (
        _decoder(args.value("key-decoder-class")),
        _decoder(args.value("value-decoder-class")),
    )
    mismatches: Pairs = {}
    jumps: Pairs = {}
    for path in args.value("files").split(","):
        if path.endswith((".log", ".index")):
            print(f"Dumping {path}")
        if path.endswith(".log"):
            show = decoders if args.has("print-data-log") else None
            _dump_log(path, show, args.has("deep-iteration"), max_message_bytes, jumps)
        elif path.endswith(".index"):
            _dump_index(path, args.has("verify-index-only"), max_message_bytes, mismatches)
        if path.endswith(".log") and args.has("verify-integrity"):
            print(_verdict(path))
    _report("Mismatches in :", "Index offset: {}, log offset: {}", mismatches)
    _report("Non-secutive offsets in :", "{} is followed by {}", jumps)
    return 0


def _decoder(name: str) -> Decoder:
    """The decoder of that name. Raises NoDecoderError when there is none."""
    if name == "kafka.serializer.StringDecoder":
        return lambda data: data.decode("utf-8", "replace")
    if name == "kafka.serializer.DefaultDecoder":
        return lambda data: f"[B@{crc32(data):x}"  # the JVM prints an array's identity
    try:
        found: Decoder = load(name)
    except ConfigError:
        raise NoDecoderError(name) from None
    if not callable(found):
        raise NoDecoderError(name)
    return found


def _dump_log(
    path: str,
    decoders: tuple[Decoder, Decoder] | None,
    deep: bool,
    max_message_bytes: int,
    jumps: Pairs,
) -> None:
    print(f"Starting offset: {_base_offset(path)}")
    last = -1
    with open(path, "rb") as file:
        end = 0
        for position, entry in _entries(file, max_message_bytes):
            end = position + len(entry)
            if magic_of(entry) == BATCH:
                header = header_of(entry)
                if last not in (-1, header.base_offset - 1):
                    jumps.setdefault(os.path.abspath(path), []).append((last, header.base_offset))
                last = header.last_offset
                print(_batch_line(header, position, entry))
                if deep or decoders is not None:
                    for line in _record_lines(header, entry, decoders):
                        print(line)
                continue
            for message, valid in _messages(entry, deep):
                if last != -1 and not message.codec and message.offset != last + 1:
                    jumps.setdefault(os.path.abspath(path), []).append((last, message.offset))
                last = message.offset
                print(_line(message, valid, position, decoders))
        trailing = file.seek(0, os.SEEK_END) - end
    if trailing:
        print(f"Found {trailing} invalid bytes at the end of {os.path.basename(path)}")


def _verdict(path: str) -> str:
    """Compare a log file with its side file."""
    seal, found = integrity.read(path), integrity.summed(path)
    if seal is None:
        return "Integrity: no side file"
    if seal == found:
        return f"Integrity: {found.size} bytes as sealed"
    return (
        f"Integrity: {found.size} bytes with crc-32c {found.crc:08x}, "
        f"sealed with {seal.size} bytes with crc-32c {seal.crc:08x}"
    )


def _dump_index(path: str, verify_only: bool, max_message_bytes: int, mismatches: Pairs) -> None:
    base = _base_offset(path)
    with open(path, "rb") as index:
        content = index.read()
    with open(os.path.join(os.path.dirname(path), f"{_stem(path)}.log"), "rb") as log:
        slots = iter_unpack(">ii", content[: len(content) // 8 * 8])
        for number, (relative, position) in enumerate(slots):
            found = _first_offset(log, position, max_message_bytes)
            if found is not None and found != base + relative:
                mismatches.setdefault(os.path.abspath(path), []).append((base + relative, found))
            if not relative and number:
                return  # after a crash the file is still preallocated with zeros
            if not verify_only:
                print(f"offset: {base + relative} position: {position}")


def _first_offset(log: BinaryIO, position: int, max_message_bytes: int) -> int | None:
    """Offset of the first message at ``position``; None for an empty log.

    Raises KafkaError when no whole entry begins there.
    """
    log.seek(position)
    for _, entry in _entries(log, max_message_bytes):
        if magic_of(entry) == BATCH:
            return header_of(entry).base_offset
        return next(_messages(entry, deep=True))[0].offset
    if not log.seek(0, os.SEEK_END):
        return None
    raise KafkaError(f"no whole message at position {position} of {log.name}")


def _entries(file: BinaryIO, max_message_bytes: int) -> Iterator[tuple[int, bytes]]:
    """(position, entry) of the whole entries from where the file stands.

    Raises InvalidMessageError for one above ``max_message_bytes`` (without its 12-byte header).
    """
    position = file.tell()
    while len(header := file.read(LOG_OVERHEAD)) == LOG_OVERHEAD:
        _, size = OFFSET_AND_SIZE.unpack(header)
        if size < MIN_MESSAGE_SIZE:
            return
        if size > max_message_bytes:
            raise InvalidMessageError(
                f"Message size exceeds the largest allowable message size ({max_message_bytes})."
            )
        entry = header + file.read(size)
        if len(entry) < LOG_OVERHEAD + size:
            return
        yield position, entry
        position += len(entry)


def _messages(entry: bytes, deep: bool) -> Iterator[tuple[AnyMessage, bool]]:
    """The entry itself, or with ``deep`` the messages inside if it is a wrapper.

    Each with its own codec, and with whether its crc is right.
    """
    offset, _, crc, magic, attributes = HEADER.unpack_from(entry)
    codec = attributes & CODEC_MASK
    if codec not in CODECS:
        raise KafkaError(f"{codec} is an unknown compression codec")
    if deep and codec:
        for found in iter_messages(entry, check_crc=False):
            # The times of a wrapper of format 1 may be the broker's: its own crc covers the rest.
            valid = (
                has_right_crc(entry, 0, len(entry))
                if isinstance(found, TimedMessage)
                else _body_crc(found.key, found.value, found.magic, found.attributes) == found.crc
            )
            yield found._replace(codec=0), valid
        return
    key, value = (
        None if span is None else entry[slice(*span)]
        for span in key_and_value(entry, 0, len(entry))
    )
    message = Message(offset, key, value, codec, crc, magic, attributes)
    yield message, crc32(entry[MAGIC_AT:]) == crc


def _body_crc(key: bytes | None, value: bytes | None, magic: int, attributes: int) -> int:
    parts = [bytes((magic, attributes))]
    for part in (key, value):
        length = -1 if part is None else len(part)
        parts += [length.to_bytes(4, "big", signed=True), part or b""]
    return crc32(b"".join(parts))


def _line(
    message: AnyMessage, valid: bool, position: int, decoders: tuple[Decoder, Decoder] | None
) -> str:
    key, value = message.key, message.value
    magic = message.magic - 256 if message.magic > 127 else message.magic
    line = (
        f"offset: {message.offset} position: {position} isvalid: {_java(valid)} "
        f"payloadsize: {-1 if value is None else len(value)} magic: {magic} "
        f"compresscodec: {CODECS[message.codec]} crc: {message.crc}"
    )
    if key is not None:
        line += f" keysize: {len(key)}"
    return line + _decoded(key, value, decoders)


def _decoded(
    key: bytes | None, value: bytes | None, decoders: tuple[Decoder, Decoder] | None
) -> str:
    """Key and value, if they are to be shown."""
    if decoders is None:
        return ""
    decode_key, decode_value = decoders
    shown = "" if key is None else f" key: {decode_key(key)}"
    return f"{shown} payload: {'null' if value is None else decode_value(value)}"


def _batch_line(header: Batch, position: int, entry: bytes) -> str:
    """A batch as the tool of later releases shows it."""
    last_sequence = header.base_sequence
    if last_sequence >= 0:
        last_sequence = (last_sequence + header.last_delta) % (1 << 31)
    time = "LogAppendTime" if header.is_stamped else "CreateTime"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.count} "
        f"baseSequence: {header.base_sequence} lastSequence: {last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.leader_epoch} "
        f"isTransactional: {_java(header.is_transactional)} isControl: {_java(header.is_control)} "
        f"position: {position} {time}: {header.max_timestamp} size: {len(entry)} magic: 2 "
        f"compresscodec: {NAMES.get(header.codec, header.codec)} crc: {header.crc} "
        f"isvalid: {_java(has_right_crc(entry, 0, len(entry)))}"
    )


def _record_lines(
    header: Batch, entry: bytes, decoders: tuple[Decoder, Decoder] | None
) -> Iterator[str]:
    data = inflated_records(entry, 0, len(entry))
    for delta, time, _, _, key_at, key_end, value_at, value_end in records.iter_rows(data):
        at = header.max_timestamp if header.is_stamped else header.base_timestamp + time
        key = bytes(data[key_at:key_end]) if key_end >= 0 else None
        value = bytes(data[value_at:value_end]) if value_end >= 0 else None
        yield (
            f"| offset: {header.base_offset + delta} "
            f"{'LogAppendTime' if header.is_stamped else 'CreateTime'}: {at} "
            f"keySize: {-1 if key is None else len(key)} "
            f"valueSize: {-1 if value is None else len(value)}{_decoded(key, value, decoders)}"
        )


def _java(flag: bool) -> str:
    return str(flag).lower()


def _report(title: str, text: str, pairs: Pairs) -> None:
    for path in hash_map_order(pairs):
        print(f"{title}{path}", file=sys.stderr)
        for pair in reversed(pairs[path]):
            print(f"  {text.format(*pair)}", file=sys.stderr)


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """``keys`` (each once) as a mutable hash map of Scala 2.11 lists them, which they were put into
    in this order.

    Mirrors scala.collection.mutable.HashTable: a table of chains, newest first, twice as large when
    three quarters full, read from its end.
    """
    table: list[list[str]] = [[] for _ in range(_FIRST_SIZE)]
    for count, key in enumerate(keys, start=1):
        table[_place(key, len(table))].insert(0, key)
        if count > len(table) * 3 // 4:
            table = _grown(table)
    return [key for chain in reversed(table) for key in chain]


def _grown(table: list[list[str]]) -> list[list[str]]:
    larger: list[list[str]] = [[] for _ in range(2 * len(table))]
    for chain in reversed(table):
        for key in chain:
            larger[_place(key, len(larger))].insert(0, key)
    return larger


def _place(key: str, size: int) -> int:
    mixed = java_string_hash(key) * _MIX & _INT
    mixed = int.from_bytes(mixed.to_bytes(4, "little"), "big") * _MIX & _INT
    rotated = (mixed >> _ROTATION | mixed << (32 - _ROTATION)) & _INT
    return rotated >> (32 - (size - 1).bit_length())


def _stem(path: str) -> str:
    return os.path.basename(path).split(".")[0]


def _base_offset(path: str) -> int:
    """Raises NumberFormatError when the name does not begin with an offset."""
    offset: int = LONG.parse(_stem(path))
    return offset
