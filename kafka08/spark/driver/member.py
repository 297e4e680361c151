"""The driver as a member of a consumer group: owns partitions, stores offsets, fetches nothing.

Mirrors the membership of ZookeeperConsumerConnector. Before partitions are released, it waits for
the batches that read them (for a bounded time) and commits their offsets. Does not use Spark: the
caller plans and completes batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from kafka08.client.cluster import Endpoint
from kafka08.client.security import runtime_for
from kafka08.common import TopicPartition
from kafka08.consumer.assignors import Assignment, assignor_for, thread_ids
from kafka08.consumer.config import SMALLEST, ConsumerConfig
from kafka08.consumer.connector import generate_consumer_id
from kafka08.consumer.errors import PartitionOwnedError
from kafka08.consumer.group import GroupNodes, GroupView, share_of, zookeeper_session
from kafka08.consumer.offset_store import OffsetStore
from kafka08.errors import KafkaError
from kafka08.runtime import Loop, Runtime
from kafka08.spark.driver.progress import BatchProgress
from kafka08.spark.offsets import LogOffsetReader
from kafka08.spark.planner import Range
from zk.client import SessionState
from zk.znodes import STATIC, ConsumerRegistration

logger = logging.getLogger("kafka08.spark.member")

POLL_S = 0.5


class DriverMember:
    """Joins on ``start``. ``alive``: whether the batches go on; the member leaves when not.

    ``offsets`` makes an LogOffsetReader of the brokers given. Without ``zk``, a started client, it
    connects by itself and raises ZkConnectionError when that fails. Safe for concurrent use.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        topics: Mapping[str, int],
        *,
        alive: Callable[[], bool],
        offsets: Callable[[Iterable[Endpoint]], AbstractContextManager[LogOffsetReader]],
        zk: Any = None,
        runtime: Runtime | None = None,
    ) -> None:
        self._config = config
        self._runtime = runtime or runtime_for(config)
        self._alive = alive
        self._offsets = offsets
        self._topics = dict(topics)
        self.consumer_id = generate_consumer_id(config, self._runtime.clock.millis())
        self._lock = self._runtime.lock()
        self._changed = self._runtime.event()
        self._idle = self._runtime.event()
        self._stopping = self._runtime.event()
        self._session_lost = False
        self._zk = zk or zookeeper_session(config, self._runtime)
        member = config.group_id, self.consumer_id
        self._group = GroupNodes(
            self._zk, *member, self._on_change, protocol=config.security_protocol
        )
        brokers = self._group.brokers
        self._store = OffsetStore(
            config, self._zk, brokers, stopping=self._stopping, runtime=self._runtime
        )
        self._assign = assignor_for(config.partition_assignment_strategy)
        self._threads = dict.fromkeys(thread_ids(self.consumer_id, max(topics.values())))
        self._view: GroupView | None = None
        self._claimed: Assignment = {}
        self._progress = BatchProgress({})
        self._paused = True
        self._recovered: dict[int, Sequence[Range]] = {}
        self._submitted: set[int] = set()
        self._worker = Loop(self._runtime, f"{self.consumer_id}_member", self._work)
        self._drain_s = config.rebalance_backoff_ms * max(config.rebalance_max_retries - 1, 1) / 1e3

    # --- batches

    def positions(self) -> tuple[object, dict[TopicPartition, int]]:
        """The offsets for the next batch, and a token for ``plan``; empty during a rebalance."""
        with self._lock:
            return self._progress, {} if self._paused else dict(self._progress.position)

    def plan(self, token: object, batch_ms: int, ranges: Sequence[Range]) -> bool:
        """A batch takes these ranges; False when the group was rebalanced meanwhile."""
        with self._lock:
            if self._paused or token is not self._progress:
                return False
            self._progress.plan(batch_ms, ranges)
            return True

    def recovered(self, batch_ms: int, ranges: Sequence[Range]) -> None:
        """A batch of an earlier run runs again, whichever member owns its partitions."""
        with self._lock:
            self._recovered[batch_ms] = ranges
            if not self._paused:
                self._progress.plan(batch_ms, ranges)

    def submitted(self, batch_ms: int) -> None:
        with self._lock:
            self._progress.submitted(batch_ms)
            if batch_ms in self._recovered:
                self._submitted.add(batch_ms)

    def completed(self, batch_ms: int, ok: bool) -> None:
        """A batch ended: commit the offsets that are safe."""
        with self._lock:
            self._recovered.pop(batch_ms, None)
            self._submitted.discard(batch_ms)
            if self._progress.complete(batch_ms, ok):
                self._commit()
            elif not ok:
                logger.warning(
                    "Batch %d failed: offsets stay where they are, and it will be read again "
                    "after a restart or a rebalance",
                    batch_ms,
                )
            if not self._progress.running:
                self._idle.set()

    def _commit(self) -> None:
        try:
            self._store.commit(self._progress.committed)
        except Exception as error:
            logger.warning("Offsets were not committed, the next batch will try again: %s", error)

    # --- membership

    def start(self) -> DriverMember:
        """Join in the background."""
        self._zk.on_state(self._on_state)
        self._changed.set()
        self._worker.start()
        return self

    def _on_change(self, event: object) -> None:
        self._changed.set()

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._session_lost = True
            self._changed.set()

    def _work(self) -> None:
        self._changed.wait(POLL_S)
        if not self._alive():
            self._leave()
            return
        if not self._changed.is_set():
            return
        self._changed.clear()
        try:
            self._join()
            self._rebalance()
            return
        except PartitionOwnedError as error:
            logger.info("%s; trying again", error)
        except Exception:
            logger.exception("%s could not claim its partitions", self.consumer_id)
        # That an owner has released its partition is a change too, and most do so in some ms.
        self._changed.wait(self._config.rebalance_backoff_ms / 1000)
        self._changed.set()

    def _join(self) -> None:
        self._store.connect()
        if self._session_lost:
            # Another member may own these partitions by now: do not commit their offsets.
            self._session_lost = False
            self._forget()
        if not self._group.is_registered():
            now = str(self._runtime.clock.millis())
            self._group.register(ConsumerRegistration(self._topics, STATIC, now), self._stopping)

    def _rebalance(self) -> None:
        view = self._group.view()
        if view == self._view and self._group.owns(self._claimed):
            return
        self._drain()
        self._group.release(self._claimed)
        self._forget()
        share = share_of(self._threads, self._assign(view.consumers, view.partitions))
        stored = self._store.fetch(share)
        if stored is None:
            return
        self._group.claim(share)
        self._claimed = share
        positions = self._starting(stored)
        with self._lock:
            self._progress = BatchProgress(positions)
            for batch_ms, ranges in sorted(self._recovered.items()):
                self._progress.plan(batch_ms, ranges)
                if batch_ms in self._submitted:
                    self._progress.submitted(batch_ms)
            self._view = view
            self._paused = False
        logger.info(
            "%s selected partitions : %s",
            self.consumer_id,
            ", ".join(f"{tp} from {offset}" for tp, offset in sorted(positions.items())),
        )

    def _starting(self, stored: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Stored offsets; by ``auto.offset.reset`` if there is none or it is not in the log."""
        if not stored:
            return {}
        with self._offsets(self.brokers()) as reader:
            low, high = reader.earliest(stored), reader.ends(stored)
            smallest = self._config.auto_offset_reset == SMALLEST
            reset = low if smallest else reader.latest(stored)
        for tp, offset in stored.items():
            if offset >= 0 and not low[tp] <= offset <= high[tp]:
                logger.error(
                    "Current offset %d for partition %s out of range; reset offset to %d",
                    offset,
                    tp,
                    reset[tp],
                )
        return {
            tp: offset if low[tp] <= offset <= high[tp] else reset[tp]
            for tp, offset in stored.items()
        }

    def _drain(self) -> None:
        """Stop planning, wait for running batches, commit."""
        with self._lock:
            self._paused = True
            self._idle.clear()
            running = self._progress.running
        if running and not self._idle.wait(self._drain_s):
            logger.warning(
                "Batches still run after %.1f s: their partitions are released, and what they "
                "read will be read again",
                self._drain_s,
            )
        with self._lock:
            self._commit()

    def _forget(self) -> None:
        with self._lock:
            self._paused = True
            self._progress = BatchProgress({})
            self._claimed = {}
            self._view = None

    def brokers(self) -> list[Endpoint]:
        """Where the live brokers are. Raises what ZooKeeper's client raises."""
        return [(broker.host, broker.port) for broker in self._group.brokers()]

    # --- the end

    def _leave(self) -> None:
        self._worker.stopping.set()
        self._stopping.set()
        with self._lock:
            self._paused = True
            if not self._session_lost:
                self._commit()
        self._group.forget_watches()
        self._store.close()
        self._zk.close()
        logger.info("%s left the group", self.consumer_id)

    def stop(self) -> None:
        """Leave the group: commit what is done, end the session. Not for callbacks."""
        self._worker.stopping.set()
        self._changed.set()  # it may be waiting for another member
        if self._worker.stop() and not self._stopping.is_set():
            self._leave()


def check_topics(topics: Mapping[str, int]) -> None:
    """Raises KafkaError for a number of threads below 1, or no topic."""
    if not topics or any(threads < 1 for threads in topics.values()):
        raise KafkaError(f"Topics need at least one thread each: {dict(topics)}")
