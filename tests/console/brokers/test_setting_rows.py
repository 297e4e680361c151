"""kafka08.console.brokers.setting_rows."""

from __future__ import annotations

import pytest

from kafka08.console.brokers.setting_rows import BrokerSettingRow, changes, setting_rows
from kafka08.console.forms import FieldError
from kafka08.protocol import admin_schemas as a
from kafka08.server.apis.described_configs import (
    ConfigSelection,
    broker_entries,
    dynamic_entries,
)
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.dynamic import DynamicBrokerSettings

LEADER = "leader.replication.throttled.rate"
FOLLOWER = "follower.replication.throttled.rate"
ALL = ConfigSelection(None, synonyms=True, documentation=False)


def rows(
    own: dict[str, str] | None = None, common: dict[str, str] | None = None, **file: str
) -> dict[str, BrokerSettingRow]:
    """As a broker tells them that has ``file``; names have _ for dots."""
    properties = {key.replace("_", "."): text for key, text in file.items()}
    config = BrokerConfig.from_properties(
        {"broker.id": "1", "zookeeper.connect": "zk:2181", **properties}
    )
    entries = [*broker_entries(config, ALL), *dynamic_entries(own or {}, common or {}, ALL)]
    return {row.name: row for row in setting_rows(entries)}


def test_every_setting_has_a_row_by_name() -> None:
    found = rows()
    assert found.keys() == BrokerConfig.keys() | DynamicBrokerSettings.keys()
    assert list(found) == sorted(found)
    assert {name for name, row in found.items() if row.is_field} == {LEADER, FOLLOWER}
    assert all(row.doc for row in found.values())


def test_where_values_are_from() -> None:
    found = rows({LEADER: "5"}, {LEADER: "6", FOLLOWER: "7"}, log_retention_hours="24")
    row = found[LEADER]
    assert (row.value, row.source) == ("5", "this broker")
    assert (row.broker_value, row.cluster_value) == ("5", "6")
    row = found[FOLLOWER]
    assert (row.value, row.source) == ("7", "all brokers")
    assert (row.broker_value, row.cluster_value) == (None, "7")
    row = found["log.retention.hours"]
    assert (row.value, row.plain, row.source) == ("24", "1 day", "server.properties")
    assert (row.default, row.default_plain, row.is_dynamic) == ("168", "7 days", False)
    row = found["num.io.threads"]
    assert (row.value, row.plain, row.source) == ("8", "", "built-in")
    assert rows()[LEADER].source == "built-in"
    row = found["log.roll.ms"]
    assert (row.value, row.plain) == ("604800000", "7 days")
    assert (row.default, row.default_plain) == (None, "log.roll.hours")


@pytest.mark.parametrize(
    ("name", "kind", "unit", "plain"),
    [
        (LEADER, "number", "bytes/s", "no limit"),
        ("log.segment.bytes", "number", "bytes", "1 GiB"),
        ("log.retention.hours", "number", "h", "7 days"),
        ("log.retention.bytes", "number", "bytes", "no limit"),
        ("offsets.retention.minutes", "number", "min", "1 day"),
        ("leader.imbalance.check.interval.seconds", "number", "s", "5 min"),
        ("replica.lag.time.max.ms", "number", "ms", "10 s"),
        ("log.cleaner.dedupe.buffer.size", "number", "bytes", "500 MiB"),
        ("log.cleaner.io.max.bytes.per.second", "number", "bytes/s", "no limit"),
        ("log.scrub.bytes.per.second", "number", "bytes/s", "10 MiB/s"),
        ("log.flush.interval.messages", "number", "", "never"),
        ("quota.producer.default", "number", "bytes/s", "no limit"),
        ("auto.create.topics.enable", "yes/no", "", ""),
        ("log.dirs", "list", "", ""),
        ("advertised.host.name", "text", "", ""),
        ("ssl.keystore.password", "secret", "", ""),
        ("max.connections.per.ip.overrides", "list", "", ""),
    ],
)
def test_types_and_units(name: str, kind: str, unit: str, plain: str) -> None:
    row = rows()[name]
    assert (row.type, row.unit, row.plain) == (kind, unit, plain)


def test_choices() -> None:
    found = rows()
    assert found["auto.create.topics.enable"].choices == ("true", "false")
    assert "compact" in found["log.cleanup.policy"].choices


@pytest.mark.parametrize(
    ("name", "is_sensitive"),
    [("ssl.keystore.password", False), ("later.secret", False), ("later.setting", True)],
)
def test_a_secret_is_hidden_whatever_the_broker_tells(name: str, is_sensitive: bool) -> None:
    entry = a.ConfigEntry(
        name,
        "hunter2",
        False,
        is_sensitive=is_sensitive,
        source=a.DYNAMIC_BROKER_CONFIG,
        synonyms=[a.ConfigSynonym(name, "hunter2", a.DYNAMIC_BROKER_CONFIG)],
    )
    [row] = setting_rows([entry])
    assert "hunter2" not in str(row)
    assert (row.is_hidden, row.type, row.is_field) == (True, "secret", False)


def test_a_setting_and_a_source_that_the_console_does_not_know() -> None:
    [row] = setting_rows([a.ConfigEntry("later", "5", False, source=9)])
    assert (row.type, row.source, row.value, row.default) == ("unknown", "unknown", "5", None)
    assert row.is_field
    assert changes({"broker.later": " 6 "}, [row])["broker"] == {"later": "6"}


def test_only_what_has_changed_is_changed() -> None:
    found = rows({LEADER: "1024"}, {LEADER: "2048"}).values()
    none = {"broker": {}, "cluster": {}}
    assert changes({}, found) == none
    same = {f"broker.{LEADER}": " 1 KiB/s", f"cluster.{LEADER}": "2048", f"broker.{FOLLOWER}": ""}
    assert changes(same, found) == none
    assert changes({"broker.log.segment.bytes": "5"}, found) == none  # not while it runs


def test_values_of_a_broker_and_of_all_are_set_and_removed() -> None:
    found = rows({LEADER: "1024"}, {FOLLOWER: "5"}).values()
    form = {
        f"broker.{LEADER}": "",
        f"cluster.{LEADER}": "10 MiB/s",
        f"broker.{FOLLOWER}": "no limit",
        f"cluster.{FOLLOWER}": "1 MB",
    }
    assert changes(form, found) == {
        "broker": {LEADER: None, FOLLOWER: "9223372036854775807"},
        "cluster": {LEADER: "10485760", FOLLOWER: "1000000"},
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("fast", "'fast' is not like 10 MiB/s"),
        ("0", "0 is not between 1 and"),
        ("-5", "is not between"),
        ("9223372036854775808", "is not between"),
        ("0.5", "is not a whole number of bytes/s"),
        ("5 days", "is not like"),
    ],
)
@pytest.mark.parametrize("scope", ["broker", "cluster"])
def test_a_wrong_value_is_refused_beside_its_field(scope: str, text: str, told: str) -> None:
    with pytest.raises(FieldError) as caught:
        changes({f"{scope}.{LEADER}": text}, rows().values())
    assert caught.value.field == f"{scope}.{LEADER}"
    assert told in caught.value.text
