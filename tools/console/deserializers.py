"""--key-deserializer and --value-deserializer of later releases: binary numbers shown as text.

The classes of org.apache.kafka.common.serialization, with or without the package, or
``module.attribute`` of a Python function from bytes. Knows no message.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable

from kafka08.errors import KafkaError
from kafka08.producer.serializers import load

Deserializer = Callable[[bytes | None], bytes | None]
_PACKAGE = "org.apache.kafka.common.serialization."
_NUMBERS = {"Short": ">h", "Integer": ">i", "Long": ">q", "Float": ">f", "Double": ">d"}


class DeserializationError(KafkaError):
    java_class = "org.apache.kafka.common.errors.SerializationException"


def _as_is(data: bytes | None) -> bytes | None:
    return data


def _shown(decode: Callable[[bytes], object]) -> Deserializer:
    def show(data: bytes | None) -> bytes | None:
        return None if data is None else str(decode(data)).encode()

    return show


def _number(name: str, form: str) -> Callable[[bytes], object]:
    layout = struct.Struct(form)

    def decode(data: bytes) -> object:
        if len(data) != layout.size:
            raise DeserializationError(
                f"Size of data received by {name}Deserializer is not {layout.size}"
            )
        return layout.unpack(data)[0]

    return decode


_KNOWN: dict[str, Deserializer] = {
    "StringDeserializer": _as_is,
    "ByteArrayDeserializer": _as_is,
    "BytesDeserializer": _as_is,
    "ByteBufferDeserializer": _as_is,
    "UUIDDeserializer": _shown(lambda data: uuid.UUID(data.decode())),
    **{f"{n}Deserializer": _shown(_number(n, form)) for n, form in _NUMBERS.items()},
}


def deserializer_named(name: str | None) -> Deserializer:
    """Raises ConfigError when there is no such class."""
    if name is None:
        return _as_is
    known = _KNOWN.get(name.removeprefix(_PACKAGE))
    return known or _shown(load(name))
