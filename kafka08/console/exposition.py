"""The brokers that the console knows, for Prometheus; lag is in ``kafka08.lag.exposition``.

``kafka_brokers`` and ``kafka_broker_info`` are names of kafka_exporter. Here they come from
ZooKeeper, so that they go on when no broker answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from kafka08.console.cluster_state import ClusterState
from kafka08.console.observer import Observer
from kafka08.lag import exposition
from kafka08.lag.exposition import gauge

_BROKER = ("id", "address")


def families(observer: Observer) -> Iterator[Metric]:
    """Figures that could not be read in the last round are left out."""
    text = "1 if the last look at ZooKeeper succeeded, 0 if brokers and topics are unknown"
    yield gauge("console_cluster_in_sight", text, (), [((), not observer.error)])
    text = "1 if lag could be collected in the last round"
    yield gauge("console_lag_collected", text, (), [((), not observer.lag_error)])
    if observer.state is not None and not observer.error:
        yield from _brokers(observer.state)
    if observer.lags is not None and not observer.lag_error:
        yield from exposition.families(observer.lags)


def _brokers(state: ClusterState) -> Iterator[Metric]:
    named = [((str(each.id), ", ".join(each.addresses)), each) for each in state.brokers.values()]
    yield gauge("brokers", "Number of live brokers", (), [((), len(state.live))])
    live = [(labels, 1) for labels, each in named if each.is_live]
    yield gauge("broker_info", "A live broker", _BROKER, live)
    text = "1 for a broker that is registered, 0 for one that has gone or has replicas"
    yield gauge("broker_up", text, _BROKER, [(labels, each.is_live) for labels, each in named])
