"""The one task that writes isr changes to ZooKeeper for the partitions led here.

Requests never wait for it: they say that a follower has caught up, and a timer says that some
may have fallen behind. Each change is proposed by the partition, written on condition that the
state node is as the leader knows it, and only then committed; in between both the old and the
new members hold the high watermark back. A write whose result a broken connection hid is
resolved by reading the node again. Written changes are announced (``isr_changes``). Mirrors
Partition.maybeExpandIsr and maybeShrinkIsr.
"""

from __future__ import annotations

import logging

from kafka08.cluster.partition import IsrChange, Partition
from kafka08.metrics.meters import Meter
from kafka08.runtime import Empty, Loop, Runtime
from kafka08.server.replication.isr_changes import IsrChanges
from kafka08.server.requests.effects import Effects
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.settings.broker import BrokerConfig
from zk import znodes
from zk.client import ZkClient
from zk.errors import NoNodeError, ZkClosedError, ZkError
from zk.znodes import PartitionStateNode

logger = logging.getLogger("kafka.cluster.Partition")

_WAKE_SECONDS = 1.0


class IsrMaintenance(Loop):
    """Owner of every isr change of this broker; acts on ``Effects.isr_may_change``."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        zk: ZkClient,
        replicas: ReplicaManager,
        effects: Effects,
    ) -> None:
        super().__init__(runtime, "isr-maintenance", self.step)
        self._max_lag_seconds = config.replica_lag_time_max_ms / 1000
        self._max_lag_messages = config.replica_lag_max_messages
        self._broker_id = config.broker_id
        self._clock = runtime.clock
        self._zk = zk
        self._replicas = replicas
        self._effects = effects
        self._changes = IsrChanges(zk)
        self.shrinks = Meter()
        self.expands = Meter()

    def stop(self, timeout: float | None = None) -> bool:
        self.stopping.set()
        self._effects.stop_isr_changes()
        return super().stop(timeout)

    def maybe_shrink_isr(self) -> None:
        """Find isr members that are silent or too far behind; the timer calls this."""
        for partition in self._replicas.led_with_followers():
            if partition.shrunk_isr(*self._lag_limits()):
                self._effects.isr_may_change(partition)

    def step(self) -> None:
        """Take one partition from the queue and change its isr if it still should; announce
        what has changed when the queue is empty."""
        try:
            partition = self._effects.take_isr_change(_WAKE_SECONDS)
        except Empty:
            self._changes.announce()
            return
        if partition is None:
            return
        self._change("Shrinking", partition, partition.shrunk_isr(*self._lag_limits()))
        self._change("Expanding", partition, partition.expanded_isr(*self._lag_limits()))
        if not self._effects.has_isr_changes:
            self._changes.announce()

    def _lag_limits(self) -> tuple[float, float, int]:
        """Now, and how far behind that or the log's end an isr member may be."""
        return self._clock.monotonic(), self._max_lag_seconds, self._max_lag_messages

    def _change(self, doing: str, partition: Partition, isr: tuple[int, ...] | None) -> None:
        """Write the change, if there is one, and try again until its outcome is known or the role
        has changed."""
        if not isr:
            return
        logger.info(
            "Partition %s on broker %d: %s ISR for partition %s from %s to %s",
            partition.topic_partition, self._broker_id, doing, partition.topic_partition,
            ",".join(map(str, partition.isr)), ",".join(map(str, isr)),
        )  # fmt: skip
        change = partition.propose_isr(isr)
        while partition.pending_isr is change and not self.stopping.is_set():
            try:
                moved = self._write(partition, change)
            except ZkClosedError:
                return
            except ZkError as error:
                logger.warning("Isr of %s not written: %s", partition.topic_partition, error)
                self.stopping.wait(_WAKE_SECONDS)
                continue
            except znodes.MalformedNodeError as error:
                # The node was written by hand; only the controller can repair it.
                logger.error("Isr of %s not changed: %s", partition.topic_partition, error)
                moved = partition.abandon_isr(change)
            if moved:
                self._replicas.unblock_delayed_requests(partition.topic_partition)
            return

    def _write(self, partition: Partition, change: IsrChange) -> bool:
        """One try; True if the high watermark moved."""
        path = znodes.partition_state_path(*partition.topic_partition)
        node = PartitionStateNode(
            self._broker_id, change.leader_epoch, change.controller_epoch, change.isr
        )

        def same(stored: bytes) -> bool:
            return znodes.decode_partition_state(path, stored) == node

        written, version = self._zk.conditional_set(
            path, znodes.encode_partition_state(node), change.zk_version, same
        )
        if written:
            grew = len(change.isr) > len(partition.isr)
            (self.expands if grew else self.shrinks).mark()
            if self._changes.add(partition.topic_partition):
                self._changes.announce()
            return partition.commit_isr(change, version)
        return self._adopt(partition, change, path)

    def _adopt(self, partition: Partition, change: IsrChange, path: str) -> bool:
        """Another version is stored: take it over if it is of our own leadership.

        A higher leader epoch means that a LeaderAndIsr is on its way. Until it comes the change
        stays open: an earlier try may have got through before the controller built its state on
        it, so both sets go on holding the high watermark back (0.8.2.2 keeps a stale
        version without end, KAFKA-2729).
        """
        try:
            stored, stat = self._zk.get(path)
        except NoNodeError:
            return partition.abandon_isr(change)
        node = znodes.decode_partition_state(path, stored)
        if (node.leader, node.leader_epoch) == (self._broker_id, change.leader_epoch):
            return partition.abandon_isr(change, node.isr, stat.version)
        return False
