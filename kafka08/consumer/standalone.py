"""A consumer without ZooKeeper: reads all partitions of a topic and needs only brokers.

Later releases call it an assigned consumer. It does not share partitions with other members. With
a group it starts at the offsets the group committed to Kafka, and commits on request. Partitions
added later are not noticed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafka08.client.cluster import Endpoint
from kafka08.client.requests import NO_OFFSET
from kafka08.client.retry import Retry
from kafka08.client.security import runtime_for
from kafka08.common import Broker, Closing, TopicPartition
from kafka08.consumer.assigned import AssignedConsumer, raise_refused
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.stream import KafkaStream
from kafka08.errors import KafkaError
from kafka08.network.channel import Channel, Connect
from kafka08.runtime import Runtime

logger = logging.getLogger("kafka.consumer.SimpleConsumer")


class StandaloneConsumer(Closing):
    """Reads through the brokers at ``bootstrap``; a context manager that closes.

    Uses these settings of ``config``: fetching, auto.offset.reset and consumer.timeout.ms.
    ``group``: the group whose offsets are read and committed.
    """

    def __init__(
        self,
        bootstrap: Iterable[Endpoint],
        config: ConsumerConfig,
        *,
        group: str | None = None,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
    ) -> None:
        self._config = config
        self._runtime = runtime or runtime_for(config)
        brokers = [Broker(-1, host, port) for host, port in bootstrap]
        self._has_group = group is not None
        self._consumer = AssignedConsumer(
            config, lambda: brokers, group=group, runtime=self._runtime, channel=channel
        )

    def stream(
        self, topic: str, partition: int | None = None, offset: int = NO_OFFSET
    ) -> KafkaStream:
        """Start to read; waits for a topic that does not exist yet. Must be called once only.

        ``partition`` None means all of them; ``offset`` -1 means by auto.offset.reset.
        """
        wanted = self._partitions(topic) if partition is None else [partition]
        partitions = [TopicPartition(topic, number) for number in wanted]
        stored = self._committed(partitions) if offset == NO_OFFSET else {}
        self._consumer.start({tp: stored.get(tp, offset) for tp in partitions})
        return self._consumer.stream

    def _committed(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Waits for the group's coordinator."""
        found = self._consumer.offsets.fetch(partitions) if self._has_group else None
        return {tp: offset for tp, offset in (found or {}).items() if offset >= 0}

    def commit_offsets(self) -> None:
        """Commit, for the group, all messages that were returned.

        ``close`` commits too, but leaves out the last message returned: its reader may have failed.
        Raises OSError or the error with which a partition's commit was refused.
        """
        for position in self._consumer.positions.values():
            position.processed_offset = position.consumed_offset
        self._commit()

    def _commit(self) -> None:
        positions = self._consumer.positions.values()
        moved = {p.tp: p.processed_offset for p in positions if p.processed_offset >= 0}
        if self._has_group and moved:
            raise_refused(self._consumer.offsets.commit(moved))

    def _partitions(self, topic: str) -> list[int]:
        backoff = self._config.refresh_leader_backoff_ms / 1000
        retry = Retry(
            self._runtime,
            backoff,
            passes=lambda error: isinstance(error, KafkaError) and error.retriable,
        )
        cluster = self._consumer.fetchers.cluster
        return [found.partition for found in retry.run(lambda: cluster.partitions(topic))]

    def close(self) -> None:
        """Stop fetching, end the stream, commit for the group."""
        self._consumer.stop()
        self._consumer.stream.end()
        try:
            self._commit()
        except (OSError, KafkaError) as error:
            logger.error("The last offsets were not committed: %s", error)
        self._consumer.offsets.disconnect()
