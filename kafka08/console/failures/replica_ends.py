"""The ends of the logs of replicas, for unclean elections: the one with the longest log leads."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import partial

from kafka08.client import log_offsets
from kafka08.common import LATEST_TIME, TopicPartition
from kafka08.console.failures.defaults import Ask
from kafka08.errors import KafkaError
from kafka08.protocol.schemas import DEBUG_REPLICA_ID

logger = logging.getLogger("kafka.console.ReplicaEnds")


def read_ends(
    replicas: Mapping[TopicPartition, Collection[int]], ask: Ask
) -> dict[TopicPartition, dict[int, int]]:
    """By broker, of the partitions of which all these ``replicas`` answer. Each broker is asked
    once."""
    hosted: dict[int, list[TopicPartition]] = defaultdict(list)
    for tp, ids in replicas.items():
        for id_ in ids:
            hosted[id_].append(tp)
    found: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
    for id_, tps in hosted.items():
        times = dict.fromkeys(tps, LATEST_TIME)
        try:
            answers = log_offsets.before(partial(ask, id_), times, replica_id=DEBUG_REPLICA_ID)
        except (OSError, KafkaError) as error:
            logger.info("Broker %d did not return the ends of its replicas: %s", id_, error)
            continue
        for tp, end in answers.values.items():
            found[tp][id_] = end
    return {tp: ends for tp, ends in found.items() if ends.keys() == set(replicas[tp])}
