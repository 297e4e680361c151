from __future__ import annotations

from collections.abc import Iterable

import pytest

from kafka08.admin import InvalidArgumentError
from kafka08.common import TopicPartition
from kafka08.errors import UnknownTopicOrPartitionError
from kafka08.groups.reset import parse_datetime, parse_duration, parse_partitions, parse_plan

KNOWN = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1970-01-01T00:00:00.000", 0),
        ("1970-01-01T00:00:01.5", 1005),
        ("2015-10-21T16:29:00.007Z", 1445444940007),
        ("2015-10-21T16:29:00.007+02", 1445437740007),
        ("2015-10-21T16:29:00.007-0130", 1445450340007),
        ("2015-10-21T16:29:00.007+05:30", 1445425140007),
    ],
)
def test_datetime(text: str, millis: int) -> None:
    assert parse_datetime(text) == millis


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2015-10-21",
        "2015-10-21T16:29:00",
        "2015-13-21T16:29:00.000",
        "2015-10-21T16:29:00.000+99:00",
        "2015-10-21T16:29:00.000 ",
    ],
)
def test_no_datetime(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not a time like"):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("PT0S", 0),
        ("P1D", 86400000),
        ("PT1H", 3600000),
        ("P1DT2H3M4.5S", 93784500),
        ("-PT1M", -60000),
    ],
)
def test_duration(text: str, millis: int) -> None:
    assert parse_duration(text) == millis


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "PT1D", "P1M", f"P{'9' * 30}D"])
def test_no_duration(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_duration(text)


def existing(topics: Iterable[str]) -> list[TopicPartition]:
    return [tp for tp in KNOWN if tp.topic in topics]


def test_partitions() -> None:
    assert parse_partitions(["t", "u:0", "t:1"], existing) == KNOWN[:2] + KNOWN[2:]
    assert parse_partitions(["t:1,0"], existing) == [KNOWN[1], KNOWN[0]]


@pytest.mark.parametrize("word", ["", ":0", "t:", "t:x", "t:-1", "t:1,", "t:0:1"])
def test_no_partitions(word: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_partitions([word], existing)


@pytest.mark.parametrize("word", ["v", "v:0", "t:2"])
def test_unknown_partitions(word: str) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="doesn't exist"):
        parse_partitions([word], existing)


def test_plan() -> None:
    t0, t1 = KNOWN[:2]
    assert parse_plan("t,0,5\n t , 1 ,6\n\n", ["g"]) == {"g": {t0: 5, t1: 6}}
    assert parse_plan("g,t,0,5\nh,t,1,6\n", ["g", "h"]) == {"g": {t0: 5}, "h": {t1: 6}}
    assert parse_plan("", ["g"]) == {}


@pytest.mark.parametrize("line", ["t,0", "t,x,5", "t,0,", ",0,5", "t,-1,5", "a,b,c,d,e"])
def test_no_plan(line: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Line 2 is not topic,partition,offset"):
        parse_plan(f"t,0,5\n{line}\n", ["g"])
