"""The lag of all groups for Prometheus, under the names of kafka_exporter.

Names of our own: ``kafka_consumergroup_lag_seconds``, ``_status``, ``_info``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from kafka08.common import TopicPartition
from kafka08.lag.collector import GroupLag, Lags
from kafka08.lag.judgement import STATUSES

_GROUP = ("consumergroup",)
_BY_TOPIC = ("consumergroup", "topic")
_BY_PARTITION = ("consumergroup", "topic", "partition")
_PARTITION = ("topic", "partition")


class LagExposition:
    """A collector for prometheus-client over the result of the last round."""

    def __init__(self, lags: Lags) -> None:
        self._lags = lags

    def collect(self) -> Iterator[Metric]:
        yield from _cluster(self._lags)
        yield from _topics(self._lags)
        yield from _groups(self._lags.groups.items())


def _family(name: str, text: str, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)


def _cluster(lags: Lags) -> Iterator[Metric]:
    count = _family("kafka_brokers", "Number of live brokers")
    count.add_metric((), len(lags.brokers))
    yield count
    info = _family("kafka_broker_info", "A live broker", ("id", "address"))
    for broker in lags.brokers:
        info.add_metric((str(broker.id), f"{broker.host}:{broker.port}"), 1)
    yield info


def _topics(lags: Lags) -> Iterator[Metric]:
    count = _family("kafka_topic_partitions", "Number of partitions of a topic", ("topic",))
    counts: dict[str, int] = {}
    for tp in lags.logs:
        counts[tp.topic] = counts.get(tp.topic, 0) + 1
    for topic, number in sorted(counts.items()):
        count.add_metric((topic,), number)
    yield count

    def of_partition(name: str, text: str) -> GaugeMetricFamily:
        return _family(f"kafka_topic_partition_{name}", text, _PARTITION)

    end = of_partition("current_offset", "End of the log: offset of the next message")
    start = of_partition("oldest_offset", "First offset of the log")
    leader = of_partition("leader", "Id of the leader, -1 without one")
    replicas = of_partition("replicas", "Number of replicas")
    isr = of_partition("in_sync_replica", "Number of replicas in sync")
    preferred = of_partition("leader_is_preferred", "1 if the preferred replica leads")
    behind = of_partition("under_replicated_partition", "1 if a replica is not in sync")
    for tp, log in lags.logs.items():
        labels = (tp.topic, str(tp.partition))
        if log.end is not None:
            end.add_metric(labels, log.end)
        if log.start is not None:
            start.add_metric(labels, log.start)
        leader.add_metric(labels, log.leader)
        replicas.add_metric(labels, len(log.replicas))
        isr.add_metric(labels, len(log.isr))
        preferred.add_metric(labels, log.replicas[:1] == (log.leader,))
        behind.add_metric(labels, len(log.isr) < len(log.replicas))
    yield from (end, start, leader, replicas, isr, preferred, behind)


def _groups(groups: Iterable[tuple[str, GroupLag]]) -> Iterator[Metric]:
    prefix = "kafka_consumergroup_"
    offset = _family(f"{prefix}current_offset", "Next offset that the group reads", _BY_PARTITION)
    lag = _family(f"{prefix}lag", "Messages that the group has not read", _BY_PARTITION)
    seconds = _family(
        f"{prefix}lag_seconds", "Age of the next message that the group reads", _BY_PARTITION
    )
    status = _family(
        f"{prefix}status",
        f"Judgement of the last commits: {', '.join(f'{n} {s}' for n, s in enumerate(STATUSES))}",
        _BY_PARTITION,
    )
    offsets = _family(f"{prefix}current_offset_sum", "Sum over a topic's partitions", _BY_TOPIC)
    lags = _family(f"{prefix}lag_sum", "Sum over a topic's partitions", _BY_TOPIC)
    members = _family(f"{prefix}members", "Number of live members", _GROUP)
    info = _family(f"{prefix}info", "Where the group commits", ("consumergroup", "storage"))
    for group, found in groups:
        members.add_metric((group,), found.members)
        info.add_metric((group, "+".join(found.storages)), 1)
        for tp, each in found.partitions.items():
            labels = _labels(group, tp)
            offset.add_metric(labels, each.offset)
            lag.add_metric(labels, each.lag)
            if each.seconds is not None:
                seconds.add_metric(labels, each.seconds)
            status.add_metric(labels, STATUSES.index(each.status))
        for topic in sorted({tp.topic for tp in found.partitions}):
            of_topic = [each for tp, each in found.partitions.items() if tp.topic == topic]
            offsets.add_metric((group, topic), sum(each.offset for each in of_topic))
            lags.add_metric((group, topic), sum(each.lag for each in of_topic))
    yield from (offset, lag, seconds, status, offsets, lags, members, info)


def _labels(group: str, tp: TopicPartition) -> tuple[str, str, str]:
    return (group, tp.topic, str(tp.partition))
