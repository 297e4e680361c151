"""A consumer without ZooKeeper: reads all partitions of a topic and needs only brokers.

Later releases call it an assigned consumer. It does not share partitions with other members. With
a group it starts at the offsets the group committed to Kafka, and commits on request. Partitions
added later are not noticed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafka08.client.cluster import ClusterClient, Endpoint
from kafka08.client.offsets import CoordinatorOffsets
from kafka08.client.retry import Retry
from kafka08.client.security import runtime_for
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.fetcher import FetcherManager
from kafka08.consumer.stream import KafkaStream, PartitionPosition
from kafka08.errors import KafkaError, raise_for_code
from kafka08.network.channel import Channel, Connect
from kafka08.runtime import Runtime

logger = logging.getLogger("kafka.consumer.SimpleConsumer")

NO_OFFSET = -1


class StandaloneConsumer:
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
        endpoints = list(bootstrap)
        self._positions: list[PartitionPosition] = []
        self._offsets: CoordinatorOffsets | None = None
        if group is not None:
            self._offsets = CoordinatorOffsets(
                group,
                lambda: [Broker(-1, host, port) for host, port in endpoints],
                client_id=config.client_id,
                backoff_ms=config.offsets_channel_backoff_ms,
                socket_timeout_ms=config.offsets_channel_socket_timeout_ms,
                runtime=self._runtime,
                channel=channel,
            )
        self._cluster = ClusterClient(
            endpoints, client_id=config.client_id, runtime=self._runtime, channel=channel
        )
        self._fetchers = FetcherManager(
            config.client_id,
            config,
            lambda: [Broker(-1, host, port) for host, port in endpoints],
            runtime=self._runtime,
            channel=channel,
        )
        self._stream = KafkaStream(
            self._runtime.queue(config.queued_max_message_chunks),
            timeout_ms=config.consumer_timeout_ms,
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
        self._positions = [
            PartitionPosition(tp, stored.get(tp, offset), self._stream) for tp in partitions
        ]
        self._fetchers.start(self._positions)
        return self._stream

    def _committed(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Waits for the group's coordinator."""
        found = self._offsets.fetch(partitions) if self._offsets is not None else None
        return {tp: offset for tp, offset in (found or {}).items() if offset >= 0}

    def commit_offsets(self) -> None:
        """Commit, for the group, all messages that were returned.

        ``close`` commits too, but leaves out the last message returned: its reader may have failed.
        Raises OSError or the error with which a partition's commit was refused.
        """
        for position in self._positions:
            position.processed_offset = position.consumed_offset
        self._commit()

    def _commit(self) -> None:
        moved = {p.tp: p.processed_offset for p in self._positions if p.processed_offset >= 0}
        if self._offsets is not None and moved:
            for tp, code in self._offsets.commit(moved).items():
                raise_for_code(code, f"The offset of {tp} was not committed: code {code}")

    def _partitions(self, topic: str) -> list[int]:
        backoff = self._config.refresh_leader_backoff_ms / 1000
        retry = Retry(
            self._runtime,
            backoff,
            passes=lambda error: isinstance(error, KafkaError) and error.retriable,
        )
        return [found.partition for found in retry.run(lambda: self._cluster.partitions(topic))]

    def close(self) -> None:
        """Stop fetching, end the stream, commit for the group."""
        self._fetchers.stop()
        self._stream.end()
        if self._offsets is not None:
            try:
                self._commit()
            except (OSError, KafkaError) as error:
                logger.error("The last offsets were not committed: %s", error)
            self._offsets.disconnect()
        self._cluster.close()

    def __enter__(self) -> StandaloneConsumer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
