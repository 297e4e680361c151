"""docs/compatibility.md names every setting of Kafka 3.9 and every node that 0.8.2.2 lacks.

tests/golden/configs-3.9.csv has the documented settings of that release: scope, name, type,
default, and whether a broker changes it while it runs. integration/test_later_settings.py
compares it with the jars.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from kafka08.security.acl_nodes import CHANGES, ROOTS
from kafka08.server.access import scram_credentials
from kafka08.server.cluster_view import producer_ids
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.later_topics import LaterTopicSettings
from kafka08.settings.topic import LogConfig
from zk import entities, znodes

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
# The nodes that 0.8.2.2 writes (kafka.utils.ZkUtils).
OF_0822 = {
    "/consumers", "/brokers/ids", "/brokers/topics", "/config/topics", "/config/changes",
    "/controller", "/controller_epoch", "/admin/reassign_partitions", "/admin/delete_topics",
    "/admin/preferred_replica_election",
}  # fmt: skip


def settings(scope: str) -> dict[str, str]:
    """Name to default."""
    with (ROOT / "tests" / "golden" / "configs-3.9.csv").open(encoding="utf-8") as file:
        return {
            row["name"]: row["default"] for row in csv.DictReader(file) if row["scope"] == scope
        }


def fates(scope: str) -> list[tuple[list[str], str]]:
    """The rows of the table of topics' or brokers' settings: names, and what becomes of them."""
    section = PAGE.split(f"### Of {scope}s\n")[1].split("\n#")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return [(re.findall(r"`([^`]+)`", names), fate.rstrip(" |")) for names, fate in rows]


def named(scope: str) -> Mapping[str, str]:
    pairs = [(name, fate) for names, fate in fates(scope) for name in names]
    assert len(pairs) == len(dict(pairs)), "a setting is named twice"
    return dict(pairs)


@pytest.mark.parametrize("scope", ["topic", "broker"])
def test_every_setting_has_a_fate(scope: str) -> None:
    assert set(named(scope)) == set(settings(scope))


def test_the_settings_of_logs_are_served() -> None:
    ours = LogConfig.keys() & set(settings("topic"))
    assert {name for name, fate in named("topic").items() if fate == "Served"} >= ours
    assert not LaterTopicSettings.keys() & {
        name for name, fate in named("topic").items() if fate == "Served"
    }


def test_what_the_broker_does_not_read_is_not_called_served() -> None:
    ours = BrokerConfig.keys() & set(settings("broker"))
    for name, fate in named("broker").items():
        if name in ours:
            assert fate.startswith(("Served", "Accepted")), name


def test_other_settings_of_topics_are_those_that_are_checked() -> None:
    others = {name for name, fate in named("topic").items() if fate != "Served"}
    assert others == LaterTopicSettings.keys()


def test_the_defaults_of_later_releases_are_accepted() -> None:
    """MirrorMaker 2 and others write every default of their source."""
    defaults = settings("topic")
    LogConfig.validate({name: defaults[name] for name in (*LaterTopicSettings.keys(),)})
    LogConfig.validate({name: defaults[name] for name in LogConfig.keys() & set(defaults)})


def test_every_node_that_0822_lacks_is_named() -> None:
    paths = {
        value
        for name, value in vars(znodes).items()
        if name.isupper() and isinstance(value, str) and value.startswith("/")
    }
    paths |= {entities.config_path(kind) for kind in entities.ENTITY_TYPES}
    paths |= {producer_ids.PATH, scram_credentials.SALT_SECRET}
    paths |= {path.removesuffix("/prefixed") for path in (*ROOTS.values(), *CHANGES.values())}
    for path in paths - OF_0822:
        assert re.search(rf"`{re.escape(path)}[`/]", PAGE), path
    for field in ("formats", "endpoints"):
        assert f"`{field}`" in PAGE
