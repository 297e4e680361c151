"""Encoders by their JVM names."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import ConfigError
from kafka08.producer.serializers import (
    PARTITIONERS,
    encoder_named,
    identity,
    null,
    string_encoder,
)


@pytest.mark.parametrize("value", [None, b"x", bytearray(b"x"), memoryview(b"x")])
def test_bytes_pass_unchanged(value: Any) -> None:
    assert identity(value) == (None if value is None else b"x")


def test_the_default_encoder_refuses_text() -> None:
    with pytest.raises(TypeError, match="a str is not bytes"):
        identity("x")


def test_the_null_encoder_drops_everything() -> None:
    null(b"x")
    assert encoder_named("kafka.serializer.NullEncoder")("x") is None


def test_strings_by_charset() -> None:
    assert encoder_named("kafka.serializer.StringEncoder")("ä") == "ä".encode()
    assert string_encoder("ISO-8859-1")("ä") == b"\xe4"
    assert string_encoder()(None) is None
    with pytest.raises(ConfigError, match=r"serializer\.encoding has value no-such"):
        string_encoder("no-such")


def test_an_unknown_encoder_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no\.such\.Encoder"):
        encoder_named("no.such.Encoder")


def test_the_partitioners_of_the_two_producers_differ() -> None:
    scala = PARTITIONERS["kafka.producer.ByteArrayPartitioner"]
    java = PARTITIONERS["org.apache.kafka.clients.producer.internals.Partitioner"]
    keys = [b"%d" % number for number in range(50)]
    assert [scala(key, 7) for key in keys] != [java(key, 7) for key in keys]
