"""The pages that show brokers and topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from contextlib import suppress
from typing import NamedTuple

from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08 import admin
from kafka08.client.log_dirs import DiskUse, TopicSize, sizes
from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.console import shown
from kafka08.console.brokers.traffic import Rates
from kafka08.console.cluster_state import BrokerView, ClusterState, PartitionView, TopicView
from kafka08.console.condition import Verdict, condition
from kafka08.console.failures.summary import summary_of
from kafka08.console.observer import TRAFFIC, Observer
from kafka08.console.pages import terminal
from kafka08.console.pages.groups import group_data
from kafka08.console.pages.tables import Column, fields, table
from kafka08.console.site import TEXT, Visit
from kafka08.console.timeline.strip import graph_with_events
from kafka08.console.topics.setting_fields import setting_rows
from kafka08.errors import KafkaError, meaning_of
from kafka08.lag.collector import GroupLag, Lags, LogState
from kafka08.lag.judgement import worst
from kafka08.protocol.admin_schemas import LogDir
from zk.errors import ZkError
from zk.znodes import MalformedNodeError

_SHOWN_PARTITIONS = 500
_NOT_TOLD = -1  # in place of a disk's bytes
_UNKNOWN = LogState(-1, (), (), None, None)
_KINDS = {
    "": "all topics",
    "under-replicated": "under-replicated ones",
    "offline": "those without a leader",
    "not-preferred": "those not led by the preferred replica",
}


class BrokerRow(NamedTuple):
    """``behind``: its replicas that are not in sync. ``size``: bytes of all its replicas, None if
    the broker does not say. ``traffic``: None if it is not known."""

    broker: BrokerView
    leads: int
    replicas: int
    behind: int
    size: int | None
    traffic: Rates | None


class DirectoryRow(NamedTuple):
    """A data directory of a broker. ``error``: why it cannot be used, "" if it can. The free and
    the total bytes of its disk are None if the broker does not say them."""

    path: str
    error: str
    is_full: bool
    partitions: int
    size_bytes: int
    free_bytes: int | None
    total_bytes: int | None


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


_TRAFFIC_COLUMNS = (
    Column(
        "bytes_in_per_second",
        "Bytes in",
        lambda row: row.traffic and row.traffic.bytes_in,
        is_number=True,
        hint="From producers",
    ),
    Column(
        "bytes_out_per_second",
        "Bytes out",
        lambda row: row.traffic and row.traffic.bytes_out,
        is_number=True,
        hint="To consumers",
    ),
)
_BROKER_COLUMNS = (
    Column("id", "Id", lambda row: row.broker.id),
    Column("addresses", "Address", lambda row: row.broker.addresses),
    Column(
        "state",
        "State",
        lambda row: row.broker.is_live,
        value=lambda row: "up" if row.broker.is_live else "down",
    ),
    Column(
        "kind",
        "Kind",
        lambda row: row.broker.is_ours,
        value=lambda row: {True: "kafka08", False: "0.8.2.2"}.get(row.broker.is_ours),
    ),
    Column(
        "since",
        "Since",
        lambda row: row.broker.since_ms,
        value=lambda row: shown.iso(row.broker.since_ms),
    ),
    Column("leads", "Leads", lambda row: row.leads, is_number=True),
    Column("replicas", "Replicas", lambda row: row.replicas, is_number=True),
    Column("not_in_sync", "Not in sync", lambda row: row.behind, is_number=True),
    Column("size_bytes", "On disk", lambda row: row.size, is_number=True),
    *_TRAFFIC_COLUMNS,
)
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
    *_TRAFFIC_COLUMNS,
)


def state_of(visit: Visit) -> ClusterState:
    """The last state seen. Raises KafkaError if there is none yet."""
    state = visit.site.observer.state
    if state is None:
        reason = visit.site.observer.error or "the cluster has not been read yet"
        raise KafkaError(f"The cluster has not been seen yet: {reason}")
    return state


def topic_of(visit: Visit, name: str) -> TopicView:
    """Raises NotFound."""
    view = state_of(visit).topics.get(name)
    if view is None:
        raise NotFound(f"There is no topic {name}.")
    return view


def overview(visit: Visit) -> Response:
    """As text for a terminal unless a browser asks. That has code 503 for a cluster that loses
    data, as scripts look at the code."""
    observer, state = visit.site.observer, state_of(visit)
    found = condition(state, observer.error, visit.site.clock.millis())
    behind = groups_behind(observer)
    transactions = observer.transactions
    data = {
        "verdict": found.verdict.value,
        "causes": found.causes,
        "brokers": len(state.brokers),
        "brokers_up": len(state.live),
        "controller": state.controller,
        "controller_epoch": state.epoch,
        "topics": len(state.topics),
        **partition_counts(state),
        "moves": len(state.moves),
        "messages_per_second": sum(observer.rates.values()) if observer.rates else None,
        **traffic_data(observer.traffic.total),
        "brokers_with_bytes": len(observer.traffic.brokers),
        "groups_behind": [group_data(each) for each in behind],
        "open_transactions": len(transactions.open) if transactions else None,
        "late_transactions": len(transactions.late) if transactions else None,
    }

    def text() -> Response:
        lines = terminal.status(visit.site.cluster, found, state, observer)
        code = 503 if found.verdict is Verdict.LOSING else 200
        return Response(lines, code, mimetype=TEXT)

    return visit.answer(
        "overview.html",
        data,
        text,
        behind=behind,
        condition=found,
        graph=graph_with_events(
            observer.history.points(TRAFFIC),
            "Messages in a second",
            observer.timeline.events(visit.site.clock.millis()),
            visit.root,
        ),
        refresh=visit.refresh,
        state=state,
        traffic=observer.traffic,
        transactions=transactions,
    )


def groups_behind(observer: Observer) -> list[tuple[str, GroupLag]]:
    """Those whose judgement is not OK, the one with the largest lag first."""
    groups = observer.lags.groups if observer.lags else {}
    behind = [(name, lag) for name, lag in groups.items() if lag.status != "OK"]
    return sorted(behind, key=lambda each: -each[1].total)


def partition_counts(state: ClusterState) -> dict[str, int | None]:
    """Of partitions; None for what no broker told."""
    views = [view for _, view in state.partitions()]
    counts = {
        "under_replicated": sum(view.is_under_replicated for view in views),
        "without_leader": sum(view.is_offline for view in views),
        "not_preferred": sum(not view.is_preferred for view in views),
    }
    told = {name: count if state.told else None for name, count in counts.items()}
    return {"partitions": len(views), **told}


def traffic_data(traffic: Rates | None) -> dict[str, float | None]:
    """Null for what is not known."""
    return {
        "bytes_in_per_second": traffic and traffic.bytes_in,
        "bytes_out_per_second": traffic and traffic.bytes_out,
    }


def broker_rows(state: ClusterState, observer: Observer) -> list[BrokerRow]:
    views = [view for _, view in state.partitions()]
    leads = Counter(view.leader for view in views)
    replicas = Counter(replica for view in views for replica in view.replicas)
    in_sync = Counter(replica for view in views for replica in view.replicas if replica in view.isr)
    return [
        BrokerRow(
            broker,
            leads[id],
            replicas[id],
            replicas[id] - in_sync[id],
            observer.disks.brokers.get(id),
            observer.traffic.of(broker),
        )
        for id, broker in state.brokers.items()
    ]


def brokers(visit: Visit) -> Response:
    state = state_of(visit)
    rows = table(visit, broker_rows(state, visit.site.observer), _BROKER_COLUMNS)
    data = {"brokers": [_broker_data(row, state) for row in rows.rows]}
    return visit.answer("brokers.html", data, refresh=visit.refresh, state=state, table=rows)


def _broker_data(row: BrokerRow, state: ClusterState) -> dict[str, object]:
    return {
        **fields(row, _BROKER_COLUMNS),
        "is_controller": row.broker.id == state.controller,
        "failed_partitions": row.broker.failed,
        "full_partitions": row.broker.full,
    }


def broker(visit: Visit, broker_id: int) -> Response:
    state, observer = state_of(visit), visit.site.observer
    row = next((row for row in broker_rows(state, observer) if row.broker.id == broker_id), None)
    if row is None:
        raise NotFound(f"There is no broker {broker_id}.")
    every = [(tp, view) for tp, view in state.partitions() if broker_id in view.replicas]
    partitions = every[:_SHOWN_PARTITIONS]
    data = {
        "broker": _broker_data(row, state),
        "bytes_not_known": observer.traffic.why_not(row.broker),
        "directories": _directories(observer.disks, row.broker),
        "partitions": [{"topic": tp.topic, **_partition_data(tp, view)} for tp, view in partitions],
        "more_partitions": len(every) - len(partitions),
    }
    what_if = summary_of(visit, state, broker_id) if row.broker.is_live and state.told else []
    return visit.answer(
        "broker.html", data, partitions=partitions, row=row, state=state, what_if=what_if
    )


def _partition_data(tp: TopicPartition, view: PartitionView) -> dict[str, object]:
    return {
        "partition": tp.partition,
        "leader": None if view.is_offline else view.leader,
        "replicas": view.replicas,
        "in_sync": view.isr,
    }


def _directories(disks: DiskUse, broker: BrokerView) -> list[DirectoryRow] | None:
    """None if the broker does not report them: 0.8.2.2 does not."""
    if not broker.serves_later_apis:
        return None
    full = set(broker.full)
    return [_directory(each, full) for each in disks.directories.get(broker.id, ())]


def _directory(found: LogDir, full: Set[TopicPartition]) -> DirectoryRow:
    replicas = sizes([found])
    return DirectoryRow(
        found.path,
        meaning_of(found.error) if found.error else "",
        not full.isdisjoint(replicas),
        len(replicas),
        sum(replicas.values()),
        *(None if each == _NOT_TOLD else each for each in (found.usable_bytes, found.total_bytes)),
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
        **_partition_data(row.tp, row.view),
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
