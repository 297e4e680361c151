"""Asking another broker how long its copy of a partition is: for unclean elections."""

from __future__ import annotations

from kafka08.common import LATEST_TIME, Broker, TopicPartition
from kafka08.errors import KafkaError
from kafka08.network.channel import Channel
from kafka08.protocol.schemas import (
    DEBUG_REPLICA_ID,
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
)
from kafka08.runtime import Runtime

_TIMEOUT_MS = 1000


def fetch_log_end(runtime: Runtime, broker: Broker, key: TopicPartition) -> int | None:
    """The log end offset of ``broker``'s replica, leader or follower; None without an answer."""
    request = OffsetsRequest(
        DEBUG_REPLICA_ID,
        [OffsetsTopic(key.topic, [OffsetsPartition(key.partition, LATEST_TIME, 1)])],
    )
    try:
        with Channel(broker.host, broker.port, timeout_ms=_TIMEOUT_MS, runtime=runtime) as channel:
            answer = channel.call(request).topics[0].partitions[0]
    except (OSError, KafkaError, IndexError):
        return None
    return answer.offsets[0] if answer.error == 0 and answer.offsets else None
