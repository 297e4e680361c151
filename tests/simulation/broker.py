"""A broker of a simulated cluster: the whole ``KafkaServer``, its machine's clock and its disk.

It can stop, be killed, at once or at one of its next changes of files, and start again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from kafka08.log.manager import LogManager
from kafka08.runtime import Runtime
from kafka08.server.broker import KafkaServer
from kafka08.server.monitoring.monitoring import Monitoring
from kafka08.server.requests.listeners import Listening
from kafka08.settings.broker import BrokerConfig
from tests.log.faulty_files import Crash, FaultyFiles
from tests.simulation.runtime import SimulatedClock, SimulatedRuntime
from tests.simulation.scheduler import Task, TaskFailed
from tests.simulation.server import SimulatedListening
from tests.simulation.sessions import SessionOf
from zk.access import NodeAccess

if TYPE_CHECKING:
    from tests.simulation.world import World

PORT = 9092
logger = logging.getLogger("simulation")


class Disk(FaultyFiles):
    """The files of one broker, whose process dies with a crash."""

    broker: SimulatedBroker | None = None

    def _step(self) -> None:
        try:
            super()._step()
        except Crash:
            if self.broker is not None:
                self.broker.kill()
            raise


class Server(KafkaServer):
    """Tells the logs that it has loaded."""

    log_manager: LogManager | None = None

    def _load_logs(self, zk: Any, monitoring: Monitoring) -> LogManager:
        self.log_manager = super()._load_logs(zk, monitoring)
        return self.log_manager


class SimulatedBroker:
    """Broker ``broker_id`` of the world, on the host ``brokerN``. ``deaths``: how often it was
    killed. ``starts``: how often it was started."""

    def __init__(self, world: World, broker_id: int, settings: dict[str, str]) -> None:
        self.id = broker_id
        self.host = f"broker{broker_id}"
        self.world = world
        self.clock = SimulatedClock(world.scheduler)
        self.disk: Disk = world.disk(self)
        self.starts = 0
        self.deaths = 0
        self.has_started = False
        self.config = BrokerConfig.from_properties(
            {
                "broker.id": str(broker_id),
                "host.name": self.host,
                "port": str(PORT),
                "log.dirs": f"{self.disk.root}/data",
                "zookeeper.connect": "zookeeper:2181",
                **settings,
            }
        )
        self.runtime = self._new_runtime()
        self.server: Server | None = None
        self.session: SessionOf | None = None

    def _new_runtime(self) -> SimulatedRuntime:
        runtime = SimulatedRuntime(self.world.scheduler, self.world.network, self.host, self.clock)
        runtime.process.failed = self._failed
        return runtime

    @property
    def is_running(self) -> bool:
        return self.server is not None

    def start(self) -> None:
        """Begin to start; ``has_started`` when it is over."""
        assert self.server is None, f"{self.host} runs"
        self.runtime = self._new_runtime()
        self.starts += 1
        self.server = Server(self.config, self.runtime, self._listen, self._connect)
        self.runtime.spawn("main", self._start, self.server)

    def _start(self, server: Server) -> None:
        server.start()
        self.has_started = True
        self.world.scheduler.note("has started")

    def _listen(self, config: BrokerConfig, runtime: Runtime) -> Listening:
        return SimulatedListening(self.world.network, config, self.runtime)

    def _connect(self, config: BrokerConfig, access: NodeAccess) -> Any:
        self.session = SessionOf(self.runtime, self.world.zookeeper)
        return self.session

    def _failed(self, task: Task, error: BaseException) -> None:
        if isinstance(error, Crash):
            return  # the disk has killed the broker
        raise TaskFailed(f"{task} failed: {error!r}") from error

    def stop(self) -> Task:
        """Begin to stop cleanly; the task ends when that is over."""
        assert self.has_started and self.server is not None
        return self.runtime.spawn("stop", self._stop, self.server)

    def _stop(self, server: Server) -> None:
        server.shutdown()
        self.world.scheduler.note("has stopped")
        self.has_started = False
        self.server = self.session = None

    def kill(self) -> None:
        """End its process at once."""
        if self.server is None:
            return
        self.disk.dead = True
        self.deaths += 1
        self.runtime.kill()
        self.world.network.died(self.runtime)
        if self.session is not None:
            self.session.abandon()
        self.world.scheduler.after(0, self._bury)

    def kill_at(self, changes: int) -> None:
        """Kill it at one of its next changes of files."""
        self.disk.crash_at = self.disk.calls + changes

    def _bury(self) -> None:
        """All its tasks have ended."""
        if self.server is not None and self.server.log_manager is not None:
            self.server.log_manager._unlock()
        self.has_started = False
        self.server = self.session = None
        self.disk.revive(power_cut=False)

    @property
    def log_manager(self) -> LogManager:
        assert self.server is not None and self.server.log_manager is not None
        return self.server.log_manager
