"""The errors between a plan and its data; each text says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kafka08.common import Broker, TopicPartition
from kafka08.errors import KafkaError


class DataLossError(KafkaError):
    """Offsets that were planned or committed are no longer in the log."""


class RangeNotAvailableError(DataLossError):
    """A planned range begins before the log does, or ends after it."""


class EndedEarlyError(DataLossError):
    """The log ended before the range did."""


class OpenTransactionError(KafkaError):
    """A range reaches into a transaction that is open, for a reader of committed ones."""


class MessageTooLargeForFetchError(KafkaError):
    """One message is larger than the largest fetch allowed."""


class UnreachableError(KafkaError, OSError):
    """No broker answered."""


class JobError(KafkaError):
    """A job cannot be set up as requested; Spark 2.4 threw a SparkException."""


@contextmanager
def naming(option: str, endpoints: Iterable[tuple[str, int]]) -> Iterator[None]:
    """Add the option and its brokers to errors of calls that reach no broker."""
    try:
        yield
    except OSError as error:
        brokers = ",".join(f"{host}:{port}" for host, port in endpoints)
        raise UnreachableError(f"{option} has value {brokers}: {error}") from None


@contextmanager
def naming_leader(leader: Broker, partitions: Iterable[TopicPartition]) -> Iterator[None]:
    """Add the broker and the partition to connection errors. Raises ConnectionError."""
    try:
        yield
    except OSError as error:
        led = ", ".join(map(str, partitions))
        raise ConnectionError(f"{leader.host}:{leader.port}, leader of {led}: {error}") from error
