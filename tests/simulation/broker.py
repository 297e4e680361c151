"""A broker of a simulated cluster: the whole ``KafkaServer``, its machine's clock and its disk.

It can stop, be killed, at once or at one of its next changes of files, and start again.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

from kafka08.errors import KafkaError
from kafka08.log import directory as log_directory
from kafka08.log.disk import is_shortage
from kafka08.log.manager import LogManager
from kafka08.runtime import Runtime
from kafka08.server.broker import KafkaServer
from kafka08.server.monitoring.monitoring import Monitoring
from kafka08.server.part import Part
from kafka08.server.requests.listeners import Listening
from kafka08.server.rooms import Rooms
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.settings.broker import BrokerConfig
from tests.log.faulty_files import Crash
from tests.simulation.disk import BrokerDisk
from tests.simulation.network import SimulatedNetwork
from tests.simulation.runtime import SimulatedClock, SimulatedRuntime
from tests.simulation.scheduler import ProcessKilled, Scheduler, SimulatedTask, TaskFailed
from tests.simulation.server import SimulatedListening
from tests.simulation.sessions import SimulatedSessions
from zk.access import NodeAccess
from zk.client import ZkClient

PORT = 9092


class Surroundings(NamedTuple):
    """The parts of the world that a broker is in."""

    scheduler: Scheduler
    network: SimulatedNetwork
    sessions: SimulatedSessions


class Witness(Protocol):
    """Is told what a broker has before its process is killed, and what it has afterwards."""

    def dies(self, broker: SimulatedBroker) -> None:
        """It is about to be killed."""

    def has_loaded(self, broker: SimulatedBroker, manager: LogManager) -> None:
        """A process of it has loaded its logs."""


class LoadedServer(KafkaServer):
    """Shows its logs once they are loaded, and its rooms once they are built. ``halt`` ends the
    process, ``has_loaded`` is told of the logs."""

    log_manager: LogManager | None = None
    rooms: Rooms | None = None

    def __init__(
        self, halt: Callable[[str], None], has_loaded: Callable[[LogManager], object], *args: Any
    ) -> None:
        super().__init__(*args)
        self._halt = halt
        self._has_loaded = has_loaded

    def _load_logs(self, zk: ZkClient, monitoring: Monitoring) -> LogManager:
        self.log_manager = super()._load_logs(zk, monitoring)
        self._has_loaded(self.log_manager)
        return self.log_manager

    def _parts(self, rooms: Rooms, zk: ZkClient, monitoring: Monitoring) -> Iterator[Part]:
        self.rooms = rooms
        rooms.storage.failures.halt = self._halt
        return super()._parts(rooms, zk, monitoring)


class SimulatedBroker:
    """Broker ``broker_id`` on the host ``brokerN``, with an empty disk; not started.

    ``has_started``: its start is over, and no end has begun to show. ``is_ending``: it was told to
    stop, or was killed and is not buried yet.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        broker_id: int,
        disk: BrokerDisk,
        clock: SimulatedClock,
        settings: Mapping[str, str],
        witness: Witness,
    ) -> None:
        self.id = broker_id
        self.host = f"broker{broker_id}"
        self.clock = clock
        self.disk = disk
        self.disk.crashed = self.kill
        self.has_started = False
        self.is_ending = False
        self.is_gone = False
        self._lost_power = False
        self.config = BrokerConfig.from_properties(
            {
                "broker.id": str(broker_id),
                "host.name": self.host,
                "port": str(PORT),
                "log.dirs": ",".join(disk.directories),
                "zookeeper.connect": "zookeeper:2181",
                **settings,
            }
        )
        self._surroundings = surroundings
        self._witness = witness
        self.runtime = self._new_runtime()
        self._server: LoadedServer | None = None

    def _new_runtime(self) -> SimulatedRuntime:
        scheduler, network, _ = self._surroundings
        runtime = SimulatedRuntime(scheduler, network, self.host, self.clock, self.disk.waited)
        runtime.process.failed = self._failed
        return runtime

    def _failed(self, task: SimulatedTask, error: BaseException) -> None:
        if not isinstance(error, Crash):  # after which the disk has killed the broker
            raise TaskFailed(f"{task} failed: {error!r}") from error

    @property
    def is_running(self) -> bool:
        """It has begun to start, and has not ended."""
        return self._server is not None

    @property
    def log_manager(self) -> LogManager:
        """The logs of a broker that has started."""
        assert self._server is not None and self._server.log_manager is not None
        return self._server.log_manager

    @property
    def has_lost_a_directory(self) -> bool:
        """A directory has failed, which is not used again before the next start."""
        return self.has_started and len(self.log_manager.log_dirs) < len(self.disk.directories)

    @property
    def rooms(self) -> Rooms | None:
        """The rooms of the process that runs, once they are built."""
        return None if self._server is None else self._server.rooms

    @property
    def replicas(self) -> ReplicaManager | None:
        """The partitions of the process that runs."""
        return None if self.rooms is None else self.rooms.storage.replicas

    # Start

    def start(self) -> None:
        """Begin to start."""
        assert self._server is None, f"{self.host} runs"
        assert not self.is_gone
        self.runtime = self._new_runtime()
        has_loaded = partial(self._witness.has_loaded, self)
        self._server = LoadedServer(
            self._halt, has_loaded, self.config, self.runtime, self._listen, self._connect
        )
        self.runtime.spawn("main", self._start, self._server)

    def _start(self, server: LoadedServer) -> None:
        try:
            server.start()
        except (KafkaError, OSError) as error:
            assert not is_shortage(error), f"{self.host} needs space to start: {error!r}"
            self._halt(f"cannot start: {error!r}")
        self.has_started = True
        self._surroundings.scheduler.note("has started")

    def _listen(self, config: BrokerConfig, _: Runtime) -> Listening:
        return SimulatedListening(self._surroundings.network, config, self.runtime)

    def _connect(self, config: BrokerConfig, _: NodeAccess) -> ZkClient:
        sessions = self._surroundings.sessions
        return sessions.connect(self.runtime, config.zookeeper_session_timeout_ms)

    # End

    def _halt(self, reason: str) -> None:
        """It ends its process by itself."""
        self._surroundings.scheduler.note(f"halts: {reason}")
        self.kill()
        raise ProcessKilled

    def stop(self) -> SimulatedTask:
        """Begin to stop cleanly; the task ends when that is over."""
        assert self.has_started and self._server is not None and not self.is_ending
        self.is_ending = True
        return self.runtime.spawn("stop", self._stop, self._server)

    def _stop(self, server: LoadedServer) -> None:
        server.shutdown()
        self._surroundings.scheduler.note("has stopped")
        self._is_gone()

    def _is_gone(self) -> None:
        self.has_started = self.is_ending = False
        self._server = None

    def kill(self, *, silently: bool = False) -> None:
        """End its process at once, if it runs; with its machine if ``silently``, so that nobody is
        told."""
        if self._server is None or self.runtime.is_dead:
            return
        self.disk.dead = False  # it may have been the one that died: what it has is read once more
        self._witness.dies(self)
        scheduler, network, sessions = self._surroundings
        self.disk.dead = self.is_ending = True
        if self.runtime.process.held is not None:
            sessions.ensemble.heal(self.host)
        self.runtime.kill()
        network.died(self.runtime, silently=silently)
        sessions.died(self.runtime)
        scheduler.after(0, self._bury)

    def power_cut(self) -> None:
        """Its machine is off at once, and what was not synced may be lost."""
        if self._server is None:
            self.disk.revive(power_cut=True)
        else:
            self._lost_power = True
            self.kill(silently=True)

    def leave(self) -> None:
        """Its machine is lost, and it never comes back."""
        self.kill(silently=True)
        self.is_gone = True

    def pause(self) -> None:
        """Its process stands still until ``resume``, while the world goes on."""
        self.runtime.process.pause()
        self._surroundings.sessions.ensemble.cut(self.host)

    def resume(self) -> None:
        self.runtime.process.resume()
        self._surroundings.sessions.ensemble.heal(self.host)

    def kill_at(self, changes: int) -> None:
        """Kill it at one of its next changes of files."""
        self.disk.crash_at = self.disk.calls + changes

    def _bury(self) -> None:
        """All its tasks were unwound."""
        if self._server is not None and self._server.log_manager is not None:
            self._server.log_manager._unlock()
        # It may have died before it showed its logs.
        log_directory._owned.difference_update(map(os.path.realpath, self.disk.directories))
        self.disk.close_all(log_directory.LOCK_FILE)
        self._is_gone()
        gc.collect()  # closes its files: a long run would have too many
        self.disk.revive(power_cut=self._lost_power)
        self._lost_power = False
