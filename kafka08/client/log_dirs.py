"""The data directories of brokers and the replicas in them, over the wire.

By DescribeLogDirs, which 0.8.2.2 does not have.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka08.client.admin import check
from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker, TopicPartition
from kafka08.errors import KafkaError
from kafka08.protocol.admin_schemas import DescribeLogDirsRequest, DescribeLogDirsResponse, LogDir

logger = logging.getLogger("kafka.console.LogDirs")


class TopicSize(NamedTuple):
    """The bytes of all replicas that are known, of the largest of them, and their number."""

    bytes: int
    largest: int
    replicas: int


class DiskUse(NamedTuple):
    """``directories`` by broker, without brokers that did not answer. ``brokers`` and
    ``replicas``: bytes, of the partitions by broker."""

    directories: Mapping[int, Sequence[LogDir]] = {}
    brokers: Mapping[int, int] = {}
    topics: Mapping[str, TopicSize] = {}
    replicas: Mapping[TopicPartition, Mapping[int, int]] = {}


def sizes(directories: Iterable[LogDir]) -> dict[TopicPartition, int]:
    """The bytes of each replica in some directories of a broker."""
    found: dict[TopicPartition, int] = defaultdict(int)
    for directory in directories:
        for topic in directory.topics:
            for each in topic.partitions:
                found[TopicPartition(topic.topic, each.partition)] += each.size
    return found


def disk_use(cluster: ClusterClient, brokers: Iterable[Broker]) -> DiskUse:
    """One request to each broker. One that does not answer is logged and left out."""
    directories: dict[int, Sequence[LogDir]] = {}
    for broker in brokers:
        try:
            directories[broker.id] = _described(cluster, broker)
        except (OSError, KafkaError) as error:
            logger.warning("Broker %d did not return its data directories: %s", broker.id, error)
    totals: dict[int, int] = {}
    replicas: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
    for id_, described in directories.items():
        found = sizes(described)
        totals[id_] = sum(found.values())
        for tp, size in found.items():
            replicas[tp][id_] = size
    return DiskUse(directories, totals, _topics(replicas), replicas)


def _described(cluster: ClusterClient, broker: Broker) -> Sequence[LogDir]:
    asked = DescribeLogDirsRequest(None)
    answer: DescribeLogDirsResponse = cluster.call(broker, asked, api_versions=True)
    check(answer.error, None)
    return answer.log_dirs


def _topics(replicas: Mapping[TopicPartition, Mapping[int, int]]) -> dict[str, TopicSize]:
    of_topic: dict[str, list[int]] = defaultdict(list)
    for tp, found in replicas.items():
        of_topic[tp.topic] += found.values()
    return {
        topic: TopicSize(sum(found), max(found), len(found)) for topic, found in of_topic.items()
    }
