"""The page of the whole cluster, and what other pages ask of it."""

from __future__ import annotations

from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08.common import TopicPartition
from kafka08.console.brokers.traffic import Rates
from kafka08.console.cluster_state import ClusterState, PartitionView, TopicView
from kafka08.console.condition import Verdict, condition
from kafka08.console.observer import TRAFFIC, Observer
from kafka08.console.pages import terminal
from kafka08.console.pages.groups import group_data
from kafka08.console.pages.tables import Column
from kafka08.console.site import TEXT, Visit
from kafka08.console.timeline.strip import graph_with_events
from kafka08.errors import KafkaError
from kafka08.lag.collector import GroupLag

TRAFFIC_COLUMNS = (
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


def partition_data(tp: TopicPartition, view: PartitionView) -> dict[str, object]:
    return {
        "partition": tp.partition,
        "leader": None if view.is_offline else view.leader,
        "replicas": view.replicas,
        "in_sync": view.isr,
    }
