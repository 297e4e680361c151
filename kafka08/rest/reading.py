"""One read of a consumer instance: messages from a stream, bounded by time and by bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka08.consumer.errors import ConsumerTimeoutError, StreamFailedError
from kafka08.consumer.stream import KafkaStream
from kafka08.errors import KafkaError, MessageSizeTooLargeError
from kafka08.message.consumed import Message
from kafka08.rest.errors import KAFKA_ERROR, RestError
from kafka08.rest.formats import size_of
from kafka08.runtime import Event, Runtime

# A stream waits this long for a message; then the read checks whether it should end.
STREAM_TIMEOUT_MS = 1


class Limits(NamedTuple):
    """``min_bytes``: wait for so much, if there is time."""

    timeout_s: float
    max_bytes: int
    min_bytes: int = 1


class Shown(NamedTuple):
    """A message and what is sent of it."""

    message: Message
    record: dict[str, Any]


Show = Callable[[Message], dict[str, Any]]
"""Raises RestError for a message that cannot be shown."""


class StreamReader:
    """Reads with pauses of ``backoff_s`` while nothing arrives, until ``stopping`` is set."""

    def __init__(self, runtime: Runtime, stopping: Event, backoff_s: float) -> None:
        self._clock = runtime.clock
        self._stopping = stopping
        self._backoff_s = backoff_s

    def read(self, stream: KafkaStream, limits: Limits, show: Show) -> list[Shown]:
        """The next messages: one at least if any comes in time, and those at hand with it.

        The stream must have the time-out STREAM_TIMEOUT_MS. All messages that are returned count as
        processed. Raises RestError 50002 if the next message cannot be read.
        """
        deadline = self._clock.monotonic() + limits.timeout_s
        found: list[Shown] = []
        size = 0
        while not self._stopping.is_set():
            try:
                if not stream.has_next():
                    break
            except ConsumerTimeoutError:
                left = deadline - self._clock.monotonic()
                if (found and size >= limits.min_bytes) or left <= 0:
                    break
                self._stopping.wait(min(self._backoff_s, left))
                continue
            except KafkaError as error:
                if found:
                    break  # the next read raises it
                raise _unreadable(error) from error
            message = stream.peek()
            if message is None:  # its partition was released meanwhile
                stream.take()
                continue
            if found and size + size_of(message) > limits.max_bytes:
                break
            try:
                found.append(Shown(message, show(message)))
            except RestError:
                if found:
                    break
                raise
            size += size_of(message)
            taken = stream.take()
            if taken is not None:
                taken[0].processed_offset = message.offset + 1
        return found


def _unreadable(error: KafkaError) -> RestError:
    cause = error.__cause__ if isinstance(error, StreamFailedError) else error
    advice = ""
    if isinstance(cause, MessageSizeTooLargeError):
        advice = " The fetch size is consumer.request.max.bytes."
    return RestError(500, KAFKA_ERROR, f"Kafka error: {cause or error}{advice}")
