"""Finds the Python class that ``connector.class`` or ``value.converter`` names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

from kafka08.errors import ConfigError

T = TypeVar("T")

# Short name -> module.Class. A JVM class name is recognised by its last part.
CONNECTORS = {
    "FileStreamSource": "kafka08.connect.file.FileStreamSource",
    "FileStreamSink": "kafka08.connect.file.FileStreamSink",
    "JdbcSource": "kafka08.connect.jdbc.JdbcSource",
    "JdbcSink": "kafka08.connect.jdbc.JdbcSink",
    "ParquetSink": "kafka08.connect.bulk.ParquetSink",
    "JsonSink": "kafka08.connect.bulk.JsonSink",
}
CONVERTERS = {
    "JsonConverter": "kafka08.connect.converters.JsonConverter",
    "StringConverter": "kafka08.connect.converters.StringConverter",
    "ByteArrayConverter": "kafka08.connect.converters.ByteArrayConverter",
    "json": "kafka08.connect.converters.JsonConverter",
    "string": "kafka08.connect.converters.StringConverter",
    "bytes": "kafka08.connect.converters.ByteArrayConverter",
}
_JVM = ("org.apache.kafka.", "io.confluent.connect.")


def load(path: str) -> Any:
    """The object that ``module.Class`` names. Raises ImportError, AttributeError and ValueError."""
    module, _, attribute = path.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def find(option: str, text: str, known: Mapping[str, str], base: type[T]) -> type[T]:
    """The subclass of ``base`` that an option names. Raises ConfigError naming both."""
    word = text.rpartition(".")[2] if text.startswith(_JVM) else text
    path = known.get(word) or known.get(word.removesuffix("Connector")) or text
    try:
        found = load(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{option} has value {text}, of which no class is found ({error}). There are "
            f"{', '.join(known)}, and any module.Class of your own"
        ) from None
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigError(f"{option} has value {text} which is not a {base.__name__}.")
    return found
