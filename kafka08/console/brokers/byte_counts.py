"""The bytes that a broker has counted, as its beans say them over HTTP. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.errors import KafkaError

ALL_TOPICS = ""
PATH = "/jmx?qry=kafka.server:type=BrokerTopicMetrics,name=Bytes*PerSec,*"


class ByteCounts(NamedTuple):
    """Bytes since the start of a broker, by topic, and under ``ALL_TOPICS`` of all together."""

    bytes_in: Mapping[str, int]
    bytes_out: Mapping[str, int]


def byte_counts(body: bytes) -> ByteCounts:
    """``body``: of the page ``PATH``. Raises KafkaError for what is not a broker's."""
    try:
        return _counts(json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise KafkaError("its metrics over HTTP are not beans of a broker") from None


def _counts(answer: Mapping[str, list[Mapping[str, object]]]) -> ByteCounts:
    """Raises the errors of values that are of other types."""
    counts: dict[str, dict[str, int]] = {"BytesInPerSec": {}, "BytesOutPerSec": {}}
    for bean in answer["beans"]:
        name, count = bean["name"], bean["Count"]
        if not isinstance(name, str) or not isinstance(count, int) or count < 0:
            raise TypeError(name)
        has = dict(each.split("=", 1) for each in name.partition(":")[2].split(","))
        of = counts.get(has["name"])
        if of is not None:
            of[has.get("topic", ALL_TOPICS)] = count
    for of in counts.values():
        of[ALL_TOPICS]  # it is there before there is a topic
    return ByteCounts(counts["BytesInPerSec"], counts["BytesOutPerSec"])
