"""A broker of a simulated cluster: the whole ``KafkaServer``, its machine's clock and its disk.

It can stop, be killed, at once or at one of its next changes of files, and start again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kafka08.log.manager import LogManager
from kafka08.runtime import Runtime
from kafka08.server.broker import KafkaServer
from kafka08.server.monitoring.monitoring import Monitoring
from kafka08.server.part import Part
from kafka08.server.requests.listeners import Listening
from kafka08.server.rooms import Rooms
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.settings.broker import BrokerConfig
from tests.log.faulty_files import Crash, FaultyFiles
from tests.simulation.network import SimulatedNetwork
from tests.simulation.runtime import SimulatedClock, SimulatedRuntime
from tests.simulation.scheduler import Scheduler, SimulatedTask, TaskFailed
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


class BrokerDisk(FaultyFiles):
    """The files of one broker. ``crashed`` is called when its process dies at one of its calls."""

    crashed: Callable[[], object] | None = None

    def _step(self) -> None:
        try:
            super()._step()
        except Crash:
            if self.crashed is not None:
                self.crashed()
            raise


class LoadedServer(KafkaServer):
    """Shows its logs once they are loaded, and its rooms once they are built."""

    log_manager: LogManager | None = None
    rooms: Rooms | None = None

    def _load_logs(self, zk: ZkClient, monitoring: Monitoring) -> LogManager:
        self.log_manager = super()._load_logs(zk, monitoring)
        return self.log_manager

    def _parts(self, rooms: Rooms, zk: ZkClient, monitoring: Monitoring) -> Iterator[Part]:
        self.rooms = rooms
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
    ) -> None:
        self.id = broker_id
        self.host = f"broker{broker_id}"
        self.clock = clock
        self.disk = disk
        self.disk.crashed = self.kill
        self.has_started = False
        self.is_ending = False
        self.config = BrokerConfig.from_properties(
            {
                "broker.id": str(broker_id),
                "host.name": self.host,
                "port": str(PORT),
                "log.dirs": f"{disk.root}/data",
                "zookeeper.connect": "zookeeper:2181",
                **settings,
            }
        )
        self._surroundings = surroundings
        self.runtime = self._new_runtime()
        self._server: LoadedServer | None = None

    def _new_runtime(self) -> SimulatedRuntime:
        scheduler, network, _ = self._surroundings
        runtime = SimulatedRuntime(scheduler, network, self.host, self.clock)
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
        self.runtime = self._new_runtime()
        self._server = LoadedServer(self.config, self.runtime, self._listen, self._connect)
        self.runtime.spawn("main", self._start, self._server)

    def _start(self, server: LoadedServer) -> None:
        server.start()
        self.has_started = True
        self._surroundings.scheduler.note("has started")

    def _listen(self, config: BrokerConfig, _: Runtime) -> Listening:
        return SimulatedListening(self._surroundings.network, config, self.runtime)

    def _connect(self, config: BrokerConfig, _: NodeAccess) -> ZkClient:
        sessions = self._surroundings.sessions
        return sessions.connect(self.runtime, config.zookeeper_session_timeout_ms)

    # End

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

    def kill(self) -> None:
        """End its process at once, if it runs."""
        if self._server is None or self.runtime.is_dead:
            return
        scheduler, network, sessions = self._surroundings
        self.disk.dead = self.is_ending = True
        self.runtime.kill()
        network.died(self.runtime)
        sessions.died(self.runtime)
        scheduler.after(0, self._bury)

    def kill_at(self, changes: int) -> None:
        """Kill it at one of its next changes of files."""
        self.disk.crash_at = self.disk.calls + changes

    def _bury(self) -> None:
        """All its tasks were unwound."""
        if self._server is not None and self._server.log_manager is not None:
            self._server.log_manager._unlock()
        self._is_gone()
        self.disk.revive(power_cut=False)
