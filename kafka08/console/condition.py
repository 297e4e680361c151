"""Whether a cluster is well, in one sentence, and why not, by name. Pure.

A cluster loses data while a partition has no leader: producers are refused, and most give up. It is
degraded if the next failure could bring that about, or if a part of it cannot be seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.console.cluster_state import BrokerView, ClusterState
from kafka08.console.shown import duration, number

_NAMED = 3


class Verdict(Enum):
    WELL = "well"
    DEGRADED = "degraded"
    LOSING = "losing data"


class Condition(NamedTuple):
    """``causes``: sentences without their full stop, the worst first."""

    verdict: Verdict
    causes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return f"The cluster is {self.verdict.value}"


def condition(state: ClusterState | None, error: str, now_ms: int) -> Condition:
    """``state``: the last one that was seen. ``error``: why the last look failed, "" if it did
    not."""
    if state is None or error:
        reason = error or "the cluster has not been read yet"
        return Condition(Verdict.DEGRADED, (f"It cannot be seen: {reason}",))
    leaderless = [_partition(tp) for tp, each in state.partitions() if each.is_offline]
    causes = list(_causes(state, leaderless if state.told else [], now_ms))
    lost = not state.live or (leaderless and state.told)
    verdict = Verdict.LOSING if lost else Verdict.DEGRADED if causes else Verdict.WELL
    return Condition(verdict, tuple(causes))


def _causes(state: ClusterState, leaderless: Sequence[str], now_ms: int) -> Iterator[str]:
    if not state.live:
        yield "No broker is registered"
    elif not state.told:
        yield "No broker answers: leaders and replicas in sync are unknown"
    missing, orphans = _of_dead_brokers(state)
    told = set()
    for broker in state.brokers.values():
        if not broker.is_live:
            left = orphans[broker.id] if state.told else []
            told.update(left)
            yield _down(broker, missing[broker.id], left, now_ms)
        if broker.failed:
            count = number(len(broker.failed))
            yield f"{_name(broker)} has a failed data directory with {count} partitions"
        if broker.full:
            yield f"{_name(broker)} has a full disk with {number(len(broker.full))} partitions"
    others = [each for each in leaderless if each not in told]
    if others:
        yield f"{_listed(others)} without a leader"
    if state.live and state.controller is None:
        yield "There is no controller"
    if state.told:
        behind = sum(
            each.is_under_replicated and set(each.replicas) <= {broker.id for broker in state.live}
            for _, each in state.partitions()
        )
        if behind:
            yield f"{number(behind)} partitions are under-replicated although their brokers are up"


def _of_dead_brokers(
    state: ClusterState,
) -> tuple[Mapping[int, int], Mapping[int, list[str]]]:
    """By dead broker: how many replicas it has, and the partitions without a leader among them."""
    missing: dict[int, int] = defaultdict(int)
    orphans: dict[int, list[str]] = defaultdict(list)
    for tp, view in state.partitions():
        for replica in view.replicas:
            if replica in state.brokers and not state.brokers[replica].is_live:
                missing[replica] += 1
                if view.is_offline:
                    orphans[replica].append(_partition(tp))
    return missing, orphans


def _down(broker: BrokerView, missing: int, orphans: Sequence[str], now_ms: int) -> str:
    since = "" if broker.since_ms is None else f" for {duration((now_ms - broker.since_ms) / 1000)}"
    parts = [f"{number(missing)} replicas missing"] if missing else []
    if orphans:
        parts.append(f"{_listed(orphans)} without a leader")
    said = f"{_name(broker)} is down{since}"
    return f"{said}: {', '.join(parts)}" if parts else said


def _partition(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"


def _name(broker: BrokerView) -> str:
    address = f" ({', '.join(broker.addresses)})" if broker.addresses else ""
    return f"Broker {broker.id}{address}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {number(more)} more" if more > 0 else "")
