"""The consequences if brokers died now, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka08.console.cluster_state import ClusterState
from kafka08.console.failures.what_if import Facts, MovedIds, Outcome, what_if
from kafka08.console.shown import number
from kafka08.console.site import Visit


def facts_of(visit: Visit, state: ClusterState) -> Facts:
    """The last look of the console."""
    observer, lags = visit.site.observer, visit.site.observer.lags
    return Facts(
        state,
        observer.defaults,
        lags.logs if lags else {},
        lags.groups if lags else {},
        observer.partition_rates,
        observer.disks,
        observer.transactional_ids,
    )


class Sentence(NamedTuple):
    """``level``: good, warn or bad."""

    level: str
    text: str


def summary_of(visit: Visit, state: ClusterState, broker_id: int) -> list[Sentence]:
    """Of the death of one broker."""
    return summary(what_if(facts_of(visit, state), [broker_id]))


def summary(found: Outcome) -> list[Sentence]:
    """The worst first; one sentence alone if nothing happens."""
    rows = [
        ("bad", len(found.leaderless), "would have no leader: nobody could write or read them"),
        ("bad", len(found.lost_with_disk), "would be lost if the disk is gone as well"),
        (
            "bad",
            len(found.below_min_isr),
            "would be under min.insync.replicas: writers with acks=all would stop",
        ),
        (
            "bad",
            sum(bool(each.candidates) for each in found.elected),
            "would elect an unclean leader",
        ),
        ("warn", len(found.elected), "would get another leader"),
    ]
    said = [Sentence(level, f"{_partitions(n)} {text}.") for level, n, text in rows if n]
    if found.coordinators:
        count = len(found.coordinators)
        groups = "1 group" if count == 1 else f"{number(count)} groups"
        said.append(Sentence("warn", f"{groups} would get another coordinator, or none."))
    if found.transactional_ids:
        ids = _ids(found.transactional_ids)
        said.append(Sentence("warn", f"{ids} would get another coordinator, or none."))
    if found.controller_moves:
        said.append(Sentence("warn", "Another broker would become the controller."))
    return said or [
        Sentence("good", "No partition would lose its leader or a replica that it needs.")
    ]


def _ids(moved: Sequence[MovedIds]) -> str:
    known = [each.ids for each in moved if each.ids is not None]
    if len(known) < len(moved):
        return "Transactional ids, whose number is not known,"
    count = sum(known)
    return "1 transactional id" if count == 1 else f"{number(count)} transactional ids"


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{number(count)} partitions"
