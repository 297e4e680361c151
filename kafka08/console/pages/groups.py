"""The pages that show groups and their lag."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import NamedTuple

from markupsafe import Markup
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08.common import TopicPartition
from kafka08.console import shown
from kafka08.console.forms import in_words
from kafka08.console.pages.tables import Column, fields, table
from kafka08.console.site import Visit
from kafka08.console.timeline.strip import concerning, graph_with_events
from kafka08.errors import KafkaError
from kafka08.groups.members import GroupMembers
from kafka08.lag.collector import GroupLag, LogState, PartitionLag
from kafka08.lag.judgement import STATUSES

_COLUMNS = (
    Column("name", "Group", itemgetter(0)),
    Column(
        "status",
        "Status",
        lambda row: STATUSES.index(row[1].status),
        value=lambda row: row[1].status,
    ),
    Column("lag", "Lag", lambda row: row[1].total, is_number=True),
    Column("behind_seconds", "Behind by", lambda row: row[1].seconds),
    Column("members", "Members", lambda row: row[1].members, is_number=True),
    Column("partitions", "Partitions", lambda row: len(row[1].partitions), is_number=True),
    Column("commits_to", "Commits to", lambda row: row[1].storages),
)


class Unread(NamedTuple):
    """The first message that a group has not read and that the log still has. ``deleted``: how many
    offsets below it the group has not read either."""

    offset: int
    deleted: int


class MemberRow(NamedTuple):
    """``host`` None: its id does not say it."""

    id: str
    host: str | None


class PartitionProgress(NamedTuple):
    """``lag`` None: the group has no commit there. ``unread`` None: it has read all, or that is not
    known. ``owner``: the member that reads it."""

    tp: TopicPartition
    lag: PartitionLag | None
    unread: Unread | None
    owner: str | None


def lag_of(visit: Visit, group: str) -> GroupLag:
    """Raises NotFound."""
    lags = visit.site.observer.lags
    found = lags.groups.get(group) if lags else None
    if found is None:
        raise NotFound(f"No group {group} was seen.")
    return found


def groups(visit: Visit) -> Response:
    """The worst ones first."""
    lags = visit.site.observer.lags
    name = visit.request.args.get("name", "").strip()
    rows = [each for each in (lags.groups.items() if lags else ()) if name in each[0]]
    rows.sort(key=lambda each: (-STATUSES.index(each[1].status), -each[1].total, each[0]))
    found = table(visit, rows, _COLUMNS)
    return visit.answer(
        "groups.html",
        {"groups": [group_data(row) for row in found.rows] if lags else None},
        lags=lags,
        name=name,
        refresh=max(visit.site.config.lag_interval_ms // 1000, 1),
        sort=visit.request.args.get("sort", ""),
        table=found,
    )


def group_data(row: tuple[str, GroupLag]) -> dict[str, object]:
    return {**fields(row, _COLUMNS), "is_beyond_end": row[1].beyond}


def group(visit: Visit) -> Response:
    name = visit.request.args.get("name", "")
    lag = lag_of(visit, name)
    members, error = None, ""
    try:
        members = visit.site.groups.members(name, lag)
    except (OSError, KafkaError) as failure:
        error = in_words(failure)
    owners = members.owners if members else {}
    lags = visit.site.observer.lags
    logs = lags.logs if lags else {}
    hosts = {each: _host(members, name, each) for each in members.members} if members else {}
    rows = [
        _progress(tp, lag, logs, owners.get(tp))
        for tp in sorted({*lag.partitions, *lag.uncommitted, *owners})
    ]
    data = {
        "group": group_data((name, lag)),
        "state": members.state if members else None,
        "partitions": [_progress_data(row, lag) for row in rows],
        "members": [MemberRow(*each) for each in hosts.items()] if members else None,
        "members_error": error or None,
    }
    return visit.answer(
        "group.html",
        data,
        graph=_graph(visit, name, lag),
        held=visit.site.observer.held(),
        hosts=hosts,
        lag=lag,
        members=members,
        members_error=error,
        name=name,
        refresh=max(visit.site.config.lag_interval_ms // 1000, 1),
        rows=rows,
    )


def _graph(visit: Visit, name: str, lag: GroupLag) -> Markup:
    """The lag over time, with the events of the group and of the topics that it reads."""
    observer = visit.site.observer
    topics = {tp.topic for tp in (*lag.partitions, *lag.uncommitted)}
    events = filter(concerning(name, *topics), observer.timeline.events(visit.site.clock.millis()))
    points = observer.history.points(f"lag/{name}")
    return graph_with_events(points, f"Lag of {name}", list(events), visit.root)


def _host(members: GroupMembers, group: str, member: str) -> str | None:
    host = members.row_of(group, member).host
    return None if host == shown.NONE else host


def _progress(
    tp: TopicPartition, group: GroupLag, logs: Mapping[TopicPartition, LogState], owner: str | None
) -> PartitionProgress:
    lag, log = group.partitions.get(tp), logs.get(tp)
    start = log.start if log and log.start is not None else 0
    return PartitionProgress(tp, lag, first_unread(lag, start) if lag else None, owner)


def first_unread(lag: PartitionLag, start: int) -> Unread | None:
    """``start``: the log's first offset."""
    first = max(lag.offset, start)
    return Unread(first, first - lag.offset) if first < lag.end else None


def _progress_data(row: PartitionProgress, group: GroupLag) -> dict[str, object]:
    lag, unread = row.lag, row.unread
    return {
        "topic": row.tp.topic,
        "partition": row.tp.partition,
        "offset": lag and lag.offset,
        "end": lag and lag.end,
        "lag": lag and lag.lag,
        "first_unread": unread and unread.offset,
        "deleted_unread": unread and unread.deleted,
        "behind_seconds": lag and lag.seconds,
        "status": lag and lag.status,
        "committed": shown.iso(lag.committed_ms) if lag and lag.committed_ms > 0 else None,
        "messages_without_commit": group.uncommitted.get(row.tp),
        "owner": row.owner,
    }
