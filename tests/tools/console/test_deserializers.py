from __future__ import annotations

import struct
import uuid

import pytest

from kafka08.errors import ConfigError
from tools.console.deserializers import DeserializationError, deserializer_named

PACKAGE = "org.apache.kafka.common.serialization."


@pytest.mark.parametrize(
    ("name", "data", "shown"),
    [
        (None, b"\xff", b"\xff"),
        (f"{PACKAGE}StringDeserializer", b"x", b"x"),
        ("LongDeserializer", struct.pack(">q", -5), b"-5"),
        (f"{PACKAGE}IntegerDeserializer", struct.pack(">i", 7), b"7"),
        ("ShortDeserializer", struct.pack(">h", 1), b"1"),
        ("DoubleDeserializer", struct.pack(">d", 0.5), b"0.5"),
        ("FloatDeserializer", struct.pack(">f", 1.5), b"1.5"),
        ("UUIDDeserializer", str(uuid.UUID(int=1)).encode(), str(uuid.UUID(int=1)).encode()),
        ("binascii.hexlify", b"\x01", b"b'01'"),
        ("LongDeserializer", None, None),
    ],
)
def test_shown(name: str | None, data: bytes | None, shown: bytes | None) -> None:
    assert deserializer_named(name)(data) == shown


def test_wrong_size() -> None:
    with pytest.raises(DeserializationError, match="LongDeserializer is not 8"):
        deserializer_named("LongDeserializer")(b"1")


def test_unknown() -> None:
    with pytest.raises(ConfigError):
        deserializer_named("no.such")
