"""How console tools print a message: the formatters of 0.8.2.2 under their JVM names.

``--formatter`` also takes ``module.attribute`` of a Python class like these. A formatter is given
raw bytes and a binary stream; one with ``write_message`` is given the message too. It knows no
consumer or option.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import BinaryIO, Protocol

from kafka08.errors import ProtocolError
from kafka08.message.consumed import Message
from kafka08.message.entry import CREATE_TIME, NO_TIMESTAMP_TYPE, encode_entry
from kafka08.producer.serializers import load
from kafka08.protocol.codec import decode
from kafka08.protocol.schemas import OffsetKey, OffsetValue
from tools.console.line_headers import is_true

_CRC = struct.Struct(">I")
_CRC_POSITION = 12


class MessageFormatter(Protocol):
    """kafka.tools.MessageFormatter; made with the --property pairs.

    One that prints more of a message than key and value also has ``write_message``, which gets the
    message, and both of them decoded.
    """

    def write_to(self, key: bytes | None, value: bytes | None, output: BinaryIO) -> None: ...
    def close(self) -> None: ...


class DefaultMessageFormatter:
    """The value, after the key if print.key is true; null is ``null``.

    print.timestamp, print.partition, print.offset, print.headers, print.value, headers.separator
    and null.literal are of later releases, as is the order in which all of them are printed.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        before: dict[str, Callable[[Message], bytes]] = {
            "timestamp": _timestamp,
            "partition": lambda message: b"Partition:%d" % message.partition,
            "offset": lambda message: b"Offset:%d" % message.offset,
            "headers": self._headers,
        }
        self._before = [
            show for name, show in before.items() if is_true(properties, f"print.{name}")
        ]
        self._print_key = is_true(properties, "print.key")
        self._print_value = is_true(properties, "print.value", "true")
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._line_separator = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()

    def write_to(self, key: bytes | None, value: bytes | None, output: BinaryIO) -> None:
        self._write(self._shown(key, value), output)

    def write_message(
        self, message: Message, key: bytes | None, value: bytes | None, output: BinaryIO
    ) -> None:
        before = [show(message) for show in self._before]
        self._write(before + self._shown(key, value), output)

    def _shown(self, key: bytes | None, value: bytes | None) -> list[bytes]:
        wanted = ((self._print_key, key), (self._print_value, value))
        return [self._null if data is None else data for shown, data in wanted if shown]

    def _headers(self, message: Message) -> bytes:
        listed = [
            name.encode() + b":" + (self._null if value is None else value)
            for name, value in message.headers
        ]
        return self._headers_separator.join(listed) or b"NO_HEADERS"

    def _write(self, parts: list[bytes], output: BinaryIO) -> None:
        if parts:
            output.write(self._key_separator.join(parts) + self._line_separator)

    def close(self) -> None:
        """Nothing is kept."""


def _timestamp(message: Message) -> bytes:
    if message.timestamp_type == NO_TIMESTAMP_TYPE:
        return b"NO_TIMESTAMP"
    kind = b"CreateTime" if message.timestamp_type == CREATE_TIME else b"LogAppendTime"
    return kind + b":%d" % message.timestamp


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


FORMATTERS: dict[str, Callable[[Mapping[str, str]], MessageFormatter]] = {
    "kafka.tools.DefaultMessageFormatter": DefaultMessageFormatter,
    "org.apache.kafka.tools.consumer.DefaultMessageFormatter": DefaultMessageFormatter,
    "kafka.tools.NoOpMessageFormatter": NoOpMessageFormatter,
    "kafka.tools.ChecksumMessageFormatter": ChecksumMessageFormatter,
    "kafka.server.OffsetManager$OffsetsMessageFormatter": OffsetsMessageFormatter,
}
DEFAULT_FORMATTER = "kafka.tools.DefaultMessageFormatter"


def formatter_named(name: str, properties: Mapping[str, str]) -> MessageFormatter:
    """A formatter of that class. Raises ConfigError when there is no such class."""
    formatter: MessageFormatter = (FORMATTERS.get(name) or load(name))(properties)
    return formatter
