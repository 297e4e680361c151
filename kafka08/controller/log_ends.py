"""Asks brokers about the logs of their replicas, on tasks of its own: how long they are, for
unclean elections, and up to where they hold what 0.8.2.2 cannot read, for reassignments.

The controller's loop does not wait: the answers come back to it as an event. Does not know
elections.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from kafka08.common import LATEST_TIME, Broker, TopicPartition
from kafka08.errors import KafkaError
from kafka08.network.channel import Channel, Connect
from kafka08.protocol.schemas import (
    DEBUG_REPLICA_ID,
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
)
from kafka08.runtime import Runtime, SocketConnector, Tasks

logger = logging.getLogger("kafka.controller.KafkaController")

TIMEOUT_MS = 1000
UNKNOWN = -1

# partition -> broker id -> log end; UNKNOWN if the broker did not answer
Ends = Mapping[TopicPartition, Mapping[int, int]]
FetchLogEnds = Callable[[Broker, Sequence[TopicPartition], int], Mapping[TopicPartition, int]]


def fetch_log_ends(
    connector: SocketConnector,
    broker: Broker,
    partitions: Sequence[TopicPartition],
    time: int = LATEST_TIME,
    *,
    channel: Connect = Channel,
) -> dict[TopicPartition, int]:
    """The log ends of ``broker``'s replicas, leaders or followers; those it does not return within
    a second are left out. With LATER_FORMATS_TIME up to where logs that it leads hold what 0.8.2.2
    cannot read, or 0."""
    topics: dict[str, list[OffsetsPartition]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(OffsetsPartition(partition, time, 1))
    asked = [OffsetsTopic(topic, parts) for topic, parts in topics.items()]
    try:
        with closing(
            channel(broker.host, broker.port, timeout_ms=TIMEOUT_MS, runtime=connector)
        ) as opened:
            answer = opened.call(OffsetsRequest(DEBUG_REPLICA_ID, asked))
    except (OSError, KafkaError) as error:
        logger.warning("Broker %d did not return its log ends: %s", broker.id, error)
        return {}
    return {
        TopicPartition(topic.topic, part.partition): part.offsets[0]
        for topic in answer.topics
        for part in topic.partitions
        if part.error == 0 and part.offsets
    }


class ReplicaLogEnds:
    """Asks with ``fetch`` for the log ends at ``time``. ``answered(number, ends)`` is called on a
    task once every broker asked has answered, or failed to; ``number`` counts the calls of
    ``ask``."""

    def __init__(
        self,
        runtime: Runtime,
        fetch: FetchLogEnds,
        time: int,
        answered: Callable[[int, Ends], None],
    ) -> None:
        self._fetch = fetch
        self._time = time
        self._answered = answered
        self._number = 0
        self._asked: dict[TopicPartition, int] = {}  # the number of the last call
        self._tasks = Tasks(runtime)
        self.join = self._tasks.join

    def ask(self, replicas: Mapping[TopicPartition, Sequence[Broker]]) -> None:
        """Ask the brokers that host a partition's live replicas. Does not wait."""
        self._number = number = self._number + 1
        self._asked.update(dict.fromkeys(replicas, number))
        ends = {tp: {broker.id: UNKNOWN for broker in hosts} for tp, hosts in replicas.items()}
        wanted: dict[Broker, list[TopicPartition]] = {}
        for tp, hosts in replicas.items():
            for broker in hosts:
                wanted.setdefault(broker, []).append(tp)
        waiting = set(wanted)

        def work(broker: Broker) -> None:
            try:
                for tp, end in self._fetch(broker, wanted[broker], self._time).items():
                    ends[tp][broker.id] = end
            finally:
                waiting.discard(broker)
                if not waiting:
                    self._answered(number, ends)

        for broker in wanted:
            self._tasks.begin(f"log-ends-of-{broker.id}", work, broker)

    def latest(self, number: int, ends: Ends) -> Ends:
        """The answers about partitions that were not asked about again since."""
        found = {tp: known for tp, known in ends.items() if self._asked.get(tp) == number}
        for tp in found:
            del self._asked[tp]
        return found
