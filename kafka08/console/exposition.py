"""The brokers that the console knows, for Prometheus; lag is in ``kafka08.lag.exposition``.

``kafka_brokers`` and ``kafka_broker_info`` are names of kafka_exporter. Here they come from
ZooKeeper, so that they go on when no broker answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from kafka08.console.cluster_state import ClusterState
from kafka08.console.observer import Observer
from kafka08.lag import exposition
from kafka08.lag.exposition import gauge

_BROKER = ("id", "address")


def families(observers: Mapping[str, Observer]) -> Iterator[Metric]:
    """Of clusters by their names, which are the label ``cluster``; the series of a cluster named ""
    do not have it. The pieces of a family follow one another. Figures that could not be read in
    the last round are left out."""
    for part in (_sight, _brokers, _lag):
        parts = [(part(each), name) for name, each in observers.items()]
        known = [_labelled(found, name) for found, name in parts if found is not None]
        # Each part has the same families in the same order for every cluster.
        for pieces in zip(*known, strict=True):
            yield from pieces


def _labelled(found: Iterator[Metric], cluster: str) -> Iterator[Metric]:
    for family in found:
        if cluster:
            family.samples = [
                each._replace(labels={"cluster": cluster, **each.labels}) for each in family.samples
            ]
        yield family


def _sight(observer: Observer) -> Iterator[Metric]:
    text = "1 if the last look at ZooKeeper succeeded, 0 if brokers and topics are unknown"
    yield gauge("console_cluster_in_sight", text, (), [((), not observer.error)])
    text = "1 if lag could be collected in the last round"
    yield gauge("console_lag_collected", text, (), [((), not observer.lag_error)])


def _lag(observer: Observer) -> Iterator[Metric] | None:
    """None if it is not known, and so for brokers."""
    if observer.lags is None or observer.lag_error:
        return None
    return exposition.families(observer.lags)


def _brokers(observer: Observer) -> Iterator[Metric] | None:
    if observer.state is None or observer.error:
        return None
    return _broker_families(observer.state)


def _broker_families(state: ClusterState) -> Iterator[Metric]:
    named = [((str(each.id), ", ".join(each.addresses)), each) for each in state.brokers.values()]
    yield gauge("brokers", "Number of live brokers", (), [((), len(state.live))])
    live = [(labels, 1) for labels, each in named if each.is_live]
    yield gauge("broker_info", "A live broker", _BROKER, live)
    text = "1 for a broker that is registered, 0 for one that has gone or has replicas"
    yield gauge("broker_up", text, _BROKER, [(labels, each.is_live) for labels, each in named])
