"""Scenarios 24 to 27: what an acknowledgement promises and what consumers may see."""

from __future__ import annotations

import threading

import pytest

from integration.cluster.cluster import Cluster, eventually
from integration.cluster.conftest import PURE, Clusters

TIMED_OUT = 7
NOT_ENOUGH_REPLICAS = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
TWO = {"min.insync.replicas": 2}
# Time to look at a frozen follower before it leaves the isr, and no session that ends first.
PATIENT = {"zookeeper.session.timeout.ms": 30000, "replica.lag.time.max.ms": 8000}


@pytest.mark.parametrize("kind", PURE)
def test_24_isr_below_minimum(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3], config=TWO)
    cluster.put_records(topic, 10)
    cluster.kill(3)
    cluster.await_isr(topic, {1})
    eventually(
        "code 19", lambda: cluster.produce(topic, [b"refused"], acks=-1)[0] == NOT_ENOUGH_REPLICAS
    )
    assert cluster.produce(topic, [b"taken"], acks=1)[0] == 0
    records = cluster.read(topic)
    assert b"taken" in records
    cluster.brokers[3].start()
    cluster.await_isr(topic, {1, 3})
    assert cluster.produce(topic, [b"again"], acks=-1)[0] == 0
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
def test_25_isr_shrinks_after_append(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props=PATIENT)
    topic = cluster.new_topic([1, 3], config=TWO)
    cluster.put_records(topic, 10)
    cluster.pause(3)
    code, _ = cluster.produce(topic, [b"kept"], timeout_ms=60000)
    # The original may look at the isr just before it shrinks and at the high watermark just after.
    assert code == NOT_ENOUGH_REPLICAS_AFTER_APPEND or (kind == "original" and code == 0)
    assert b"kept" in cluster.read(topic)
    cluster.resume(3)
    cluster.await_isr(topic, {1, 3})
    cluster.await_identical(topic)


@pytest.mark.parametrize("kind", PURE)
def test_26_two_acks(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind)
    topic = cluster.new_topic([1, 3])
    assert cluster.produce(topic, [b"both"], acks=2) == (0, 0)
    cluster.kill(3)
    cluster.await_isr(topic, {1})
    eventually("the leader knows", lambda: cluster.produce(topic, [b"x"], acks=-1)[0] == 0)
    assert cluster.produce(topic, [b"one"], acks=2, timeout_ms=500)[0] == TIMED_OUT
    assert b"one" in cluster.read(topic)


@pytest.mark.parametrize("kind", PURE)
def test_27_consumers_stop_at_the_high_watermark(clusters: Clusters, kind: str) -> None:
    cluster = clusters.get(kind, props=PATIENT)
    topic = cluster.new_topic([1, 3])
    cluster.put_records(topic, 10)
    eventually("ten to see", lambda: cluster.end(topic) == 10)
    cluster.pause(3)
    with _Watcher(cluster, topic) as watcher:
        assert cluster.produce(topic, [b"early"] * 5, acks=1)[0] == 0
        # To its follower, and to nobody else, the leader shows what it has.
        seen = cluster.fetch(topic, 10, replica=-2, broker=1)
        assert seen.high_watermark == 10
        for _ in range(20):
            answer = cluster.fetch(topic, 10)
            state = cluster.state(topic)
            assert state is not None
            if state.isr != [1, 3]:
                break
            if answer.high_watermark == 10:
                assert (answer.error, len(answer.message_set)) == (0, 0)
        assert len(cluster.brokers[1].log_bytes(topic, 0)) > 10 * 34
        cluster.await_isr(topic, {1})
        eventually("all to see", lambda: cluster.end(topic) == 15)
        eventually("the watcher sees it", lambda: watcher.values == 15)
    assert not watcher.problems
    cluster.resume(3)
    cluster.await_isr(topic, {1, 3})
    cluster.await_identical(topic)


class _Watcher:
    """A consumer that reads on and on and never may get data at or beyond the high watermark."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.values = 0
        self.problems: list[str] = []

    def __enter__(self) -> _Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            answer = self._cluster.fetch(self._topic, 0, broker=1)
            self.values = len(self._cluster.read(self._topic, broker=1))
            if answer.error:
                self.problems.append(f"error {answer.error}")
