"""A consumer without group or ZooKeeper: reads all partitions of a topic from brokers alone.

What later releases call an assigned consumer. Nothing is committed; partitions added later are
not noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafka08.client.cluster import ClusterClient, Endpoint
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.fetcher import FetcherManager
from kafka08.consumer.stream import KafkaStream, PartitionPosition
from kafka08.errors import KafkaError
from kafka08.network.channel import Channel
from kafka08.runtime import Runtime, ThreadRuntime

NO_OFFSET = -1


class StandaloneConsumer:
    """Reads through the brokers at ``bootstrap``; a context manager that closes.

    Of ``config`` the settings of fetching, auto.offset.reset and consumer.timeout.ms count.
    """

    def __init__(
        self,
        bootstrap: Iterable[Endpoint],
        config: ConsumerConfig,
        *,
        runtime: Runtime | None = None,
        channel: Callable[..., Any] = Channel,
    ) -> None:
        self._config = config
        self._runtime = runtime or ThreadRuntime()
        endpoints = list(bootstrap)
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
        """Start to read; waits for a topic that does not exist yet. To be called once.

        ``partition`` None means all of them; ``offset`` -1 is where auto.offset.reset says.
        """
        wanted = self._partitions(topic) if partition is None else [partition]
        self._fetchers.start(
            [PartitionPosition(TopicPartition(topic, p), offset, self._stream) for p in wanted]
        )
        return self._stream

    def _partitions(self, topic: str) -> list[int]:
        while True:
            try:
                return [found.partition for found in self._cluster.partitions(topic)]
            except KafkaError as error:
                if not error.retriable:
                    raise
                self._runtime.sleep(self._config.refresh_leader_backoff_ms / 1000)

    def close(self) -> None:
        """Stop fetching and end the stream."""
        self._fetchers.stop()
        self._stream.end()
        self._cluster.close()

    def __enter__(self) -> StandaloneConsumer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
