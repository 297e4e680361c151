"""A cluster of one topic for planner and reader, whose clients are real."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker, TopicPartition
from kafka08.errors import KafkaError, LeaderNotAvailableError
from kafka08.message.entry import encode_entry
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

T = TopicPartition("t", 0)
ONE, TWO = Broker(1, "one", 9092), Broker(2, "two", 9093)


def cluster_of(logs: Mapping[TopicPartition, bytes]) -> FakeCluster:
    """Broker 1 leads all; ``logs``: partition -> stored bytes."""
    cluster = FakeCluster([ONE, TWO])
    for tp, data in logs.items():
        put(cluster, tp, data)
    return cluster


def put(cluster: FakeCluster, tp: TopicPartition, data: bytes = b"") -> None:
    """Make the partition again, with these bytes as its log."""
    cluster.leaders[tp], cluster.logs[tp] = ONE.id, []
    cluster.store(tp, data)


def stamped(times: Iterable[int]) -> bytes:
    """Messages with these timestamps, from offset 0 on."""
    return b"".join(
        encode_entry(None, b"x", offset, timestamp=time) for offset, time in enumerate(times)
    )


def client_of(cluster: FakeCluster) -> ClusterClient:
    runtime = FakeRuntime()
    return ClusterClient([(ONE.host, ONE.port)], runtime=runtime, channel=cluster.channel)


def questions(cluster: FakeCluster) -> list[list[str]]:
    """The topics that each request for metadata named."""
    return [request.topics for request in cluster.sent(schemas.MetadataRequest)]


def refused() -> Exception:
    return ConnectionRefusedError("gone")


def not_leader() -> KafkaError:
    return LeaderNotAvailableError("not me")
