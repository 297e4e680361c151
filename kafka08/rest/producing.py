"""Writes the records of a request, and reports where each was stored or why it was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafka08.common import Broker
from kafka08.errors import KafkaError, MessageSizeTooLargeError
from kafka08.producer.errors import RecordTooLargeError
from kafka08.producer.kafka_producer import KafkaProducer, RecordFuture
from kafka08.rest.calls import Row
from kafka08.rest.errors import KAFKA_ERROR, code_of
from kafka08.runtime import Runtime

Producing = Callable[..., KafkaProducer]


class Record(NamedTuple):
    """Key and value as they are stored; ``partition`` None lets the producer choose. ``timestamp``
    (ms) and ``headers`` need a producer with api.versions.request."""

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass
class SharedProducer:
    """The proxy's one producer, made when something is first written.

    ``properties`` are settings of KafkaProducer; without bootstrap.servers it begins with
    ``brokers``, the live ones.
    """

    properties: Mapping[str, str]
    brokers: Callable[[], Sequence[Broker]]
    runtime: Runtime
    make: Producing = KafkaProducer
    _producer: KafkaProducer | None = None

    def __post_init__(self) -> None:
        self._lock = self.runtime.lock()

    def _get(self) -> KafkaProducer:
        with self._lock:
            if self._producer is None:
                settings = dict(self.properties)
                if "bootstrap.servers" not in settings:
                    addresses = [f"{each.host}:{each.port}" for each in self.brokers()]
                    if not addresses:
                        raise KafkaError("no broker is registered in ZooKeeper")
                    settings["bootstrap.servers"] = ",".join(addresses)
                settings.setdefault("client.id", "kafka-rest")
                self._producer = self.make(settings, runtime=self.runtime)
            return self._producer

    def write(self, topic: str, records: Sequence[Record]) -> list[Row]:
        """The outcome of each record in its order: partition and offset, or an error.

        Waits until all are stored or failed, which the producer's time-outs bound.
        """
        try:
            producer = self._get()
            producer.partitions_for(topic)  # waits once for a new topic, not for each record
        except (KafkaError, OSError) as error:
            return [_failed(error)] * len(records)
        sent = [_send(producer, topic, record) for record in records]
        outcomes = [_outcome(future) for future in sent]
        for index, (future, record) in enumerate(zip(sent, records, strict=True)):
            if _was_refused_with_others(future):
                outcomes[index] = _outcome(_send(producer, topic, record))
        return outcomes

    def close(self, timeout_s: float) -> None:
        """Send the rest for at most so long."""
        with self._lock:
            if self._producer is not None:
                self._producer.close(timeout_s)


_Sent = RecordFuture | Exception


def _send(producer: KafkaProducer, topic: str, record: Record) -> _Sent:
    try:
        return producer.send(
            topic,
            record.value,
            record.key,
            record.partition,
            timestamp=record.timestamp,
            headers=record.headers or None,
        )
    except (KafkaError, OSError, ValueError) as error:
        return error


def _was_refused_with_others(sent: _Sent) -> bool:
    """Whether a broker refused a whole set because a message in it was too large."""
    if isinstance(sent, Exception):
        return False
    error = sent.exception()
    too_large = isinstance(error, MessageSizeTooLargeError)
    return too_large and not isinstance(error, RecordTooLargeError)


def _outcome(sent: _Sent) -> Row:
    error = sent if isinstance(sent, Exception) else sent.exception()
    if error is not None:
        return _failed(error)
    assert not isinstance(sent, Exception)
    stored = sent.result()
    return {
        "partition": stored.partition,
        "offset": stored.offset,
        "error_code": None,
        "error": None,
    }


def _failed(error: BaseException) -> Row:
    code = KAFKA_ERROR if isinstance(error, ValueError) else code_of(error)
    return {"partition": None, "offset": None, "error_code": code, "error": str(error)}
