"""The names against those of 0.8.2.2's beans."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from kafka08.console.cluster_state import ClusterState
from kafka08.console.exposition import families
from kafka08.lag.collector import Lags
from kafka08.metrics import names
from kafka08.metrics.docs import declared
from kafka08.metrics.exposition import TYPES
from kafka08.rest.meters import RequestMeters
from tests import promql

TABLE = Path(__file__).parents[1] / "golden" / "broker_metrics.csv"


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def bean(row: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """The name of a row without its tags, and these."""
    tags = tuple(re.findall(r"[,:]([\w-]+)=\{", row["mbean"]))
    return re.sub(r",[\w-]+=\{[\w-]+\}", "", row["mbean"]), tags


@pytest.mark.scenario("ops-3")
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


@pytest.mark.scenario("ops-3")
def test_others_say_that_they_are_not_in_0822() -> None:
    theirs = {row["prometheus_name"] for row in rows()}
    others = {metric.name for metric in declared() if metric.help.startswith("Not in 0.8.2.2")}
    assert {metric.name for metric in declared()} == theirs | others
    assert not theirs & others


def test_units_are_those_of_the_beans() -> None:
    assert names.TOPICS["messages_in"].unit == "messages"
    assert names.ISR_SHRINKS.unit == "shrinks"
    assert names.UNCLEAN_ELECTIONS.unit == "elections"


# --- what config/ asks for


def served() -> dict[str, set[str]]:
    """Every series of brokers, console and REST proxy with its labels."""
    found: dict[str, set[str]] = {}
    for metric in declared():
        labels = {label for label, _ in metric.labels} or set(metric.tags)
        if TYPES[metric.kind] == "summary":
            found[metric.name] = labels | {"quantile"}
            found[f"{metric.name}_count"] = found[f"{metric.name}_sum"] = labels
        else:
            found[metric.name] = labels
    state = ClusterState(0, {}, None, None, {}, {}, 0, True)
    seen: Any = SimpleNamespace(error="", lag_error="", state=state, lags=Lags(0, (), {}, {}, True))
    found["up"] = {"job"}
    console = list(families({"": seen}))
    for family in [*console, *RequestMeters(int).collect()]:
        # A console of several clusters adds their names.
        labels = set(family._labelnames) | ({"cluster"} if family in console else set())
        ends = {"counter": ["_total"], "summary": ["_sum", "_count"]}.get(family.type, [""])
        found.update({f"{family.name}{end}": labels for end in ends})
    for family in REGISTRY.collect():
        found.update({sample.name: set(sample.labels) for sample in family.samples})
    return found


# Prometheus adds these.
TARGET = {"instance", "job"}


@pytest.mark.parametrize("expression", [*promql.dashboard(), *promql.alerts()])
def test_expressions_ask_for_what_is_served(expression: str) -> None:
    known = served()
    found = promql.queries(expression)
    assert found
    for query in found:
        assert query.metric in known, query.metric
        assert query.labels <= known[query.metric] | TARGET, query


def test_the_expressions_are_found() -> None:
    assert len(promql.alerts()) == 23
    assert len(promql.dashboard()) > 40


@pytest.mark.parametrize(
    ("expression", "metric", "labels"),
    [
        ('sum by (topic) (rate(a_total{x=~"$x",y!=""}[5m]))', "a_total", {"topic", "x", "y"}),
        ("max(a_b) > 0", "a_b", set()),
        ("label_values(a_b, topic)", "a_b", {"topic"}),
    ],
)
def test_what_an_expression_asks_for(expression: str, metric: str, labels: set[str]) -> None:
    assert promql.queries(expression) == [promql.Query(metric, frozenset(labels))]


@pytest.mark.parametrize("expression", ["delta_of(a_b)", "median(a_b)", "a_b{}", "a_b if c_d"])
def test_words_that_are_not_known(expression: str) -> None:
    with pytest.raises(ValueError, match="in "):
        promql.queries(expression)


def test_the_guide_watches_what_is_served() -> None:
    guide = (TABLE.parents[2] / "docs" / "operator.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.*kafka_.*?)` \|", guide, re.MULTILINE)
    assert len(rows) > 8
    for expression in rows:
        for query in promql.queries(expression):
            assert query.labels <= served()[query.metric] | TARGET, expression


def test_panels_of_the_dashboard_lie_side_by_side() -> None:
    board = json.loads((promql.CONFIG / "grafana-dashboard.json").read_text(encoding="utf-8"))
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
    for panel in promql.panels(board):
        assert panel["title"] and panel["description"]
