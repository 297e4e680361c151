"""The page of one partition: its replicas, its log, and the groups that read it."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08 import admin
from kafka08.common import TopicPartition
from kafka08.console.cluster_state import PartitionView
from kafka08.console.pages.cluster import state_of, topic_of
from kafka08.console.pages.groups import Unread, first_unread
from kafka08.console.site import Visit
from kafka08.lag.collector import GroupLag, Lags, LogState, PartitionLag
from zk.errors import ZkError
from zk.znodes import MalformedNodeError

_UNKNOWN = LogState(-1, (), (), None, None)


class ReplicaRow(NamedTuple):
    """``size_bytes`` None: the broker does not say it."""

    broker: int
    is_leader: bool
    in_sync: bool
    size_bytes: int | None


class GroupRow(NamedTuple):
    """A group with offsets for the topic. ``lag`` None: it has no commit for this partition.
    ``unread`` None: it has read all."""

    name: str
    lag: PartitionLag | None
    unread: Unread | None


def partition(visit: Visit, name: str, number: int) -> Response:
    observer, state = visit.site.observer, state_of(visit)
    tp = TopicPartition(name, number)
    seen = topic_of(visit, name).partitions.get(number)
    if seen is None:
        raise NotFound(f"Topic {name} has no partition {number}.")
    view, epoch = _exact(visit, tp, seen)
    log = observer.lags.logs.get(tp, _UNKNOWN) if observer.lags else _UNKNOWN
    is_known = log.start is not None and log.end is not None
    disks, held = observer.disks.replicas.get(tp, {}), observer.held().get(tp)
    rows = _groups(observer.lags, tp, log)
    data = {
        "topic": name,
        "partition": number,
        "leader": None if view.is_offline else view.leader,
        "leader_epoch": epoch,
        "replicas": [
            ReplicaRow(id, id == view.leader, id in view.isr, disks.get(id)) for id in view.replicas
        ],
        "first_offset": log.start,
        "end": log.end,
        "messages": (log.end or 0) - (log.start or 0) if is_known else None,
        "last_stable_offset": held.stable if held else None,
        "groups": [_group_data(row) for row in rows],
    }
    return visit.answer(
        "partition.html",
        data,
        held=held,
        name=name,
        number=number,
        refresh=visit.refresh,
        rows=rows,
        state=state,
        view=view,
    )


def _exact(
    visit: Visit, tp: TopicPartition, seen: PartitionView
) -> tuple[PartitionView, int | None]:
    """Leader and isr as ZooKeeper has them now, with the leader's epoch; those seen last if it does
    not say them."""
    with suppress(ZkError, MalformedNodeError):
        now = admin.fetch_partition_state(visit.site.zk, *tp)
        if now is not None:
            return PartitionView(seen.replicas, now.leader, now.isr), now.leader_epoch
    return seen, None


def _groups(lags: Lags | None, tp: TopicPartition, log: LogState) -> list[GroupRow]:
    """The largest lag first, and those without a commit last."""
    found = [
        _group(name, lag, tp, log)
        for name, lag in (lags.groups.items() if lags else ())
        if tp in lag.partitions or tp in lag.uncommitted
    ]
    return sorted(found, key=lambda row: (-row.lag.lag if row.lag else 1, row.name))


def _group(name: str, group: GroupLag, tp: TopicPartition, log: LogState) -> GroupRow:
    lag = group.partitions.get(tp)
    return GroupRow(name, lag, first_unread(lag, log.start or 0) if lag else None)


def _group_data(row: GroupRow) -> dict[str, object]:
    lag = row.lag
    return {
        "name": row.name,
        "offset": lag and lag.offset,
        "lag": lag and lag.lag,
        "first_unread": row.unread and row.unread.offset,
        "behind_seconds": lag and lag.seconds,
        "status": lag and lag.status,
    }
