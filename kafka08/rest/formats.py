"""Keys and values of records in JSON: base64 of bytes, or JSON stored as text in UTF-8. Pure."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import NamedTuple

from kafka08.message.consumed import Message
from kafka08.rest.calls import Row, parse
from kafka08.rest.errors import KAFKA_ERROR, RestError, bad_entity
from kafka08.rest.media import BINARY, JSON

# Encoders such as Ruby's break lines.
_BLANKS = str.maketrans("", "", "\r\n\t ")


def _from_base64(value: object, where: str) -> bytes:
    try:
        if not isinstance(value, str):
            raise ValueError("it is not a string")
        text = value.translate(_BLANKS)
        if len(text) % 4:
            raise ValueError("its length is not a multiple of 4")
        return b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise bad_entity(f"{where} is not base64: {error}") from None


def _from_json(value: object, where: str) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError) as error:
        raise bad_entity(f"{where} cannot be stored as JSON: {error}") from None


def _to_base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


class Format(NamedTuple):
    """``encode(value, where)`` raises RestError 422, ``decode(data)`` RestError for other data."""

    encode: Callable[[object, str], bytes]
    decode: Callable[[bytes], object]


FORMATS = {BINARY: Format(_from_base64, _to_base64), JSON: Format(_from_json, parse)}


def encoded(name: str, value: object, where: str) -> bytes | None:
    """A key or value as it is stored; null stays null. Raises RestError 422."""
    return None if value is None else FORMATS[name].encode(value, where)


def shown(name: str, message: Message) -> Row:
    """A message's key, value, partition and offset. Raises RestError 50002 if it is not JSON."""
    decode = FORMATS[name].decode
    try:
        key, value = (
            None if data is None else decode(data) for data in (message.key, message.value)
        )
    except RestError as error:
        raise RestError(
            500,
            KAFKA_ERROR,
            f"Kafka error: the message at offset {message.offset} of topic {message.topic} "
            f"partition {message.partition} is not in the format {name}: {error}",
        ) from None
    return {"key": key, "value": value, "partition": message.partition, "offset": message.offset}


def size_of(message: Message) -> int:
    """The bytes of key and value, which is how reads are limited."""
    return sum(len(part) for part in (message.key, message.value) if part is not None)
