"""Decoders of keys and values by their JVM names.

A decoder is any callable from bytes to a value. Settings accept these names, and
``module.attribute`` of a Python callable.
"""

from __future__ import annotations

import codecs
import importlib
from collections.abc import Callable

from kafka08.errors import ConfigError

Decoder = Callable[[bytes], object]
_JAVA_CHARSETS = {"UTF8": "utf-8"}


def string_decoder(encoding: str = "UTF8") -> Decoder:
    """kafka.serializer.StringDecoder. Raises ConfigError for an unknown charset.

    Bytes that are not valid in that charset become replacement characters, as in Java.
    """
    name = _JAVA_CHARSETS.get(encoding, encoding)
    try:
        codecs.lookup(name)
    except LookupError:
        raise ConfigError(f"serializer.encoding has value {encoding}, an unknown charset") from None
    return lambda data: data.decode(name, "replace")


def decoder_named(name: str, encoding: str = "UTF8") -> Decoder | None:
    """The decoder of that name; None returns bytes unchanged. Raises ConfigError."""
    if name == "kafka.serializer.DefaultDecoder":
        return None
    if name == "kafka.serializer.StringDecoder":
        return string_decoder(encoding)
    module, _, attribute = name.rpartition(".")
    try:
        found: Decoder = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        raise ConfigError(f"java.lang.ClassNotFoundException: {name}") from None
    return found
