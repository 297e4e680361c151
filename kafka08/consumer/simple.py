"""A consumer of one broker, without state but its connection (kafka.consumer.SimpleConsumer).

The caller finds leaders, keeps track of offsets and retries after errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafka08.client import log_offsets, reading, requests
from kafka08.client.meters import Requests, Ticker
from kafka08.client.offsets import stored_offsets
from kafka08.client.requests import Response, StoredOffset
from kafka08.common import Closing, TopicPartition
from kafka08.consumer.metrics import fetch_series
from kafka08.errors import KafkaError, ProtocolError
from kafka08.metrics.registry import Series
from kafka08.network.channel import Channel, Connect
from kafka08.protocol import schemas
from kafka08.runtime import Runtime, ThreadRuntime


class SimpleConsumer(Closing):
    """Requests to the broker at ``host:port``, one at a time, from any number of tasks.

    A request that fails on the wire is sent once more on a new connection; the second failure
    (OSError, ProtocolError) is raised. A closed consumer stays closed. With ``api_versions`` the
    broker must answer ApiVersions; ``fetch`` then returns the message sets as they are stored, with
    timestamps and headers, which ``message.sets.iter_messages`` reads.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_ms: int = 30000,
        receive_buffer_bytes: int = 65536,
        client_id: str = "",
        runtime: Runtime | None = None,
        channel: Connect = Channel,
        api_versions: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        runtime = runtime or ThreadRuntime()
        self._lock = runtime.lock()
        self._now = runtime.clock.monotonic
        self._fetches = Requests(Ticker(self._now))
        self._client_id = client_id
        self._closed = False
        self._channel = channel(
            host,
            port,
            client_id=client_id,
            timeout_ms=timeout_ms,
            runtime=runtime,
            receive_buffer_bytes=receive_buffer_bytes,
            api_versions=api_versions,
        )

    def connect(self) -> None:
        """Connect now, instead of at the first call. Raises OSError or ProtocolError."""
        with self._lock:
            self._channel.connect()

    def call(self, request: object) -> Response:
        """Send any request and return its response."""
        with self._lock:
            self._check_open()
            try:
                return self._channel.call(request)
            except (OSError, ProtocolError):
                self._channel.close()
                self._check_open()
                return self._channel.call(request)

    def _check_open(self) -> None:
        if self._closed:
            raise KafkaError("the consumer is closed")

    def topic_metadata(self, topics: Iterable[str] = ()) -> schemas.MetadataResponse:
        response: schemas.MetadataResponse = self.call(schemas.MetadataRequest(list(topics)))
        return response

    def consumer_metadata(self, group: str) -> schemas.ConsumerMetadataResponse:
        response: schemas.ConsumerMetadataResponse = self.call(
            schemas.ConsumerMetadataRequest(group)
        )
        return response

    def fetch(
        self,
        positions: Mapping[TopicPartition, int],
        max_bytes: int = 1 << 20,
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        replica_id: int = schemas.CONSUMER_REPLICA_ID,
    ) -> dict[TopicPartition, schemas.FetchPartitionResponse]:
        """Raw message sets by partition, each with its own error code."""
        begin = self._now()
        found = reading.fetch(
            self.call,
            positions,
            max_bytes,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            replica_id=replica_id,
        )
        size = sum(len(entry.message_set or b"") for entry in found.values())
        self._fetches.record(self.host, self.port, self._now() - begin, size)
        return found

    def offsets_before(
        self,
        tp: TopicPartition,
        time: int,
        max_offsets: int = 1,
        *,
        replica_id: int = schemas.CONSUMER_REPLICA_ID,
    ) -> list[int]:
        """Offsets before ``time`` (ms, -1 latest, -2 earliest), descending. Raises on code."""
        return log_offsets.several(self.call, tp, time, max_offsets, replica_id=replica_id)

    def earliest_or_latest(
        self,
        tp: TopicPartition,
        time: int,
        *,
        replica_id: int = schemas.CONSUMER_REPLICA_ID,
    ) -> int:
        """The first offset (``time`` -2) or the log's end (-1). Raises the error of the code."""
        return self.offsets_before(tp, time, replica_id=replica_id)[0]

    def offset_since(self, tp: TopicPartition, time: int) -> int:
        """The first message whose timestamp is ``time`` (ms) or later, NO_OFFSET if there is none.

        Needs ``api_versions``. Raises NoApiVersionsError, and the error of the code.
        """
        return log_offsets.since(self.call, {tp: time}).checked()[tp]

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        version: int = 1,
        metadata: str = "",
    ) -> dict[TopicPartition, int]:
        """Commit through this broker: version 0 to ZooKeeper, 1 as coordinator.

        Returns the error code of each partition.
        """
        request = requests.commit_request(group, offsets, metadata, version=version)
        return requests.commit_results(self.call(request))

    def fetch_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, version: int = 1
    ) -> dict[TopicPartition, StoredOffset]:
        """The group's committed offsets, from the store of that version."""
        return stored_offsets(self.call, group, partitions, version=version)

    def series(self) -> Iterator[Series]:
        """Times and sizes of fetches, for ``ClientCollector``."""
        return fetch_series(self._fetches, self._client_id)

    def close(self) -> None:
        self._closed = True
        self._channel.close()
