"""Waiting until appended sets have the acknowledgements asked for (kafka.server.DelayedProduce)."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.common import TopicPartition
from kafka08.errors import (
    NO_ERROR,
    KafkaError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kafka08.server.storage.replica_manager import ReplicaManager


def await_acks(
    replicas: ReplicaManager, required: Mapping[TopicPartition, int], acks: int, timeout_ms: int
) -> dict[TopicPartition, int]:
    """The wire code of each partition once its set is acknowledged, has failed, or is late.

    ``required`` maps a partition to the offset after its set. acks -1 (or below): the high
    watermark has passed it; N: N isr members have it. Code 7 stands for those still pending
    after ``timeout_ms``; their data stays in the log.
    """
    codes: dict[TopicPartition, int] = {}

    def settle(key: TopicPartition) -> bool:
        try:
            reached = replicas.writable(key, acks).check_enough_replicas_reach_offset(
                required[key], acks
            )
            codes[key] = NO_ERROR
        except UnknownTopicOrPartitionError:
            # The partition has moved away. 0.8.2.2 answers 3, as if the set were not stored.
            reached = True
            codes[key] = NotLeaderForPartitionError.code
        except KafkaError as error:
            reached = True
            codes[key] = error.code
        return reached

    # With an isr of one every set is acknowledged already: no watch is needed.
    waiting = {key for key in required if not settle(key)}
    if waiting:
        waiting = replicas.produce_purgatory.wait(waiting, timeout_ms, settle)
        for key in waiting:
            replicas.counts.produce_expired(key)
    codes.update(dict.fromkeys(waiting, RequestTimedOutError.code))
    return codes
