"""The pages that show topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from werkzeug.wrappers import Response

from kafka08 import admin
from kafka08.client.log_dirs import DiskUse, TopicSize
from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.console import shown
from kafka08.console.brokers.traffic import Rates
from kafka08.console.cluster_state import ClusterState, PartitionView, TopicView
from kafka08.console.observer import Observer
from kafka08.console.pages.cluster import TRAFFIC_COLUMNS, partition_data, state_of, topic_of
from kafka08.console.pages.tables import Column, fields, table
from kafka08.console.site import Visit
from kafka08.console.topics.setting_fields import setting_rows
from kafka08.lag.collector import Lags, LogState
from kafka08.lag.judgement import worst
from zk.errors import ZkError
from zk.znodes import MalformedNodeError

_UNKNOWN = LogState(-1, (), (), None, None)
_KINDS = {
    "": "all topics",
    "under-replicated": "under-replicated ones",
    "offline": "those without a leader",
    "not-preferred": "those not led by the preferred replica",
}


class TopicRow(NamedTuple):
    """``spread``: per cent of the live brokers that have a replica. ``leader_skew``: by how many
    per cent the broker with the most leaders exceeds an even share. ``size``: of the replicas on
    brokers that say it, None if none does. ``traffic``: None if that of a leader is not known."""

    name: str
    view: TopicView
    spread: int
    leader_skew: int
    messages: int | None
    size: TopicSize | None
    rate: float | None
    traffic: Rates | None


class PartitionRow(NamedTuple):
    """``largest``: bytes of its largest replica on a broker that says it, None if none does."""

    tp: TopicPartition
    view: PartitionView
    log: LogState
    largest: int | None


class ReaderRow(NamedTuple):
    """A group that reads a topic, with its lag there."""

    name: str
    status: str
    lag: int
    members: int


_TOPIC_COLUMNS = (
    Column("name", "Topic", lambda row: row.name),
    Column("partitions", "Partitions", lambda row: len(row.view.partitions), is_number=True),
    Column(
        "replication_factor", "Replicas", lambda row: row.view.replication_factor, is_number=True
    ),
    Column(
        "under_replicated",
        "Under-replicated",
        lambda row: row.view.under_replicated,
        is_number=True,
    ),
    Column("without_leader", "No leader", lambda row: row.view.offline, is_number=True),
    Column("not_preferred", "Not preferred", lambda row: row.view.not_preferred, is_number=True),
    Column(
        "spread_percent",
        "Spread",
        lambda row: row.spread,
        is_number=True,
        hint="Share of the live brokers that have a replica",
    ),
    Column(
        "leader_skew_percent",
        "Leader skew",
        lambda row: row.leader_skew,
        is_number=True,
        hint="Most leaders on one broker, against an even share",
    ),
    Column("messages", "Messages", lambda row: row.messages, is_number=True),
    Column(
        "size_bytes",
        "On disk",
        lambda row: row.size and row.size.bytes,
        is_number=True,
        hint="All replicas together",
    ),
    Column("messages_per_second", "In a second", lambda row: row.rate, is_number=True),
    *TRAFFIC_COLUMNS,
)


def topics(visit: Visit) -> Response:
    state, arguments = state_of(visit), visit.request.args
    name, show = arguments.get("name", "").strip(), arguments.get("show", "")
    internal = bool(arguments.get("internal"))
    wanted = {
        topic: view
        for topic, view in state.topics.items()
        if name.lower() in topic.lower() and (internal or topic not in INTERNAL_TOPICS)
    }
    if show == "under-replicated":
        wanted = {topic: view for topic, view in wanted.items() if view.under_replicated}
    elif show == "offline":
        wanted = {topic: view for topic, view in wanted.items() if view.offline}
    elif show == "not-preferred":
        wanted = {topic: view for topic, view in wanted.items() if view.not_preferred}
    messages = _messages(visit.site.observer.lags)
    found = [
        _topic_row(state, topic, view, messages, visit.site.observer)
        for topic, view in sorted(wanted.items())
    ]
    rows = table(visit, found, _TOPIC_COLUMNS)
    return visit.answer(
        "topics.html",
        {"topics": [_topic_data(row) for row in rows.rows], "total": len(state.topics)},
        internal=internal,
        kinds=list(_KINDS.items()),
        late={tp.topic for tp, held in visit.site.observer.held().items() if held.is_late},
        name=name,
        refresh=visit.refresh,
        show=show,
        show_messages=visit.site.config.show_messages,
        sort=arguments.get("sort", ""),
        table=rows,
    )


def _topic_data(row: TopicRow) -> dict[str, object]:
    return {**fields(row, _TOPIC_COLUMNS), "is_deleting": row.view.is_deleting}


def _messages(lags: Lags | None) -> dict[str, int]:
    """Offsets between the logs' starts and ends, by topic."""
    counts: Counter[str] = Counter()
    for tp, log in lags.logs.items() if lags else ():
        if log.start is not None and log.end is not None:
            counts[tp.topic] += log.end - log.start
    return counts


def _topic_row(
    state: ClusterState,
    topic: str,
    view: TopicView,
    messages: Mapping[str, int],
    observer: Observer,
) -> TopicRow:
    live = {broker.id for broker in state.live}
    partitions = view.partitions.values()
    used = {replica for partition in partitions for replica in partition.replicas} & live
    leaders = [partition.leader for partition in partitions if not partition.is_offline]
    most = max((leaders.count(id) for id in set(leaders)), default=0)
    even = -(-len(leaders) // max(len(used), 1))
    return TopicRow(
        topic,
        view,
        round(100 * len(used) / max(len(live), 1)),
        round(100 * max(most - even, 0) / max(even, 1)),
        messages.get(topic),
        observer.disks.topics.get(topic),
        observer.rates.get(topic),
        observer.traffic.topics.get(topic),
    )


def topic(visit: Visit, name: str) -> Response:
    state, observer = state_of(visit), visit.site.observer
    view, own = _exact(visit, name, topic_of(visit, name))
    logs = observer.lags.logs if observer.lags else {}
    rows = [
        _partition_row(TopicPartition(name, number), each, logs, observer.disks)
        for number, each in view.partitions.items()
    ]
    row = _topic_row(state, name, view, _messages(observer.lags), observer)
    data = {
        "topic": _topic_data(row),
        "partitions": [_log_data(each) for each in rows],
        "settings": setting_rows(own),
        "groups": _readers(observer.lags, name),
    }
    return visit.answer(
        "topic.html",
        data,
        graph=shown.graph(observer.history.points(f"end/{name}"), f"Sum of the log ends of {name}"),
        held=observer.held(),
        name=name,
        refresh=visit.refresh,
        replicas=sum(len(each.replicas) for each in view.partitions.values()),
        row=row,
        rows=rows,
        size=row.size,
        state=state,
        view=view,
    )


def _partition_row(
    tp: TopicPartition,
    view: PartitionView,
    logs: Mapping[TopicPartition, LogState],
    disks: DiskUse,
) -> PartitionRow:
    largest = max(disks.replicas.get(tp, {}).values(), default=None)
    return PartitionRow(tp, view, logs.get(tp, _UNKNOWN), largest)


def _log_data(row: PartitionRow) -> dict[str, object]:
    return {
        **partition_data(row.tp, row.view),
        "first_offset": row.log.start,
        "end": row.log.end,
        "largest_replica_bytes": row.largest,
    }


def _exact(visit: Visit, topic: str, view: TopicView) -> tuple[TopicView, Mapping[str, str]]:
    """Partitions and settings of the topic as ZooKeeper has them now. While it does not answer,
    the partitions are those seen last and the settings are unknown: one wait is enough."""
    zk, partitions = visit.site.zk, view.partitions
    own: Mapping[str, str] = {}
    try:
        with suppress(MalformedNodeError):
            own = admin.fetch_topic_config(zk, topic)
        with suppress(MalformedNodeError):
            states = {n: admin.fetch_partition_state(zk, topic, n) for n in partitions}
            partitions = {
                number: each if now is None else PartitionView(each.replicas, now.leader, now.isr)
                for (number, each), now in zip(partitions.items(), states.values(), strict=True)
            }
    except ZkError:
        return view, {}
    return view._replace(partitions=partitions), own


def _readers(lags: Lags | None, topic: str) -> list[ReaderRow]:
    """Groups with offsets for a topic."""
    found = []
    for group, lag in lags.groups.items() if lags else ():
        of_topic = [each for tp, each in lag.partitions.items() if tp.topic == topic]
        if of_topic:
            status = worst(each.status for each in of_topic)
            found.append(ReaderRow(group, status, sum(each.lag for each in of_topic), lag.members))
    return found
