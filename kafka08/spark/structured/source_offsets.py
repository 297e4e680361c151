"""The offsets of a streaming query as its checkpoint has them: those of Spark's own Kafka source,
and the time of reading.

Messages of 0.8 have no time of their own. They get that of the batch which read them, and a batch
that runs again after a restart must give them the same, or windows count them twice. The offsets
are all that Spark keeps of a batch, so the time is among them, under a name that no topic can have.
Pure.
"""

from __future__ import annotations

from typing import TypeAlias

from kafka08.common import TopicPartition
from kafka08.errors import ConfigError
from kafka08.spark.planner import Offsets

# Topic -> partition -> offset.
OffsetsJson: TypeAlias = dict[str, dict[str, int]]

TIME = "@timeOfReading"


def to_json(offsets: Offsets, read_ms: int | None = None) -> OffsetsJson:
    """Always in one order: Spark compares them as text. ``read_ms``: when the messages before these
    offsets were planned (ms of the epoch)."""
    found: OffsetsJson = {} if read_ms is None else {TIME: {"0": read_ms}}
    for tp in sorted(offsets):
        found.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return found


def from_json(offsets: OffsetsJson) -> dict[TopicPartition, int]:
    """Raises ConfigError for what ``to_json`` did not write."""
    try:
        return {
            TopicPartition(topic, int(number)): int(offset)
            for topic, numbers in offsets.items()
            if topic != TIME
            for number, offset in numbers.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise _invalid(offsets) from None


def read_time(offsets: OffsetsJson) -> int | None:
    """The ``read_ms`` of ``to_json``; None if there is none, as in offsets of Spark's own source.
    Raises ConfigError."""
    if TIME not in offsets:
        return None
    try:
        return int(offsets[TIME]["0"])
    except (KeyError, TypeError, ValueError):
        raise _invalid(offsets) from None


def _invalid(offsets: OffsetsJson) -> ConfigError:
    return ConfigError(f"Invalid offsets in the checkpoint: {offsets}")
