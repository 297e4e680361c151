"""Messages as an application gets them: with their partition and with decoders.

Mirrors kafka.message.MessageAndMetadata. The class and the function that makes its objects are
those of ``kafka08._native.scan`` if it was built, which spares a consumer most of its time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from kafka08._native import load
from kafka08.message.batch import NO_TIMESTAMP
from kafka08.message.entry import NO_TIMESTAMP_TYPE, BytesLike, Headers, TimedMessage
from kafka08.message.scan import iter_fields

Decoded: TypeAlias = Any
"""The result of an application's decoder; bytes or None without one."""
Decoder = Callable[[bytes], Decoded]
Details = tuple[int, int, Headers]
_NONE: Details = (NO_TIMESTAMP, NO_TIMESTAMP_TYPE, ())


class MessageSource(NamedTuple):
    """The data that all messages of a chunk share."""

    topic: str
    partition: int
    key_decoder: Decoder | None = None
    value_decoder: Decoder | None = None


class Message:
    """A consumed message.

    ``key`` and ``value`` are decoded at each access; null stays None without a decoder call.
    Timestamps and headers are fetched if api.versions.request is on. ``timestamp`` is in ms; -1 if
    the message has none. ``timestamp_type``: NO_TIMESTAMP_TYPE (-1), CREATE_TIME (0), the
    producer's, or APPEND_TIME (1), the broker's (``message.entry``). ``headers``: (name, value)
    pairs in their order. ``details`` are these three.
    """

    __slots__ = ("_details", "_key", "_source", "_value", "offset")

    def __init__(
        self,
        source: MessageSource,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        details: Details = _NONE,
    ) -> None:
        self._details = details
        self._source = source
        self.offset = offset
        self._key = key
        self._value = value

    @property
    def topic(self) -> str:
        return self._source.topic

    @property
    def partition(self) -> int:
        return self._source.partition

    @property
    def key(self) -> Decoded:
        return _decoded(self._key, self._source.key_decoder)

    @property
    def value(self) -> Decoded:
        return _decoded(self._value, self._source.value_decoder)

    @property
    def timestamp(self) -> int:
        return self._details[0]

    @property
    def timestamp_type(self) -> int:
        return self._details[1]

    @property
    def headers(self) -> Headers:
        return self._details[2]

    def __repr__(self) -> str:
        return f"Message({self.topic}:{self.partition}:{self.offset})"


def _decoded(data: bytes | None, decoder: Decoder | None) -> Decoded:
    return data if data is None or decoder is None else decoder(data)


def consumed(
    source: MessageSource,
    buffer: BytesLike,
    position: int,
    stop: int,
    codec: int = 0,
    number: int | None = None,
) -> list[Message]:
    """``scan.messages`` as an application gets them; ``codec`` is not kept."""
    data = bytes(memoryview(buffer)[position:stop])
    return [
        PlainMessage(
            source,
            offset,
            data[start:key_end] if key_end >= 0 else None,
            data[value:end] if end >= 0 else None,
        )
        for offset, start, key_end, value, end in iter_fields(data, 0, len(data), number)
    ]


def timed(source: MessageSource, message: TimedMessage) -> Message:
    """A message of a later format."""
    details = (message.timestamp, message.timestamp_type, message.headers)
    return Message(source, message.offset, message.key, message.value, details)


PlainMessage, plain_consumed = Message, consumed
native = load("scan")
if native is not None:
    Message, consumed = native.ConsumedMessage, native.consumed  # type: ignore[misc]
