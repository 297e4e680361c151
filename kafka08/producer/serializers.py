"""Encoders of keys and values by their JVM names.

An encoder is any callable from a value to bytes or None. Settings accept these names, and
``module.attribute`` of a Python callable.
"""

from __future__ import annotations

import codecs
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from kafka08.errors import ConfigError
from kafka08.producer.errors import SerializationError
from kafka08.producer.partitioners import (
    Partitioner,
    byte_array_partitioner,
    default_partitioner,
    murmur2_partitioner,
)

Encoder = Callable[[Any], "bytes | None"]
_JAVA_CHARSETS = {"UTF8": "utf-8"}

PARTITIONERS: dict[str, Partitioner] = {
    "kafka.producer.DefaultPartitioner": default_partitioner,
    "kafka.producer.ByteArrayPartitioner": byte_array_partitioner,
    "org.apache.kafka.clients.producer.internals.Partitioner": murmur2_partitioner,
}


def identity(value: object) -> bytes | None:
    """kafka.serializer.DefaultEncoder. Raises TypeError for other types than bytes."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a {type(value).__name__} is not bytes; name an encoder")


def null(value: object) -> None:
    """kafka.serializer.NullEncoder."""


def string_encoder(encoding: str = "UTF8") -> Encoder:
    """kafka.serializer.StringEncoder. Raises ConfigError for an unknown charset."""
    name = _JAVA_CHARSETS.get(encoding, encoding)
    try:
        codecs.lookup(name)
    except LookupError:
        raise ConfigError(f"serializer.encoding has value {encoding}, an unknown charset") from None
    return lambda value: None if value is None else value.encode(name)


def encoder_named(name: str, encoding: str = "UTF8") -> Encoder:
    """The encoder a setting names. Raises ConfigError if it does not exist."""
    if name == "kafka.serializer.StringEncoder":
        return string_encoder(encoding)
    known: Mapping[str, Encoder] = {
        "kafka.serializer.DefaultEncoder": identity,
        "kafka.serializer.NullEncoder": null,
        "org.apache.kafka.common.serialization.ByteArraySerializer": identity,
        "org.apache.kafka.common.serialization.StringSerializer": string_encoder(encoding),
    }
    found: Encoder = known.get(name) or load(name)
    return found


def partitioner_named(name: str) -> Partitioner:
    """The partitioner a setting names. Raises ConfigError if it does not exist."""
    found: Partitioner = PARTITIONERS.get(name) or load(name)
    return found


def load(name: str) -> Any:
    """Import ``module.attribute``. Raises ConfigError if it does not exist."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        raise ConfigError(f"java.lang.ClassNotFoundException: {name}") from None


def serializer_of(given: Encoder | str | None) -> Encoder | None:
    """The serializer; None if keys or values must be bytes."""
    if isinstance(given, str):
        encoder = encoder_named(given)
        return None if encoder is encoder_named("kafka.serializer.DefaultEncoder") else encoder
    return given


def serialized(what: str, data: object, serializer: Encoder | None) -> bytes | None:
    """A key or value serialised by ``serializer``. Raises SerializationError."""
    if serializer is not None:
        try:
            data = serializer(data)
        except Exception as error:
            raise SerializationError(
                f"Can't convert {what} of class {type(data).__name__} with {serializer!r}: {error}"
            ) from error
    if data is None or data.__class__ is bytes:
        return data
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise SerializationError(
        f"A {what} of class {type(data).__name__} is not bytes: give {what}_serializer, such as "
        "str.encode"
    )
