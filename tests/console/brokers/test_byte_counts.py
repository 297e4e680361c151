"""kafka08.console.brokers.byte_counts."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from kafka08.console.brokers.byte_counts import PATH, ByteCounts, byte_counts
from kafka08.errors import KafkaError
from kafka08.metrics.jmx import bean_pattern
from tests.fakes.http_pages import bean_list

BEANS = bean_list({"": (1, 2)})


def test_counts_of_all_topics_and_of_each() -> None:
    body = bean_list({"": (30, 9), "a": (10, 9), "b": (20, 0)})
    assert byte_counts(body) == ByteCounts({"": 30, "a": 10, "b": 20}, {"": 9, "a": 9, "b": 0})


def test_these_beans_alone_are_asked_for() -> None:
    assert urlsplit(PATH).path == "/jmx"
    pattern = bean_pattern(parse_qs(urlsplit(PATH).query)["qry"][0])
    prefix = "kafka.server:type=BrokerTopicMetrics,name="
    assert pattern.fits(f"{prefix}BytesInPerSec,topic=t") and pattern.fits(
        f"{prefix}BytesOutPerSec"
    )
    assert not pattern.fits(f"{prefix}MessagesInPerSec,topic=t")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"\xff",
        b"[" * 100_000,
        b"[]",
        b'{"beans": 5}',
        b'{"beans": []}',
        b'{"beans": ["a"]}',
        json.dumps({"beans": [{"name": 5, "Count": 1}]}).encode(),
        BEANS.replace(b'"Count": 1,', b'"Count": "1",'),
        BEANS.replace(b'"Count": 1,', b'"Count": -1,'),
        BEANS.replace(b'"Count": 1,', b""),
        BEANS[:-9],
        bean_list({"a": (1, 2)}),
    ],
)
def test_other_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(KafkaError, match="are not beans of a broker"):
        byte_counts(body)
