"""The lag of all groups for Prometheus, under the names of kafka_exporter.

Names of our own: ``kafka_consumergroup_lag_seconds``, ``_status``, ``_info``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from kafka08.common import TopicPartition
from kafka08.lag.collector import GroupLag, Lags, LogState, PartitionLag
from kafka08.lag.judgement import STATUSES

Samples = Iterable[tuple[tuple[str, ...], float | None]]

_STATUS_TEXT = ", ".join(f"{number} {status}" for number, status in enumerate(STATUSES))

_LOGS: tuple[tuple[str, str, Callable[[LogState], float | None]], ...] = (
    ("current_offset", "End of the log: offset of the next message", lambda log: log.end),
    ("oldest_offset", "First offset of the log", lambda log: log.start),
    ("leader", "Id of the leader, -1 without one", lambda log: log.leader),
    ("replicas", "Number of replicas", lambda log: len(log.replicas)),
    ("in_sync_replica", "Number of replicas in sync", lambda log: len(log.isr)),
    (
        "leader_is_preferred",
        "1 if the preferred replica leads",
        lambda log: log.replicas[:1] == (log.leader,),
    ),
    (
        "under_replicated_partition",
        "1 if a replica is not in sync",
        lambda log: len(log.isr) < len(log.replicas),
    ),
)
_PARTITIONS: tuple[tuple[str, str, Callable[[PartitionLag], float | None]], ...] = (
    ("current_offset", "Next offset that the group reads", lambda of: of.offset),
    ("lag", "Messages that the group has not read", lambda of: of.lag),
    ("lag_seconds", "Age of the next message that the group reads", lambda of: of.seconds),
    (
        "status",
        f"Judgement of the last commits: {_STATUS_TEXT}",
        lambda of: STATUSES.index(of.status),
    ),
)
_SUMS: tuple[tuple[str, Callable[[PartitionLag], int]], ...] = (
    ("current_offset_sum", lambda of: of.offset),
    ("lag_sum", lambda of: of.lag),
)
"""The families by suffix, with their texts and values; a value of None is left out."""


def families(lags: Lags) -> Iterator[Metric]:
    """The result of a round."""
    yield from _topics(lags.logs)
    yield from _groups(lags.groups)


def gauge(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    """The family ``kafka_name``; samples without a value are left out."""
    family = GaugeMetricFamily(f"kafka_{name}", text, labels=labels)
    for values, number in samples:
        if number is not None:
            family.add_metric(values, number)
    return family


def _topics(logs: Mapping[TopicPartition, LogState]) -> Iterator[Metric]:
    counts = sorted(Counter(tp.topic for tp in logs).items())
    text = "Number of partitions of a topic"
    yield gauge("topic_partitions", text, ("topic",), [((topic,), n) for topic, n in counts])
    labels = ("topic", "partition")
    for name, text, value in _LOGS:
        samples = (((tp.topic, str(tp.partition)), value(log)) for tp, log in logs.items())
        yield gauge(f"topic_partition_{name}", text, labels, samples)


def _groups(groups: Mapping[str, GroupLag]) -> Iterator[Metric]:
    def family(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
        return gauge(f"consumergroup_{name}", text, ("consumergroup", *labels), samples)

    partitions = [
        ((group, tp.topic, str(tp.partition)), each)
        for group, lag in groups.items()
        for tp, each in lag.partitions.items()
    ]
    for name, text, number in _PARTITIONS:
        samples = ((labels, number(each)) for labels, each in partitions)
        yield family(name, text, ("topic", "partition"), samples)
    for name, summand in _SUMS:
        sums: Counter[tuple[str, str]] = Counter()
        for (group, topic, _), each in partitions:
            sums[group, topic] += summand(each)
        yield family(name, "Sum over a topic's partitions", ("topic",), sums.items())
    members = [((group,), lag.members) for group, lag in groups.items()]
    yield family("members", "Number of live members", (), members)
    storages = [((group, "+".join(lag.storages)), 1) for group, lag in groups.items()]
    yield family("info", "Where the group commits", ("storage",), storages)
