"""The names against those of 0.8.2.2's beans."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from kafka08.metrics import names
from kafka08.metrics.docs import declared
from kafka08.metrics.exposition import TYPES

TABLE = Path(__file__).parents[1] / "golden" / "broker_metrics.csv"
ADDED = {"kafka_server_brokertopicmetrics_replicationbytesout_total"}


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def bean(row: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """The name of a row without its tags, and these."""
    tags = tuple(re.findall(r"[,:]([\w-]+)=\{", row["mbean"]))
    return re.sub(r",[\w-]+=\{[\w-]+\}", "", row["mbean"]), tags


def test_every_bean_has_its_series() -> None:
    known = {metric.bean: metric for metric in declared()}
    for row in rows():
        name, tags = bean(row)
        metric = known[name]
        assert metric.name == row["prometheus_name"]
        assert set(tags) <= set(metric.tags)
        assert row["prometheus_type"].split(",")[0].split(" from")[0].endswith(TYPES[metric.kind])
        labels = [label for label, _ in metric.labels] or list(metric.tags)
        wanted = set(row["prometheus_labels"].split()) - {"quantile", "version"}
        assert wanted <= set(labels), row


def test_nothing_else_is_declared_under_its_names() -> None:
    theirs = {row["prometheus_name"] for row in rows()}
    assert {metric.name for metric in declared()} == theirs | ADDED


def test_units_are_those_of_the_beans() -> None:
    assert names.TOPICS["messages_in"].unit == "messages"
    assert names.ISR_SHRINKS.unit == "shrinks"
    assert names.UNCLEAN_ELECTIONS.unit == "elections"


def test_alerting_rules_name_what_is_there() -> None:
    rules = (TABLE.parents[2] / "config" / "prometheus-alerts.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"\bkafka_\w+", rules))
    assert len(named) == 7
    assert named <= {metric.name for metric in declared()}
