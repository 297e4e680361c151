"""kafka08.console.topics.setting_kinds. The rows of topics and brokers have further cases."""

from __future__ import annotations

import pytest

from kafka08.console.forms import FieldError
from kafka08.console.topics.setting_kinds import (
    choices_of,
    default_text,
    doc_of,
    mistake,
    plain_of,
    taken,
    type_of,
    unit_of,
)
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.dynamic import DynamicBrokerSettings
from kafka08.settings.later_topics import LaterTopicSettings
from kafka08.settings.topic import LogConfig

BROKER = {each.key: each for each in BrokerConfig.settings().values()}
TOPIC = {each.key: each for each in LogConfig.settings().values()}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("broker.id", None),  # it has to be set
        ("log.roll.ms", None),  # it follows from log.roll.hours
        ("log.retention.hours", "168"),
        ("delete.topic.enable", "false"),
        ("log.cleanup.policy", "delete"),
    ],
)
def test_built_in_defaults(key: str, text: str | None) -> None:
    assert default_text(BROKER[key]) == text


def test_without_a_declaration_nothing_is_known() -> None:
    assert (type_of(None, ()), choices_of("x.ms", None), unit_of("x.ms", None)) == (
        "unknown",
        (),
        "",
    )
    assert plain_of("x.ms", None, "1000") == ""
    assert taken("x.ms", None, "anything", "f") == "anything"


@pytest.mark.parametrize("value", [None, "", "many", "1.5"])
def test_a_value_that_is_no_number_has_no_unit(value: str | None) -> None:
    assert plain_of("retention.ms", TOPIC["retention.ms"], value) == ""


def test_values_of_fields() -> None:
    assert taken("retention.ms", TOPIC["retention.ms"], "7 days", "f") == "604800000"
    with pytest.raises(FieldError, match="'maybe' is not one of true, false"):
        taken("delete.topic.enable", BROKER["delete.topic.enable"], "maybe", "f")


def test_texts_for_people() -> None:
    assert all("`" not in doc_of(each) for each in (*BROKER.values(), *TOPIC.values()))
    assert mistake(TOPIC["message.format.version"]) == "is not a release like 2.8"
    assert mistake(TOPIC["retention.ms"]) == "is not a number"


COUNTS = {
    "broker.processes",
    "port", "advertised.port", "http.port", "mx4jport", "broker.id",
    "flush.messages", "log.flush.interval.messages", "replica.lag.max.messages",
    "log.cleaner.io.buffer.load.factor", "log.cleaner.min.cleanable.ratio",
    "min.cleanable.dirty.ratio", "min.insync.replicas", "transaction.state.log.min.isr",
    "offsets.commit.required.acks", "controlled.shutdown.max.retries", "max.connections",
    "max.connections.per.ip", "queued.max.requests", "controller.message.queue.size",
    "group.max.size", "num.replica.fetchers", "quota.window.num", "replication.quota.window.num",
    "fetch.purgatory.purge.interval.requests", "producer.purgatory.purge.interval.requests",
}  # fmt: skip
"""Numbers without a unit: of things, of ports, and shares of one."""
COUNTED = (".threads", "threads.per.data.dir", "num.partitions", ".replication.factor", ".level")


def test_every_other_number_has_a_unit() -> None:
    known = [
        each
        for kind in (BrokerConfig, DynamicBrokerSettings, LogConfig, LaterTopicSettings)
        for each in kind.settings().values()
        if each.kind.name in ("short", "int", "long", "double")
    ]
    without = {each.key for each in known if not unit_of(each.key, each)}
    assert {key for key in without if not key.endswith(COUNTED)} == COUNTS
    for each in known:
        unit = unit_of(each.key, each)
        words = each.key.split(".")
        wanted = {"ms": "ms", "hours": "h", "minutes": "min", "seconds": "s", "bytes": "bytes"}
        if words[-3:] == ["bytes", "per", "second"]:
            assert unit == "bytes/s"
        elif words[-1] in wanted:
            assert unit == wanted[words[-1]], each.key


@pytest.mark.parametrize(
    ("key", "value", "plain"),
    [
        ("log.cleaner.io.max.bytes.per.second", "1.7976931348623157e+308", "no limit"),
        ("log.cleaner.io.max.bytes.per.second", "10485760.0", "10 MiB/s"),
        ("log.cleaner.io.max.bytes.per.second", "0.5", ""),
        ("log.cleaner.io.max.bytes.per.second", "inf", ""),
        ("log.cleaner.io.max.bytes.per.second", "nan", ""),
        ("log.cleaner.io.max.bytes.per.second", "fast", ""),
        ("log.cleaner.min.cleanable.ratio", "1.0", ""),
        ("leader.imbalance.per.broker.percentage", "10", "10 %"),
        ("max.connection.creation.rate", "20", "20 /s"),
    ],
)
def test_numbers_in_units(key: str, value: str, plain: str) -> None:
    assert plain_of(key, BROKER[key], value) == plain
