from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.offsets import CoordinatorOffsets, ZooKeeperOffsets
from kafka08.common import Broker, TopicPartition
from kafka08.errors import KafkaError
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk.znodes import MalformedNodeError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def coordinator(cluster: FakeCluster, runtime: FakeRuntime) -> CoordinatorOffsets:
    return CoordinatorOffsets(
        "g", lambda: list(cluster.brokers.values()), runtime=runtime, channel=cluster.channel
    )


def test_zookeeper_reads_and_writes_text() -> None:
    ensemble = FakeZooKeeper()
    zk = Session(ensemble)
    store = ZooKeeperOffsets(zk, "g")
    assert store.fetch([T0]) == {T0: -1}
    store.commit({T0: 42})
    assert ensemble.text("/consumers/g/offsets/t/0") == "42"
    assert store.fetch([T0, T1]) == {T0: 42, T1: -1}
    ensemble.put("/consumers/g/offsets/t/1", b"x")
    with pytest.raises(MalformedNodeError):
        store.fetch([T1])


def test_zookeeper_writes_only_changes() -> None:
    ensemble = FakeZooKeeper()
    zk = Session(ensemble)
    store = ZooKeeperOffsets(zk, "g")
    store.adopt({T0: 5})
    writes: list[str] = []
    zk.before = lambda call, path: writes.append(path) if call == "set" else None
    store.commit({T0: 5})
    store.commit({T0: 6})
    store.commit({T0: 6})
    assert len(writes) == 1


def test_coordinator_is_waited_for() -> None:
    cluster, runtime = FakeCluster(), FakeRuntime()
    answers = [15, 15]

    def script(port: int, request: Any) -> Any:
        if answers and isinstance(request, schemas.ConsumerMetadataRequest):
            return schemas.ConsumerMetadataResponse(answers.pop(), -1, "", -1)
        return None

    cluster.script = script
    assert coordinator(cluster, runtime).connect()
    assert runtime.slept == [1.0, 1.0]


def test_lookup_ends_with_the_connector() -> None:
    cluster, runtime = FakeCluster(), FakeRuntime()
    cluster.down = {9090}
    stopping = runtime.event()
    runtime.on_sleep = lambda seconds: stopping.set()
    store = CoordinatorOffsets(
        "g",
        lambda: [Broker(0, "b0", 9090)],
        stopping=stopping,
        runtime=runtime,
        channel=cluster.channel,
    )
    assert not store.connect()
    assert store.fetch([T0]) is None


@pytest.mark.scenario("client-23")
def test_fetch_waits_for_loading_and_follows_the_coordinator() -> None:
    cluster, runtime = FakeCluster(), FakeRuntime()
    cluster.committed["g", T0] = 9
    errors = [16, 14]

    def script(port: int, request: Any) -> Any:
        if errors and isinstance(request, schemas.OffsetFetchRequest):
            entry = schemas.OffsetFetchPartitionResponse(0, -1, "", errors.pop())
            return schemas.OffsetFetchResponse([schemas.OffsetFetchTopicResponse("t", [entry])])
        return None

    cluster.script = script
    assert coordinator(cluster, runtime).fetch([T0]) == {T0: 9}
    # Loading keeps the connection, "not the coordinator" looks for another.
    assert len(cluster.sent(schemas.ConsumerMetadataRequest)) == 2


@pytest.mark.scenario("client-23")
def test_failed_commit_reconnects() -> None:
    cluster, runtime = FakeCluster(), FakeRuntime()
    store = coordinator(cluster, runtime)
    assert store.commit({T0: 1}) == {T0: 0}
    cluster.down = {9090}
    with pytest.raises(OSError):
        store.commit({T0: 2})
    cluster.down = set()
    assert store.commit({T0: 3}) == {T0: 0}
    assert cluster.committed["g", T0] == 3
    assert len(cluster.sent(schemas.ConsumerMetadataRequest)) == 2


@pytest.mark.parametrize("code", [14, 16])
def test_one_try_fails_while_the_coordinator_is_not_ready(code: int) -> None:
    """Its answer has no offsets, which must not be taken for a group that stored none."""
    cluster, runtime = FakeCluster(), FakeRuntime()
    entry = schemas.OffsetFetchPartitionResponse(0, -1, "", code)
    answer = schemas.OffsetFetchResponse([schemas.OffsetFetchTopicResponse("t", [entry])])
    cluster.script = lambda port, request: (
        answer if isinstance(request, schemas.OffsetFetchRequest) else None
    )
    store = coordinator(cluster, runtime)
    with pytest.raises(KafkaError):
        store.fetch_once([T0])
    assert store.stored([T0])[T0].error == code
