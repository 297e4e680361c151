"""Settings as DescribeConfigs shows them: values, sources, types, meanings."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.protocol import admin_schemas as a
from kafka08.server.apis.described_configs import (
    ConfigSelection,
    broker_entries,
    text,
    topic_entries,
)
from tests.server.support import broker_config

ALL = ConfigSelection(None, True, True)


def entry(found: list[a.ConfigEntry], name: str) -> a.ConfigEntry:
    (one,) = (each for each in found if each.name == name)
    return one


def test_what_a_broker_has_of_its_own_and_what_by_default(tmp_path: Path) -> None:
    found = broker_entries(broker_config(tmp_path, log_retention_hours=5), ALL)
    hours = entry(found, "log.retention.hours")
    assert hours[:3] == ("log.retention.hours", "5", True)
    assert (hours.source, hours.config_type) == (a.STATIC_BROKER_CONFIG, 3)
    assert hours.synonyms == [("log.retention.hours", "5", a.STATIC_BROKER_CONFIG)]
    assert hours.documentation
    derived = entry(found, "log.retention.minutes")
    assert (derived.value, derived.source) == ("300", a.DEFAULT_CONFIG)
    assert entry(found, "auto.create.topics.enable")[1] == "true"
    assert entry(found, "log.dirs").value == str(tmp_path)
    assert entry(found, "broker.id").source == a.STATIC_BROKER_CONFIG


def test_a_topic_follows_its_own_value_then_the_brokers(tmp_path: Path) -> None:
    config = broker_config(tmp_path, min_insync_replicas=2)
    own = {"flush.ms": "5", "unknown": "x"}
    found = topic_entries(config, own, ALL)
    flush = entry(found, "flush.ms")
    assert (flush.value, flush.source, flush.is_default) == ("5", a.TOPIC_CONFIG, False)
    key = "log.flush.interval.ms"
    assert [(s.name, s.source) for s in flush.synonyms] == [
        ("flush.ms", a.TOPIC_CONFIG),
        (key, a.DEFAULT_CONFIG),
    ]
    assert flush.synonyms[1].value == entry(broker_entries(config, ALL), key).value
    insync = entry(found, "min.insync.replicas")
    assert (insync.value, insync.source, insync.is_default) == ("2", a.STATIC_BROKER_CONFIG, True)
    unknown = entry(found, "unknown")
    assert (unknown.value, unknown.config_type, unknown.documentation) == ("x", 0, None)


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    config = broker_config(tmp_path)
    (found,) = topic_entries(config, {}, ConfigSelection(["flush.ms", "no"], False, False))
    assert (found.name, found.synonyms, found.documentation) == ("flush.ms", [], None)
    assert [
        each.name for each in broker_entries(config, ConfigSelection(["port"], False, False))
    ] == ["port"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, "true"),
        (5, "5"),
        ("x", "x"),
        (("a", "b"), "a,b"),
        ({"h": 1, "i": 2}, "h:1,i:2"),
    ],
)
def test_values_as_in_a_file(value: object, expected: str | None) -> None:
    assert text(value) == expected
