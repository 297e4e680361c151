"""Topics for the examples: an example makes its own, and reads what is in one of them now."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from kafka08.client.admin import AdminClient
from kafka08.client.cluster import ClusterClient, parse_broker_list
from kafka08.client.requests import flatten, offsets_request
from kafka08.common import EARLIEST_TIME, LATEST_TIME, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.errors import TopicExistsError

ADDRESS = "localhost:9092"
TIMEOUT_MS = 120_000


def make(
    address: str, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Create ``topic``; one that is there already stays as it is. Returns when it has leaders."""
    with AdminClient(parse_broker_list(address)) as client:
        with contextlib.suppress(TopicExistsError):
            client.create_topic(topic, partitions, 1, config=config)
        client.create_by_metadata(topic)


def bounds(address: str, topic: str) -> dict[int, tuple[int, int]]:
    """The first offset of each partition, and the one after its last message."""
    found = {}
    with ClusterClient(parse_broker_list(address)) as cluster:
        for each in cluster.partitions(topic):
            partition = TopicPartition(topic, each.partition)
            offsets = []
            for time in (EARLIEST_TIME, LATEST_TIME):
                answer = cluster.call_leader(partition, offsets_request({partition: time}))
                offsets.append(flatten(answer.topics)[partition].offsets[0])
            found[each.partition] = (offsets[0], offsets[1])
    return found


def read(address: str, topic: str) -> Iterator[Any]:
    """The messages that are in ``topic`` at the time of the call, each partition in its order.

    A message has partition, offset, key and value. Raises ConsumerTimeoutError if a broker does
    not return the rest of them within two minutes.
    """
    ends = {part: end for part, (first, end) in bounds(address, topic).items() if first < end}
    if not ends:
        return
    config = ConsumerConfig(
        group_id="unused",
        zookeeper_connect="unused",
        auto_offset_reset="smallest",
        consumer_timeout_ms=TIMEOUT_MS,
    )
    with StandaloneConsumer(parse_broker_list(address), config) as consumer:
        for message in consumer.stream(topic):
            end = ends.get(message.partition, -1)
            if message.offset < end:
                yield message
            if message.offset >= end - 1:
                ends.pop(message.partition, None)
                if not ends:
                    return
