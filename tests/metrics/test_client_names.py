"""The names of clients' metrics against those of 0.8.2.2's beans."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from kafka08.metrics import names
from kafka08.metrics.docs import declared_of_clients
from kafka08.metrics.exposition import TYPES

TABLE = Path(__file__).parents[1] / "golden" / "client_metrics.csv"
SHARED = {
    names.FETCH_TIMES,
    names.FETCH_SIZES,
    names.FETCHER_BYTES,
    names.FETCHER_LAG,
    names.FETCHER_REQUESTS,
}


def rows() -> list[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.scenario("ops-19")
def test_every_bean_has_its_series() -> None:
    known = {metric.name: metric for metric in [*declared_of_clients(), *SHARED]}
    found = rows()
    assert len(found) > 60
    for row in found:
        metric = known[row["prometheus_name"]]
        labels = [label for label, _ in metric.labels] or list(metric.tags)
        assert set(row["prometheus_labels"].split()) - {"quantile"} <= set(labels), row
        assert row["prometheus_type"].split()[0] == TYPES[metric.kind], row
        assert metric.bean.startswith(row["mbean"].partition(",")[0]), row


def test_nothing_else_is_declared() -> None:
    theirs = {row["prometheus_name"] for row in rows()}
    assert {metric.name for metric in declared_of_clients()} <= theirs
