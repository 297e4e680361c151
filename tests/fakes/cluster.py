"""A cluster of brokers without sockets, as clients see it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import UnsupportedForMessageFormatError
from kafka08.message.entry import BATCH, AnyMessage, magic_of
from kafka08.message.scan import iter_entries
from kafka08.message.sets import assign_offsets, encode_set, iter_messages
from kafka08.protocol import admin_schemas, schemas
from tests.fakes.transactions import KnownTransactions


class FakeCluster:
    """Brokers whose answers come from ``logs``; ``script`` may answer or raise instead.

    ``logs``: partition -> outer entries as (last offset, bytes). ``script(port, request)``
    returns None to leave the answer to the cluster. ``failures`` are raised by the next requests
    that are not for metadata, first first.

    Of each broker: ``states`` and ``metadata`` are what a controller told it, ``stop_errors`` the
    code with which it refuses to delete.
    """

    def __init__(self, brokers: Iterable[Broker] = (Broker(0, "b0", 9090),)) -> None:
        self.brokers = {broker.id: broker for broker in brokers}
        self.leaders: dict[TopicPartition, int] = {}
        self.logs: dict[TopicPartition, list[tuple[int, bytes]]] = {}
        self.starts: dict[TopicPartition, int] = {}
        # Where the first open transaction begins, and (producer id, first offset, marker's offset)
        # of aborted ones.
        self.stable: dict[TopicPartition, int] = {}
        self.aborted: dict[TopicPartition, list[tuple[int, int, int]]] = {}
        self.topic_errors: dict[str, int] = {}
        self.in_sync: dict[TopicPartition, list[int]] = {}  # for metadata; [0] of the others
        self.settings: dict[str, str] = {}  # of each broker
        self.committed: dict[tuple[str, TopicPartition], int] = {}
        self.requests: list[tuple[int, Any]] = []
        self.called: list[tuple[str | None, Any]] = []  # those of channels, with their client ids
        self.script: Callable[[int, Any], Any] | None = None
        self.failures: list[Exception] = []
        self.down: set[int] = set()
        self.channels: list[Channel] = []
        self.options: list[dict[str, Any]] = []  # of each channel
        self.controller_epochs: dict[int, int] = defaultdict(int)
        self.states: dict[int, dict[TopicPartition, schemas.PartitionStateInfo]] = defaultdict(dict)
        self.metadata: dict[int, MetadataCache] = defaultdict(
            lambda: MetadataCache(threading.Event())
        )
        self.stop_errors: dict[int, int] = {}
        self.transactions = KnownTransactions()

    def create(self, topic: str, partitions: int, leader: int = 0) -> None:
        for partition in range(partitions):
            self.leaders[TopicPartition(topic, partition)] = leader
            self.logs[TopicPartition(topic, partition)] = []

    def delete(self, tp: TopicPartition) -> None:
        del self.leaders[tp], self.logs[tp]

    def end(self, tp: TopicPartition) -> int:
        return self.logs[tp][-1][0] + 1 if self.logs[tp] else self.starts.get(tp, 0)

    def append(
        self, topic: str, partition: int, *values: bytes, key: bytes | None = None, codec: int = 0
    ) -> None:
        tp = TopicPartition(topic, partition)
        if codec:
            first = self.end(tp)
            data = encode_set([(key, value) for value in values], codec, first)
            self.logs[tp].append((first + len(values) - 1, data))
            return
        for value in values:
            offset = self.end(tp)
            self.logs[tp].append((offset, encode_set([(key, value)], 0, offset)))

    def store(self, tp: TopicPartition, data: bytes) -> None:
        """Append stored bytes, with the offsets that they have."""
        for entry in iter_entries(data):
            piece = data[entry.position : entry.position + entry.size_total]
            self.logs[tp].append((entry.offset, piece))

    def messages(self, topic: str, partition: int) -> list[AnyMessage]:
        data = b"".join(entry for _, entry in self.logs[TopicPartition(topic, partition)])
        return list(iter_messages(data))

    def values(self, topic: str, partition: int) -> list[bytes | None]:
        return [message.value for message in self.messages(topic, partition)]

    def sent(self, kind: type[Any]) -> list[Any]:
        return [request for _, request in self.requests if isinstance(request, kind)]

    def took(self, broker_id: int, kind: type[Any] = tuple) -> list[Any]:
        """The requests that one broker got."""
        port = self.brokers[broker_id].port
        return [r for asked, r in self.requests if asked == port and isinstance(r, kind)]

    def leads(self, broker_id: int) -> set[TopicPartition]:
        """The partitions that a broker was told to lead."""
        return {tp for tp, state in self.states[broker_id].items() if state.leader == broker_id}

    def channel(self, host: str, port: int, **options: Any) -> Channel:
        self.options.append(options)
        self.channels.append(Channel(self, host, port, **options))
        return self.channels[-1]

    def answer(self, port: int, request: Any) -> Any:
        if port in self.down:
            raise ConnectionRefusedError(f"port {port}")
        self.requests.append((port, request))
        if self.failures and not isinstance(request, schemas.MetadataRequest):
            raise self.failures.pop(0)
        answer = self.script(port, request) if self.script else None
        if answer is None:
            answer = self.transactions.answer(self._node(port), request)
        if answer is not None:
            return answer
        return getattr(self, f"_{type(request).__name__}")(port, request)

    def _node(self, port: int) -> int:
        return next((b.id for b in self.brokers.values() if b.port == port), -1)

    def _MetadataRequest(self, port: int, request: Any) -> Any:
        return self.tell(request, self.leaders)

    def tell(
        self, request: schemas.MetadataRequest, known: Iterable[TopicPartition]
    ) -> schemas.MetadataResponse:
        """The answer of a broker that knows these partitions."""
        known = sorted(known)
        topics = []
        for topic in request.topics or sorted({tp.topic for tp in known}):
            partitions = [
                schemas.PartitionMetadata(
                    5 if leader < 0 else 0, tp.partition, leader, [0], self.in_sync.get(tp, [0])
                )
                for tp in known
                if tp.topic == topic
                for leader in [self.leaders[tp]]
            ]
            error = self.topic_errors.get(topic, 0 if partitions else 3)
            topics.append(schemas.TopicMetadata(error, topic, [] if error else partitions))
        brokers = [schemas.BrokerEndpoint(*broker) for broker in self.brokers.values()]
        return schemas.MetadataResponse(brokers, topics)

    def _FetchRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            committed = request.isolation_level == schemas.READ_COMMITTED
            entries = [
                self._fetched(port, topic.topic, asked, committed) for asked in topic.partitions
            ]
            topics.append(schemas.FetchTopicResponse(topic.topic, entries))
        return schemas.FetchResponse(topics)

    def _fetched(self, port: int, topic: str, asked: Any, committed: bool) -> Any:
        tp = TopicPartition(topic, asked.partition)
        if tp not in self.logs:
            return schemas.FetchPartitionResponse(asked.partition, 3, -1, b"")
        if self.leaders.get(tp) != self._node(port):
            return schemas.FetchPartitionResponse(asked.partition, 6, -1, b"")
        if not self.starts.get(tp, 0) <= asked.offset <= self.end(tp):
            return schemas.FetchPartitionResponse(asked.partition, 1, -1, b"")
        end = self.end(tp)
        stable = self.stable.get(tp, end)
        until = stable if committed else end
        data = b"".join(entry for last, entry in self.logs[tp] if asked.offset <= last < until)
        data = data[: asked.max_bytes]
        aborted = None
        if committed:
            aborted = [each[:2] for each in self.aborted.get(tp, ()) if each[2] >= asked.offset]
        return schemas.FetchPartitionResponse(
            asked.partition, 0, end, memoryview(data), stable, aborted_transactions=aborted
        )

    def _OffsetsRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            entries = []
            for asked in topic.partitions:
                tp = TopicPartition(topic.topic, asked.partition)
                if tp not in self.logs:
                    entries.append(schemas.OffsetsPartitionResponse(asked.partition, 3, []))
                    continue
                offset = self.starts.get(tp, 0) if asked.time == -2 else self.end(tp)
                entries.append(schemas.OffsetsPartitionResponse(asked.partition, 0, [offset]))
            topics.append(schemas.OffsetsTopicResponse(topic.topic, entries))
        return schemas.OffsetsResponse(topics)

    def _ListOffsetsRequest(self, port: int, request: Any) -> Any:
        if request.isolation_level == schemas.READ_COMMITTED:
            ends = {tp: self.stable.get(tp, self.end(tp)) for tp in self.logs}
            return self.transactions.offsets(request, ends.__getitem__)
        topics = [
            schemas.OffsetsTopicResponse(
                name, [self._since(name, *asked[:2]) for asked in partitions]
            )
            for name, partitions in request.topics
        ]
        return schemas.OffsetsResponse(topics)

    def _since(self, topic: str, partition: int, time: int) -> schemas.OffsetsPartitionResponse:
        found = [m for m in self.messages(topic, partition) if m.timestamp >= 0]
        since = [message.offset for message in found if message.timestamp >= time]
        code = 0 if found else UnsupportedForMessageFormatError.code
        return schemas.OffsetsPartitionResponse(partition, code, offset=since[0] if since else -1)

    def _ProduceRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            entries = []
            for part in topic.partitions:
                tp = TopicPartition(topic.topic, part.partition)
                error, base = (0, self.end(tp)) if tp in self.logs else (3, -1)
                if self.leaders.get(tp) != self._node(port):
                    error, base = 6, -1
                data = bytearray(part.message_set)
                if not error and data and magic_of(data) == BATCH:
                    appended = assign_offsets(data, base, len(data))
                    self.logs[tp].append((appended.last_offset, bytes(data)))
                elif not error:
                    for message in iter_messages(data):
                        self.append(tp.topic, tp.partition, message.value, key=message.key)
                entries.append(schemas.ProducePartitionResponse(part.partition, error, base))
            topics.append(schemas.ProduceTopicResponse(topic.topic, entries))
        return schemas.ProduceResponse(topics) if request.acks else None

    def _ConsumerMetadataRequest(self, port: int, request: Any) -> Any:
        return schemas.ConsumerMetadataResponse(0, *self.brokers[0])

    def _DescribeConfigsRequest(self, port: int, request: Any) -> Any:
        """The settings that were set here, of those asked for; without any, as 0.8.2.2."""
        if not self.settings:
            raise ConnectionResetError("as 0.8.2.2 does")
        [asked] = request.resources
        entries = [
            admin_schemas.ConfigEntry(name, self.settings[name], False)
            for name in asked.config_names
            if name in self.settings
        ]
        found = admin_schemas.ResourceConfig(0, None, *asked[:2], entries)
        return admin_schemas.DescribeConfigsResponse(0, [found])

    def _DescribeGroupsRequest(self, port: int, request: Any) -> Any:
        raise ConnectionResetError("as 0.8.2.2 does")

    _ListGroupsRequest = _DeleteGroupsRequest = _OffsetDeleteRequest = _DescribeGroupsRequest
    _DescribeLogDirsRequest = _DescribeGroupsRequest
    _DescribeConfigsRequestV1 = _DescribeGroupsRequest
    _DescribeAclsRequest = _DescribeUserScramCredentialsRequest = _DescribeGroupsRequest

    def _OffsetCommitRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            for part in topic.partitions:
                tp = TopicPartition(topic.topic, part.partition)
                self.committed[request.group, tp] = part.offset
            entries = [schemas.OffsetCommitPartitionResponse(p.partition, 0) for p in topic[1]]
            topics.append(schemas.OffsetCommitTopicResponse(topic.topic, entries))
        return schemas.OffsetCommitResponse(topics)

    def _OffsetFetchRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            entries = []
            for partition in topic.partitions:
                tp = TopicPartition(topic.topic, partition)
                offset = self.committed.get((request.group, tp), -1)
                entries.append(schemas.OffsetFetchPartitionResponse(partition, offset, "", 0))
            topics.append(schemas.OffsetFetchTopicResponse(topic.topic, entries))
        return schemas.OffsetFetchResponse(topics)

    # Requests of a controller

    def _believes(self, node: int, request: Any) -> bool:
        if request.controller_epoch < self.controller_epochs[node]:
            return False
        self.controller_epochs[node] = request.controller_epoch
        return True

    def _UpdateMetadataRequest(self, port: int, request: Any) -> Any:
        node = self._node(port)
        if not self._believes(node, request):
            return schemas.UpdateMetadataResponse(-1)
        brokers = [Broker(*broker[:3]) for broker in request.live_brokers]
        self.metadata[node].update(request.partitions, brokers)
        return schemas.UpdateMetadataResponse(0)

    def _LeaderAndIsrRequest(self, port: int, request: Any) -> Any:
        node = self._node(port)
        if not self._believes(node, request):
            return schemas.LeaderAndIsrResponse(11, [])
        entries = []
        for state in request.partitions:
            assert node in state.replicas
            tp = TopicPartition(state.topic, state.partition)
            known = self.states[node].get(tp)
            stale = known is not None and state.leader_epoch <= known.leader_epoch
            if not stale:
                self.states[node][tp] = state
            entries.append(schemas.PartitionError(*tp, 13 if stale else 0))
        return schemas.LeaderAndIsrResponse(0, entries)

    def _StopReplicaRequest(self, port: int, request: Any) -> Any:
        node = self._node(port)
        if not self._believes(node, request):
            return schemas.StopReplicaResponse(11, [])
        error = self.stop_errors.get(node, 0) if request.delete_partitions else 0
        partitions = [TopicPartition(*each) for each in request.partitions]
        if request.delete_partitions and not error:
            for tp in partitions:
                self.states[node].pop(tp, None)
        entries = [schemas.PartitionError(*tp, error) for tp in partitions]
        return schemas.StopReplicaResponse(0, entries)


def connect(monkeypatch: pytest.MonkeyPatch, module: ModuleType, cluster: FakeCluster) -> None:
    """Have the clients that a tool's module creates talk to the cluster."""

    def client(*args: Any, **options: Any) -> ClusterClient:
        return ClusterClient(*args, **{**options, "channel": cluster.channel})

    def consumer(host: str, port: int, **options: Any) -> SimpleConsumer:
        return SimpleConsumer(host, port, channel=cluster.channel, **options)

    for name, made in (("ClusterClient", client), ("SimpleConsumer", consumer)):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, made)


class Channel:
    def __init__(
        self,
        cluster: FakeCluster,
        host: str,
        port: int,
        *,
        client_id: str | None = "",
        **options: Any,
    ) -> None:
        self.client_id = client_id
        self.host = host
        self.port = port
        self.connected = False
        self._cluster = cluster

    def connect(self) -> None:
        if self.port in self._cluster.down:
            raise ConnectionRefusedError(f"port {self.port}")
        self.connected = True

    def call(self, request: Any, version: int | None = None) -> Any:
        self._cluster.called.append((self.client_id, request))
        self.connected = True
        return self._cluster.answer(self.port, request)

    def close(self) -> None:
        self.connected = False

    abort = close

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
