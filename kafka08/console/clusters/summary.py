"""The rows of the list of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka08.console import shown
from kafka08.console.condition import Condition, Verdict, condition
from kafka08.console.pages.cluster import groups_behind, partition_counts
from kafka08.console.pages.terminal import printable, table, wrapped
from kafka08.console.site import Site, root_of


class Summary(NamedTuple):
    """A row. ``path``: of its overview. ``seen_ms``: when its state was seen, ``age_ms`` ago. A
    figure that is not known is None. ``errors``: why data is not newer."""

    name: str
    path: str
    condition: Condition
    brokers: int | None
    brokers_up: int | None
    under_replicated: int | None
    groups_behind: int | None
    seen_ms: int | None
    age_ms: int | None
    errors: list[str]
    is_read_only: bool

    @property
    def is_lost(self) -> bool:
        """Whether it loses data, or has not been seen at all."""
        return self.seen_ms is None or self.condition.verdict is Verdict.LOSING

    @property
    def data(self) -> dict[str, object]:
        """The row for programs."""
        return {
            "name": self.name,
            "path": self.path,
            "verdict": self.condition.verdict.value,
            "causes": self.condition.causes,
            "brokers": self.brokers,
            "brokers_up": self.brokers_up,
            "under_replicated": self.under_replicated,
            "groups_behind": self.groups_behind,
            "seen": shown.iso(self.seen_ms),
            "errors": self.errors,
            "is_read_only": self.is_read_only,
        }


def as_text(rows: Sequence[Summary]) -> str:
    """The list for a terminal."""
    well = sum(row.condition.verdict is Verdict.WELL for row in rows)
    lines = [f"Clusters: {well} of {len(rows)} well", ""]
    lines += table([_cells(row) for row in rows], "<<<><<")
    for row in rows:
        if row.condition.causes:
            lines += ["", *wrapped(f"{row.name}: {row.condition.sentence}.")]
        for cause in row.condition.causes:
            lines += wrapped(f"{cause}.", "  ")
    return "".join(f"{printable(line)}\n" for line in lines)


def _cells(row: Summary) -> tuple[str, ...]:
    def known(value: int | None, text: str) -> str:
        return "" if value is None else f"{shown.number(value)} {text}"

    return (
        row.name,
        row.condition.verdict.value,
        known(row.brokers_up, f"of {shown.number(row.brokers)} up"),
        known(row.under_replicated, "under-replicated"),
        known(row.groups_behind, "groups behind"),
        "" if row.age_ms is None else f"{shown.duration(row.age_ms / 1000)} ago",
    )


def summary_of(site: Site) -> Summary:
    """By what the cluster's observer saw last: no wait for the cluster."""
    observer, state = site.observer, site.observer.state
    return Summary(
        site.name,
        f"{root_of(site.name)}/",
        condition(state, observer.error, site.clock.millis()),
        len(state.brokers) if state else None,
        len(state.live) if state else None,
        partition_counts(state)["under_replicated"] if state else None,
        len(groups_behind(observer)) if observer.lags else None,
        state.time_ms if state else None,
        observer.age_ms(),
        [each for each in (observer.error, observer.lag_error) if each],
        site.config.read_only,
    )
