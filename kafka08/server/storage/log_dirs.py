"""Acts on data directories that fail or are full: reports them in ZooKeeper; partitions move.

An ephemeral node names the partitions that are lost, for which our controllers give their
leaderships to others. A controller that does not (an original one knows nothing of the node)
leaves no choice: the broker halts after all, so that the end of its session moves them.

While a directory is full, the node also names what is in it. Our controllers take that out of the
isr and have others lead it. The broker follows, but fetches nothing: a replica that has nothing to
write at the moment would enter the isr, and the next write would wait for it. Partitions that
no other broker can lead stay here, refuse writes and serve reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.common import TopicPartition
from kafka08.log.manager import LogManager
from kafka08.runtime import Loop, Runtime
from kafka08.server.storage.log_dir_failures import LogDirFailures
from kafka08.server.storage.replica_manager import ReplicaManager
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError

logger = logging.getLogger("kafka.log.LogManager")

# How long a controller may take to move leaderships after the report.
HANDOVER_SECONDS = 15.0
# How often the controller is asked again to move the leaderships of partitions that cannot be
# written here.
ASK_AGAIN_SECONDS = 10.0
_LOOK_SECONDS = 1.0

# Leader and isr of a partition as ZooKeeper has them.
StoredState = Callable[[TopicPartition], tuple[int, tuple[int, ...]] | None]


class LogDirs(Loop):
    """The task that writes failed directories to ZooKeeper, and checks that a controller acts on
    them."""

    def __init__(
        self,
        runtime: Runtime,
        zk: ZkClient,
        log_manager: LogManager,
        replicas: ReplicaManager,
        failures: LogDirFailures,
        stored: StoredState,
    ) -> None:
        super().__init__(runtime, "log-dir-failures", self.step)
        self._zk = zk
        self._log_manager = log_manager
        self._replicas = replicas
        self._stored = stored
        self._failures = failures
        self._clock = runtime.clock
        # Partitions that are offline, and those that cannot be written, as ZooKeeper has them.
        self._told: tuple[set[TopicPartition], set[TopicPartition]] = (set(), set())
        self._told_at = 0.0

    def stop(self, timeout: float | None = None) -> bool:
        self.stopping.set()
        self._failures.changed.set()
        return super().stop(timeout)

    def publish(self) -> None:
        """Write the node that names partitions that are offline or cannot be written; it ends with
        the session."""
        offline, full = self._untold()
        path = znodes.offline_replicas_path(self._replicas.broker_id)
        if offline or full or any(self._told):
            self._zk.delete_if_exists(path)
        if offline or full:
            data = znodes.encode_offline_replicas(offline, full)
            self._zk.create(path, data, ephemeral=True, makepath=True)
        self._told, self._told_at = (offline, full), self._clock.monotonic()

    def _untold(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """The partitions to name in ZooKeeper now: lost ones, and those on full disks."""
        return set(self._log_manager.offline), self._replicas.on_full_disks()

    def _is_due(self) -> bool:
        if self._told != self._untold():
            return True
        if self._clock.monotonic() < self._told_at + ASK_AGAIN_SECONDS:
            return False
        told = [self._replicas.partitions.get(key) for key in self._told[1]]
        return any(each and each.is_leader and len(each.isr) > 1 for each in told)

    def step(self) -> None:
        """Wait for a change, or check full directories; report to ZooKeeper, check the effect."""
        failures = self._failures
        failures.changed.wait(_LOOK_SECONDS if failures.has_shortages else None)
        failures.changed.clear()
        failures.end_shortages()
        while self._is_due() and not self.stopping.is_set():
            try:
                self.publish()
            except ZkError as error:
                logger.warning(
                    "Partitions on failed or full disks not reported to ZooKeeper yet: %s", error
                )
                self.stopping.wait(_LOOK_SECONDS)
        self._await_handover()

    def _await_handover(self) -> None:
        lost, clock = self._failures.lost_leaderships, self._clock
        deadline = clock.monotonic() + HANDOVER_SECONDS
        while lost and not self.stopping.wait(_LOOK_SECONDS):
            try:
                for key in list(lost):
                    if not self._could_be_led_elsewhere(key):
                        lost.discard(key)
            except ZkError as error:
                # Without ZooKeeper no controller can act, and our own session may end.
                logger.warning("Cannot see who leads: %s", error)
                deadline = clock.monotonic() + HANDOVER_SECONDS
            if lost and clock.monotonic() >= deadline:
                self._failures.halt(f"The controller leaves {len(lost)} lost partitions with us")

    def _could_be_led_elsewhere(self, key: TopicPartition) -> bool:
        stored = self._stored(key)
        if stored is None:
            return False
        leader, isr = stored
        me = self._replicas.broker_id
        return leader == me and any(broker_id != me for broker_id in isr)
