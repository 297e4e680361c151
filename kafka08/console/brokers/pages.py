"""The pages that show brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import NamedTuple

from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08.client.log_dirs import DiskUse, sizes
from kafka08.common import TopicPartition
from kafka08.console import shown
from kafka08.console.brokers.traffic import Rates
from kafka08.console.cluster_state import BrokerView, ClusterState
from kafka08.console.failures.summary import summary_of
from kafka08.console.observer import Observer
from kafka08.console.pages.cluster import TRAFFIC_COLUMNS, partition_data, state_of
from kafka08.console.pages.tables import Column, fields, table
from kafka08.console.site import Visit
from kafka08.errors import meaning_of
from kafka08.protocol.admin_schemas import LogDir

_SHOWN_PARTITIONS = 500
_NOT_TOLD = -1  # in place of a disk's bytes


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
    *TRAFFIC_COLUMNS,
)


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
        "partitions": [{"topic": tp.topic, **partition_data(tp, view)} for tp, view in partitions],
        "more_partitions": len(every) - len(partitions),
    }
    what_if = summary_of(visit, state, broker_id) if row.broker.is_live and state.told else []
    return visit.answer(
        "broker.html", data, partitions=partitions, row=row, state=state, what_if=what_if
    )


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
