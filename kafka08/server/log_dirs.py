"""What follows when a data directory fails: its partitions go offline, the cluster is told.

0.8.2.2 halts the broker, whatever else it could serve (KafkaStorageException). Here the rest
goes on: the partitions lost are named in an ephemeral node, for which our controllers give
their leaderships to others. A controller that does not (an original one knows nothing of the
node) leaves no choice: the broker halts after all, so that the end of its session moves them.
It also halts when no directory is left. A directory comes back with a restart only.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable

from kafka08.common import TopicPartition
from kafka08.log.disk import DiskFailure, is_failure
from kafka08.log.manager import LogManager
from kafka08.runtime import Loop, Runtime
from kafka08.server.replica_manager import ReplicaManager
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError

logger = logging.getLogger("kafka.log.LogManager")

# How long a controller may take to move leaderships, once told.
HANDOVER_SECONDS = 15.0
_LOOK_SECONDS = 1.0

# Leader and isr of a partition as ZooKeeper has them.
StoredState = Callable[[TopicPartition], tuple[int, tuple[int, ...]] | None]


class LogDirs:
    """``report`` takes failures, on the event loop; one task tells ZooKeeper and the fate."""

    def __init__(
        self,
        runtime: Runtime,
        zk: ZkClient,
        log_manager: LogManager,
        replicas: ReplicaManager,
        stored: StoredState,
        halt: Callable[[str], None] | None = None,
    ) -> None:
        self._runtime = runtime
        self._zk = zk
        self._log_manager = log_manager
        self._replicas = replicas
        self._stored = stored
        self._halt = halt or _halt
        self._told: set[TopicPartition] = set()
        self._led: set[TopicPartition] = set()  # lost as leader, not yet seen with another one
        self._changed = runtime.event()
        self._loop = Loop(runtime, "log-dir-failures", self.step)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stopping.set()
        self._changed.set()
        self._loop.stop()

    def report(self, failures: Iterable[DiskFailure]) -> None:
        """I/O errors below data directories; shortages are but logged."""
        for directory, error in failures:
            if directory not in self._log_manager.log_dirs:
                continue
            if is_failure(directory, error):
                self._take_offline(directory, error)
            else:
                logger.error("I/O error in %s: %s", directory, error)

    def _take_offline(self, directory: str, error: OSError) -> None:
        partitions = self._log_manager.take_offline(directory)
        logger.critical(
            "The data directory %s has failed, and with it %d partitions: %s",
            *(directory, len(partitions), error),
        )
        self._led.update(self._replicas.take_offline(partitions))
        if not self._log_manager.log_dirs:
            self._halt("No data directory is left")
        self.changed()

    def changed(self) -> None:
        """There are more partitions that this broker cannot serve."""
        self._changed.set()

    def publish(self) -> None:
        """Name the partitions that are offline, for as long as this session lasts."""
        offline = set(self._log_manager.offline)
        if offline:
            path = znodes.offline_replicas_path(self._replicas.broker_id)
            self._zk.delete_if_exists(path)
            data = znodes.encode_offline_replicas(offline)
            self._zk.create(path, data, ephemeral=True, makepath=True)
            self._told = offline

    def step(self) -> None:
        """Wait for a change, tell it, see it acted upon."""
        self._changed.wait()
        self._changed.clear()
        while self._told != self._log_manager.offline and not self._loop.stopping.is_set():
            try:
                self.publish()
            except ZkError as error:
                logger.warning("Failed partitions not told to ZooKeeper yet: %s", error)
                self._loop.stopping.wait(_LOOK_SECONDS)
        self._await_handover()

    def _await_handover(self) -> None:
        deadline = self._runtime.clock.monotonic() + HANDOVER_SECONDS
        while self._led and not self._loop.stopping.wait(_LOOK_SECONDS):
            try:
                self._led = {key for key in self._led if self._could_be_led_elsewhere(key)}
            except ZkError as error:
                # Without ZooKeeper nobody can act; our session is at stake as well.
                logger.warning("Cannot see who leads: %s", error)
                deadline = self._runtime.clock.monotonic() + HANDOVER_SECONDS
            if self._led and self._runtime.clock.monotonic() >= deadline:
                self._halt(f"The controller leaves {len(self._led)} lost partitions with us")

    def _could_be_led_elsewhere(self, key: TopicPartition) -> bool:
        stored = self._stored(key)
        if stored is None:
            return False
        leader, isr = stored
        me = self._replicas.broker_id
        return leader == me and any(broker_id != me for broker_id in isr)


def _halt(reason: str) -> None:
    """As Runtime.halt: no clean-up could be relied on."""
    logger.critical("Halting: %s", reason)
    for handler in logging.getLogger().handlers:
        handler.flush()
    sys.stdout.flush()
    os._exit(1)
