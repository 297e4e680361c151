"""Values that every layer uses, and the JVM arithmetic that the wire and ZooKeeper rely on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeVar

from kafka08.errors import InvalidTopicError

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
MAX_TOPIC_LENGTH = 255
ISOLATION_LEVELS = READ_UNCOMMITTED, READ_COMMITTED = ("read_uncommitted", "read_committed")
# Values of an Offsets request that stand in place of a time (kafka.api.OffsetRequest).
LATEST_TIME = -1
EARLIEST_TIME = -2
# Of our brokers among themselves: up to where a log holds what 0.8.2.2 cannot read.
LATER_FORMATS_TIME = -1008
TRACE = 5  # log4j's level, below logging.DEBUG
C = TypeVar("C", bound="Closing")
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")


class Closing:
    """A context manager that closes itself at the end."""

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> object:
        raise NotImplementedError


class WallClock(Protocol):
    """The part of kafka08.runtime.Clock that logs need."""

    def millis(self) -> int: ...


class TopicPartition(NamedTuple):
    """One partition of a topic; prints as the original's logs do: ``[topic,0]``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"[{self.topic},{self.partition}]"


class Broker(NamedTuple):
    """A broker as peers and clients reach it (kafka.cluster.Broker)."""

    id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"id:{self.id},host:{self.host},port:{self.port}"


class Endpoint(NamedTuple):
    """Where a broker's listener can be reached; prints as in ``listeners`` and in ZooKeeper:
    ``NAME://host:port``. ``host`` is without brackets, and empty for every interface."""

    listener: str
    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


def csv(values: Iterable[object]) -> str:
    """As logs and errors list brokers, partitions and states."""
    return ",".join(map(str, values))


def bare(host: str) -> str:
    """A host without blanks around it and without the brackets of an IPv6 address."""
    return host.strip().removeprefix("[").removesuffix("]")


# The security protocols, and the listener that 0.8.2.2 has, which is named as its protocol.
PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = PROTOCOLS = (
    "PLAINTEXT",
    "SSL",
    "SASL_PLAINTEXT",
    "SASL_SSL",
)
SASL = (SASL_PLAINTEXT, SASL_SSL)
ANONYMOUS = "User:ANONYMOUS"


def validate_topic(name: str) -> None:
    """Check a topic name; the errors are those of kafka.common.Topic.

    Raises InvalidTopicError (code 17).
    """
    if not name:
        raise InvalidTopicError("topic name is illegal, can't be empty")
    if name in (".", ".."):
        raise InvalidTopicError('topic name cannot be "." or ".."')
    if len(name) > MAX_TOPIC_LENGTH:
        raise InvalidTopicError(
            f"topic name is illegal, can't be longer than {MAX_TOPIC_LENGTH} characters"
        )
    if not _LEGAL_TOPIC.fullmatch(name):
        raise InvalidTopicError(
            f"topic name {name} is illegal, contains a character other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )


def java_string_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 units, wrapped to a signed 32-bit integer."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def java_bytes_hash(data: bytes) -> int:
    """``Arrays.hashCode(byte[])``: signed bytes, seed 1, wrapped to a signed 32-bit integer."""
    value = 1
    for byte in data:
        value = (31 * value + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def scala_abs(number: int) -> int:
    """kafka.utils.Utils.abs: the absolute value, but 0 for -2^31."""
    return 0 if number == -(1 << 31) else abs(number)


def fetcher_number(tp: TopicPartition, num_fetchers: int) -> int:
    """Which of a broker's fetchers takes a partition (AbstractFetcherManager.getFetcherId)."""
    mixed = (31 * java_string_hash(tp.topic) + tp.partition) & 0xFFFFFFFF
    return scala_abs(mixed - (1 << 32) if mixed >= 1 << 31 else mixed) % num_fetchers


@lru_cache(maxsize=1000)  # each request about a group or a transactional id needs it
def offsets_partition_for(group: str, num_partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that keeps a group (kafka.server.OffsetManager)."""
    return scala_abs(java_string_hash(group)) % num_partitions
