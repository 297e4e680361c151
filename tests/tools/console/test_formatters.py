from __future__ import annotations

import io
from typing import Any
from zlib import crc32

import pytest

from kafka08.errors import ConfigError, ProtocolError
from kafka08.message.consumed import Message, MessageSource, timed
from kafka08.message.entry import APPEND_TIME, CREATE_TIME, TimedMessage, encode_entry
from kafka08.protocol.codec import encode
from kafka08.protocol.schemas import OffsetKey, OffsetValue
from tools.console.formatters import DEFAULT_FORMATTER, formatter_named

OFFSETS = "kafka.server.OffsetManager$OffsetsMessageFormatter"


def shown(name: str, key: bytes | None, value: bytes | None, **properties: str) -> bytes:
    given = {name.replace("_", "."): text for name, text in properties.items()}
    formatter = formatter_named(name, given)
    output = io.BytesIO()
    formatter.write_to(key, value, output)
    formatter.close()
    return output.getvalue()


def test_default() -> None:
    assert shown(DEFAULT_FORMATTER, b"k", b"\xff\x00") == b"\xff\x00\n"
    assert shown(DEFAULT_FORMATTER, b"k", b"v", print_key=" TRUE ") == b"k\tv\n"
    assert shown(DEFAULT_FORMATTER, None, None, print_key="true") == b"null\tnull\n"
    assert shown(DEFAULT_FORMATTER, b"k", b"v", print_key="yes") == b"v\n"
    separators = {"key_separator": "\\t", "line_separator": ";"}
    assert shown(DEFAULT_FORMATTER, b"k", b"v", print_key="true", **separators) == b"k\\tv;"


ALL = {f"print.{name}": "true" for name in ("timestamp", "partition", "offset", "headers", "key")}


def line(message: Any, **properties: str) -> bytes:
    formatter: Any = formatter_named(DEFAULT_FORMATTER, properties)
    output = io.BytesIO()
    formatter.write_message(message, message.key, message.value, output)
    return output.getvalue()


def test_everything_in_the_order_of_later_releases() -> None:
    source = MessageSource("t", 3)
    headers = (("a", b"1"), ("b", None))
    new = timed(source, TimedMessage(7, b"k", b"v", 0, 0, 2, 0, 1234, CREATE_TIME, headers))
    assert line(new, **ALL) == b"CreateTime:1234\tPartition:3\tOffset:7\ta:1,b:null\tk\tv\n"
    assert line(new) == b"v\n"
    given = {"headers.separator": ";", "null.literal": "-", "key.separator": "|"}
    assert line(new, **ALL, **given, **{"print.value": "false"}) == (
        b"CreateTime:1234|Partition:3|Offset:7|a:1;b:-|k\n"
    )
    stamped = timed(source, TimedMessage(0, None, None, 0, 0, 2, 0, 9, APPEND_TIME, ()))
    assert line(stamped, **{"print.timestamp": "true"}) == b"LogAppendTime:9\tnull\n"
    old = Message(source, 7, b"k", b"v")
    assert line(old, **ALL) == b"NO_TIMESTAMP\tPartition:3\tOffset:7\tNO_HEADERS\tk\tv\n"
    assert line(old, **{"print.value": "false"}) == b""


def test_no_op() -> None:
    assert shown("kafka.tools.NoOpMessageFormatter", b"k", b"v") == b""


def test_checksum_is_that_of_the_plain_message() -> None:
    crc = crc32(encode_entry(b"k", b"v")[16:])
    name = "kafka.tools.ChecksumMessageFormatter"
    assert shown(name, b"k", b"v") == b"checksum:%d\n" % crc
    assert shown(name, b"k", b"v", topic="T") == b"T:checksum:%d\n" % crc


def test_offsets() -> None:
    key = encode(OffsetKey(0, "g", "t", 0))
    value = encode(OffsetValue(0, 5, "", 1429000000000))
    expected = b"[g,t,0]::OffsetAndMetadata[5,NO_METADATA,1429000000000]\n"
    assert shown(OFFSETS, key, value) == expected
    assert shown(OFFSETS, key, None) == b"[g,t,0]::NULL\n"
    value = encode(OffsetValue(0, 5, "here", -1))
    assert shown(OFFSETS, key, value) == b"[g,t,0]::OffsetAndMetadata[5,here]\n"
    for bad in (b"", b"\0\1xx", b"\0\0\0"):
        with pytest.raises(ProtocolError):
            shown(OFFSETS, bad, value)


def test_unknown_class() -> None:
    with pytest.raises(ConfigError, match=r"ClassNotFoundException: no\.such\.Formatter"):
        formatter_named("no.such.Formatter", {})
