"""Samples of statsd and collectd for the example of metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.docs.test_charts import example

metric_lines = example("metric_lines")
Sample = metric_lines.Sample
NOW = 1000.0
VALUE_LIST: dict[str, Any] = {
    "values": [1901474177, 7],
    "dstypes": ["counter", "gauge"],
    "dsnames": ["rx", "value"],
    "time": 1280959128,
    "interval": 10,
    "host": "leeloo",
    "plugin": "cpu",
    "plugin_instance": "0",
    "type": "cpu",
    "type_instance": "idle",
}


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        ("web.requests:3|c", ("web.requests", "count", 3.0, NOW)),
        ("web.requests:3|c|@0.1", ("web.requests", "count", 30.0, NOW)),
        ("queue:-0.5|c|#env:prod,a:b|T1656581409", ("queue", "count", -0.5, 1656581409.0)),
        ("load:1.25|g", ("load", "gauge", 1.25, NOW)),
        ("answer:320|ms|@0.1", ("answer", "time", 320.0, NOW)),
        ("answer:320|h", ("answer", "time", 320.0, NOW)),
        ("users:ann|s", ("users", "set", "ann", NOW)),
    ],
)
def test_lines_of_statsd(line: str, sample: tuple[Any, ...]) -> None:
    assert metric_lines.parse(line, NOW) == [sample]


def test_values_of_collectds_plain_text() -> None:
    line = 'PUTVAL "leeloo/cpu 0/cpu-idle" interval=10 1251533299.5:4:U:6 N:7:8:9'
    assert metric_lines.parse(line, NOW) == [
        ("leeloo.cpu 0.cpu-idle.0", "gauge", 4.0, 1251533299.5),
        ("leeloo.cpu 0.cpu-idle.2", "gauge", 6.0, 1251533299.5),
        ("leeloo.cpu 0.cpu-idle.0", "gauge", 7.0, NOW),
        ("leeloo.cpu 0.cpu-idle.1", "gauge", 8.0, NOW),
        ("leeloo.cpu 0.cpu-idle.2", "gauge", 9.0, NOW),
    ]


def test_value_lists_of_collectds_json() -> None:
    other = {**VALUE_LIST, "plugin_instance": "", "type_instance": "", "values": [None, 2]}
    assert metric_lines.parse(json.dumps([VALUE_LIST, other]), NOW) == [
        ("leeloo.cpu-0.cpu-idle.rx", "total", 1901474177.0, 1280959128.0),
        ("leeloo.cpu-0.cpu-idle", "gauge", 7.0, 1280959128.0),
        ("leeloo.cpu.cpu", "gauge", 2.0, 1280959128.0),
    ]


def test_a_datagram_has_several_lines_but_one_json() -> None:
    assert metric_lines.lines(b"a:1|c\n\nb:2|c\n") == ["a:1|c", "b:2|c"]
    assert metric_lines.lines(b"[\n{}\n]\n") == ["[\n{}\n]"]
    assert metric_lines.lines(b"\xff:1|c") == ["\ufffd:1|c"]
    assert metric_lines.lines(b"\n") == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("web.requests", "neither statsd nor collectd"),
        ("web.requests:3|x", "neither statsd nor collectd"),
        ("web.requests:three|c", "could not convert"),
        ("load:nan|g", "nan is not a number"),
        ("load:+4|g", "a change of a gauge"),
        ("web.requests:3|c|@0", "a sample rate of 0.0"),
        ("PUTVAL a/b/c", "PUTVAL without values"),
        ("PUTVAL a/b/c x:1", "could not convert"),
        ('PUTVAL "a/b/c 1:1', "No closing quotation"),
        ("PUTVAL", "neither statsd nor collectd"),
        ("[1]", "not a value list"),
        ("[{}]", "not a value list of collectd: 'plugin'"),
        ("[{", "Expecting"),
        (json.dumps([{**VALUE_LIST, "dstypes": ["other", "gauge"]}]), "'other'"),
        (json.dumps([{**VALUE_LIST, "values": [1]}]), "shorter|longer"),
        (json.dumps([{**VALUE_LIST, "host": None}]), "not a value list"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(line: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        metric_lines.parse(line, NOW)
