"""What follows when a data directory fails or is full: partitions move, the cluster is told.

0.8.2.2 halts the broker, whatever else it could serve (KafkaStorageException). Here the rest
goes on. An ephemeral node names the partitions that are lost, for which our controllers give
their leaderships to others. A controller that does not (an original one knows nothing of the
node) leaves no choice: the broker halts after all, so that the end of its session moves them.
It also halts when no directory is left. A failed directory comes back with a restart only.

A full one comes back as soon as it has room. Until then the node also names what is in it. Our
controllers take that out of the isr and have others lead it. The broker follows, but fetches
nothing: a replica that has nothing to write at the moment would enter the isr, and the next write
would wait for it. What nobody else can lead stays here, refuses writes and serves reads.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable

from kafka08.common import TopicPartition
from kafka08.log.disk import DiskFailure, has_room, is_failure, is_full
from kafka08.log.manager import LogManager
from kafka08.runtime import Loop, Runtime
from kafka08.server.replica_manager import ReplicaManager
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError

logger = logging.getLogger("kafka.log.LogManager")

# How long a controller may take to move leaderships, once told.
HANDOVER_SECONDS = 15.0
# A disk that was full counts as such until it has this much room.
ROOM_BYTES = 16 << 20
# A disk is full for so long at least. Other shortages are over when none was met for this long.
QUIET_SECONDS = 10.0
# How often a controller is asked again to have others lead what cannot be written here.
ASK_AGAIN_SECONDS = 10.0
_LOOK_SECONDS = 1.0

# Leader and isr of a partition as ZooKeeper has them.
StoredState = Callable[[TopicPartition], tuple[int, tuple[int, ...]] | None]


class _Shortage:
    """Errors of one kind in one directory, from the first one to the end of their cause."""

    __slots__ = ("count", "error", "last", "since")

    def __init__(self, error: OSError, now: float) -> None:
        self.error = error
        self.since = now
        self.last = now
        self.count = 0


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
        self._clock = runtime.clock
        self._shortages: dict[tuple[str, int | None], _Shortage] = {}
        # Partitions that are offline, and those that cannot be written, as ZooKeeper has them.
        self._told: tuple[set[TopicPartition], set[TopicPartition]] = (set(), set())
        self._told_at = 0.0
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
        """I/O errors below data directories. Of a shortage the first is logged, and its end."""
        for directory, error in failures:
            if directory not in self._log_manager.log_dirs:
                continue
            if is_failure(directory, error):
                self._take_offline(directory, error)
            else:
                self._short(directory, error)

    def _short(self, directory: str, error: OSError) -> None:
        now = self._clock.monotonic()
        key = (directory, error.errno)
        shortage = self._shortages.get(key)
        if shortage is None:
            logger.error("I/O error in %s (more of the kind are counted): %s", directory, error)
            shortage = self._shortages[key] = _Shortage(error, now)
            if is_full(error):
                self._log_manager.full_dirs.add(directory)
            self.changed()
        shortage.count += 1
        shortage.last = now

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
        """Name what is offline or cannot be written, for as long as this session lasts."""
        offline, full = self._untold()
        path = znodes.offline_replicas_path(self._replicas.broker_id)
        if offline or full or any(self._told):
            self._zk.delete_if_exists(path)
        if offline or full:
            data = znodes.encode_offline_replicas(offline, full)
            self._zk.create(path, data, ephemeral=True, makepath=True)
        self._told, self._told_at = (offline, full), self._clock.monotonic()

    def _untold(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """What is to be told, as it is now."""
        return set(self._log_manager.offline), self._replicas.on_full_disks()

    def _is_due(self) -> bool:
        if self._told != self._untold():
            return True
        if self._clock.monotonic() < self._told_at + ASK_AGAIN_SECONDS:
            return False
        told = [self._replicas.partitions.get(key) for key in self._told[1]]
        return any(each and each.is_leader and len(each.isr) > 1 for each in told)

    def step(self) -> None:
        """Wait for a change, or look again at what is short; tell it, see it acted upon."""
        self._changed.wait(_LOOK_SECONDS if self._shortages else None)
        self._changed.clear()
        self._end_shortages()
        while self._is_due() and not self._loop.stopping.is_set():
            try:
                self.publish()
            except ZkError as error:
                logger.warning(
                    "Partitions on failed or full disks not told to ZooKeeper yet: %s", error
                )
                self._loop.stopping.wait(_LOOK_SECONDS)
        self._await_handover()

    def _end_shortages(self) -> None:
        for key, shortage in list(self._shortages.items()):
            if self._is_over(key[0], shortage):
                del self._shortages[key]
                if is_full(shortage.error):
                    self._log_manager.full_dirs.discard(key[0])
                logger.info(
                    "No more of this in %s since %d s; %d times in %d s: %s",
                    *(key[0], self._clock.monotonic() - shortage.last, shortage.count),
                    *(shortage.last - shortage.since, shortage.error),
                )

    def _is_over(self, directory: str, shortage: _Shortage) -> bool:
        if directory not in self._log_manager.log_dirs:
            return True
        now = self._clock.monotonic()
        if not is_full(shortage.error):
            return now >= shortage.last + QUIET_SECONDS
        try:
            return now >= shortage.since + QUIET_SECONDS and self._runtime.blocking(
                has_room, directory, ROOM_BYTES
            )
        except OSError:
            return False  # whoever uses the directory will meet it, too

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
