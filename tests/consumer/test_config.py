from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.consumer.config import ConsumerConfig
from kafka08.errors import ConfigError
from kafka08.settings.docs import _table

BASE = {"group.id": "g", "zookeeper.connect": "z:2181/chroot"}


def config(**settings: str) -> ConsumerConfig:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return ConsumerConfig.from_properties({**BASE, **given})


def test_derived_defaults() -> None:
    made = config()
    assert made.client_id == "g"
    assert made.zookeeper_connection_timeout_ms == made.zookeeper_session_timeout_ms == 6000
    assert made.rebalance_backoff_ms == made.zookeeper_sync_time_ms == 2000
    assert not made.dual_commit_enabled
    assert config(zookeeper_sync_time_ms="7").rebalance_backoff_ms == 7


def test_storage_is_folded_and_decides_dual_commit() -> None:
    assert config(offsets_storage="Kafka").dual_commit_enabled
    assert not config(offsets_storage="KAFKA", dual_commit_enabled="false").dual_commit_enabled


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("group.id", "a b"),
        ("client.id", "a/b"),
        ("consumer.id", "ü"),
        ("auto.offset.reset", "earliest"),
        ("offsets.storage", "file"),
        ("auto.commit.enable", "yes"),
        ("fetch.wait.max.ms", "30001"),
        ("num.consumer.fetchers", "0"),
    ],
)
def test_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        ConsumerConfig.from_properties({**BASE, key: value})


def test_required() -> None:
    for key in BASE:
        with pytest.raises(ConfigError, match=key):
            ConsumerConfig.from_properties({k: v for k, v in BASE.items() if k != key})


def test_any_other_strategy_is_accepted() -> None:
    assert config(partition_assignment_strategy="sticky").partition_assignment_strategy == "sticky"


def test_the_guide_lists_every_setting() -> None:
    """Replace the table in docs/consumer.md with this one when settings change."""
    table = _table(ConsumerConfig, ["Key", "Type", "Default", "Range", "Meaning"])
    assert table in (Path(__file__).parents[2] / "docs" / "consumer.md").read_text()


def test_reading_committed_transactions_negotiates_versions() -> None:
    assert not config().api_versions_request
    assert config(isolation_level="read_committed").api_versions_request
    with pytest.raises(ConfigError, match=r"isolation\.level .* needs api\.versions\.request=true"):
        config(isolation_level="read_committed", api_versions_request="false")
    with pytest.raises(ConfigError, match=r"isolation\.level has value committed"):
        config(isolation_level="committed")
