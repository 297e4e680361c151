"""The page of settings says what the declarations say."""

from __future__ import annotations

from pathlib import Path

from kafka08.settings.broker import BrokerConfig
from kafka08.settings.docs import render
from kafka08.settings.dynamic import DynamicBrokerSettings
from kafka08.settings.later_topics import LaterTopicSettings
from kafka08.settings.topic import BROKER_KEYS, LogConfig

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"


def test_every_setting_has_a_row_of_its_own() -> None:
    broker, topic = render().split("## Topic")
    later = LaterTopicSettings.settings()
    for described in BrokerConfig.settings().values():
        assert broker.count(f"\n| `{described.key}` | {described.kind.name} |") == 1
    for described in LogConfig.settings().values():
        (row,) = [line for line in topic.split("\n") if line.startswith(f"| `{described.key}` |")]
        key = BROKER_KEYS.get(described.key)
        assert row.endswith("| none |" if key is None else f"| `{key}` |")
    for described in (*DynamicBrokerSettings.settings().values(), *later.values()):
        assert render().count(f"\n| `{described.key}` | {described.kind.name} |") == 1


def test_defaults_and_ranges() -> None:
    rows = {line.split("`")[1]: line for line in render().split("\n") if line.startswith("| `")}
    assert "| required |" in rows["broker.id"]
    assert "| 1 to 65535 |" in rows["port"] or "| from " in rows["port"] or "`9092`" in rows["port"]
    assert "`true`" in rows["auto.create.topics.enable"]
