"""The values of the old ``pyspark.streaming.kafka``, as PySpark 2.4 had them. No Spark here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kafka08.common import TopicPartition
from kafka08.spark.planner import Range

# A value of the job's: it decides of which type.
Element: TypeAlias = Any
Decoder = Callable[..., Element]


def utf8_decoder(s: bytes | None) -> str | None:
    """Decode as UTF-8; None stays None."""
    return None if s is None else s.decode("utf-8")


class OffsetRange:
    """Offsets of one partition, from ``fromOffset`` up to but not including ``untilOffset``."""

    __hash__ = None  # type: ignore[assignment]  # as it was: equality without a hash

    def __init__(self, topic: str, partition: int, fromOffset: int, untilOffset: int) -> None:
        self.topic = topic
        self.partition = partition
        self.fromOffset = fromOffset
        self.untilOffset = untilOffset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetRange) and to_range(self) == to_range(other)

    def __str__(self) -> str:
        return (
            f"OffsetRange(topic: {self.topic}, partition: {self.partition}, "
            f"range: [{self.fromOffset} -> {self.untilOffset}])"
        )

    __repr__ = __str__


class TopicAndPartition:
    """One partition of a topic, as a key of ``fromOffsets`` and ``leaders``."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicAndPartition):
            return False
        return self._topic == other._topic and self._partition == other._partition

    def __hash__(self) -> int:
        return hash((self._topic, self._partition))

    def __repr__(self) -> str:
        return f"TopicAndPartition({self._topic!r}, {self._partition})"


class Broker:
    """Where a broker listens."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    def __repr__(self) -> str:
        return f"Broker({self._host!r}, {self._port})"


class KafkaMessageAndMetadata:
    """A message with where it was; ``key`` and ``message`` are decoded at each access.

    Pickled, it forgets its decoders and is back to UTF-8.
    """

    def __init__(
        self, topic: str, partition: int, offset: int, key: bytes | None, message: bytes | None
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self._rawKey = key
        self._rawMessage = message
        self._keyDecoder: Decoder = utf8_decoder
        self._valueDecoder: Decoder = utf8_decoder

    def __str__(self) -> str:
        return (
            f"KafkaMessageAndMetadata(topic: {self.topic}, partition: {self.partition}, "
            f"offset: {self.offset}, key and message...)"
        )

    __repr__ = __str__

    def __reduce__(self) -> tuple[object, ...]:
        raw = (self._rawKey, self._rawMessage)
        return KafkaMessageAndMetadata, (self.topic, self.partition, self.offset, *raw)

    def _set_key_decoder(self, decoder: Decoder) -> None:
        self._keyDecoder = decoder

    def _set_value_decoder(self, decoder: Decoder) -> None:
        self._valueDecoder = decoder

    @property
    def key(self) -> Element:
        return self._keyDecoder(self._rawKey)

    @property
    def message(self) -> Element:
        return self._valueDecoder(self._rawMessage)


def to_range(given: OffsetRange) -> Range:
    return Range(given.topic, given.partition, int(given.fromOffset), int(given.untilOffset))


def to_offset_range(planned: Range) -> OffsetRange:
    return OffsetRange(*planned)


def to_topic_partition(given: TopicAndPartition) -> TopicPartition:
    return TopicPartition(given._topic, given._partition)
