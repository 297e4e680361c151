"""Writes docs/metrics.md from the declared metrics: `python -m kafka08.metrics.docs`."""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.metrics import names
from kafka08.metrics.exposition import TYPES
from kafka08.metrics.registry import Metric

HEAD = """# Metrics of brokers

Made by `make docs` from `kafka08/metrics/names.py`; do not edit.
[operator.md](operator.md#watching) explains how to read them.

The first column is the name of the bean in 0.8.2.2, under which `/jmx` shows it too. Tags in JMX
and labels in Prometheus have the same names; a series without a tag is the sum over its values.
Summaries have the label `quantile`, and series with `_count` and `_sum` besides.

| Bean | Series | Type | Labels | Meaning |
| --- | --- | --- | --- | --- |
"""


def declared() -> list[Metric]:
    """All metrics, in the order of their declarations."""
    return list(_metrics(vars(names).values()))


def _metrics(values: Iterable[object]) -> Iterable[Metric]:
    for value in values:
        if isinstance(value, Metric):
            yield value
        elif isinstance(value, dict) and "__builtins__" not in value:
            yield from _metrics(value.values())
        elif isinstance(value, tuple):
            yield from _metrics(value)


def page() -> str:
    return HEAD + "".join(_row(metric) for metric in declared())


def _row(metric: Metric) -> str:
    labels = [label for label, _ in metric.labels] or metric.tags
    named = ", ".join(f"`{label}`" for label in labels)
    kind = TYPES[metric.kind]
    return f"| `{metric.bean}` | `{metric.name}` | {kind} | {named} | {metric.help} |\n"


if __name__ == "__main__":
    print(page(), end="")
