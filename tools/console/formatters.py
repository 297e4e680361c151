"""How console tools print a message: the formatters of 0.8.2.2 under their JVM names.

``--formatter`` also takes ``module.attribute`` of a Python class like these. A formatter is given
raw bytes and a binary stream; it knows no topic, consumer or option.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, BinaryIO, Protocol

from kafka08.errors import ProtocolError
from kafka08.message.entry import encode_entry
from kafka08.producer.serializers import load
from kafka08.protocol.codec import decode
from kafka08.protocol.schemas import OffsetKey, OffsetValue

_CRC = struct.Struct(">I")
_CRC_POSITION = 12


class MessageFormatter(Protocol):
    """kafka.tools.MessageFormatter; made with the --property pairs."""

    def write_to(self, key: bytes | None, value: bytes | None, output: BinaryIO) -> None: ...
    def close(self) -> None: ...


class DefaultMessageFormatter:
    """The value, after the key if print.key is true; null is ``null``."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._print_key = properties.get("print.key", "").strip().lower() == "true"
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._line_separator = properties.get("line.separator", "\n").encode()

    def write_to(self, key: bytes | None, value: bytes | None, output: BinaryIO) -> None:
        line = b"null" if value is None else value
        if self._print_key:
            line = (b"null" if key is None else key) + self._key_separator + line
        output.write(line + self._line_separator)

    def close(self) -> None:
        """Nothing is kept."""


class NoOpMessageFormatter:
    """Prints nothing."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """There is nothing to set."""

    def write_to(self, key: bytes | None, value: bytes | None, output: BinaryIO) -> None:
        """Drop it."""

    def close(self) -> None:
        """Nothing is kept."""


class ChecksumMessageFormatter(NoOpMessageFormatter):
    """The crc of key and value as an uncompressed message; ``topic`` goes in front."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        topic = properties.get("topic")
        self._prefix = "" if topic is None else f"{topic}:"

    def write_to(self, key: bytes | None, value: bytes | None, output: BinaryIO) -> None:
        (crc,) = _CRC.unpack_from(encode_entry(key, value), _CRC_POSITION)
        output.write(f"{self._prefix}checksum:{crc}\n".encode())


class OffsetsMessageFormatter(NoOpMessageFormatter):
    """Prints the offsets that groups committed, from the messages of ``__consumer_offsets``."""

    def write_to(self, key: bytes | None, value: bytes | None, output: BinaryIO) -> None:
        shown_key = "NULL" if key is None else _offset_key(key)
        shown_value = "NULL" if value is None else _offset_value(value)
        output.write(f"{shown_key}::{shown_value}\n".encode())


def _offset_key(data: bytes) -> str:
    key, _ = decode(OffsetKey, memoryview(data))
    _check_version(key.version)
    return f"[{key.group},{key.topic},{key.partition}]"


def _offset_value(data: bytes) -> str:
    value, _ = decode(OffsetValue, memoryview(data))
    _check_version(value.version)
    since = "" if value.timestamp == -1 else f",{value.timestamp}"
    return f"OffsetAndMetadata[{value.offset},{value.metadata or 'NO_METADATA'}{since}]"


def _check_version(version: int) -> None:
    if version != 0:
        raise ProtocolError(f"Unknown offset schema version {version}")


FORMATTERS: dict[str, Any] = {
    "kafka.tools.DefaultMessageFormatter": DefaultMessageFormatter,
    "kafka.tools.NoOpMessageFormatter": NoOpMessageFormatter,
    "kafka.tools.ChecksumMessageFormatter": ChecksumMessageFormatter,
    "kafka.server.OffsetManager$OffsetsMessageFormatter": OffsetsMessageFormatter,
}
DEFAULT_FORMATTER = "kafka.tools.DefaultMessageFormatter"


def formatter_named(name: str, properties: Mapping[str, str]) -> MessageFormatter:
    """A formatter of that class. Raises ConfigError when there is no such class."""
    formatter: MessageFormatter = (FORMATTERS.get(name) or load(name))(properties)
    return formatter
