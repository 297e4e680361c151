"""A run with the faults of a scenario file, which real processes run as well.

A difference between the two is a fault of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from integration.faults.plan import CONTROLLER, LEADER, SESSION_S, Fault
from integration.faults.scenario import Scenario
from kafka08 import admin
from kafka08.common import TopicPartition
from tests.simulation.broker import SimulatedBroker
from tests.simulation.conditions import Conditions
from tests.simulation.plan import Plan
from tests.simulation.run import TOPIC, SimulatedRun
from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.scheduler import SECOND
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError

_LOADS = ("producer", "producer2", "consumer", "consumer2")
_REPLICAS = 3
_LOOKS_EVERY = SECOND // 10
_SETTINGS = {"zookeeper.session.timeout.ms": str(round(SESSION_S * 1000))}


class ScenarioRun(SimulatedRun):
    """One run in an empty directory."""

    def __init__(self, directory: Path, scenario: Scenario, seed: int) -> None:
        plan = Plan(seed, scenario.brokers, 0, (), scenario.seconds)
        super().__init__(directory, plan, drawn=Conditions(settings=_SETTINGS))
        self.partitions, self.replicas = scenario.partitions, _REPLICAS
        self.leaves = False
        self._scenario = scenario
        self._operator: SimulatedRuntime | None = None

    def drawn_loads(self) -> list[str]:
        return list(_LOADS)

    def carry_out(self, begun: int) -> None:
        scheduler = self.world.scheduler
        for moment in self._scenario.moments:
            scheduler.run_to(begun + round(moment.at * SECOND))
            scheduler.note(str(moment.fault), "fault")
            self.faults[moment.fault.kind] += 1
            self._begin(moment.fault)
        scheduler.run_to(begun + round(self.plan.seconds * SECOND))

    def _begin(self, fault: Fault) -> None:
        """As Nemesis does it."""
        world, kind = self.world, fault.kind
        if kind == "kill-all":
            for each in world.staying:
                self.kill(each, fault)
        elif kind == "rolling":
            world.rolling.begin(world.staying)
        elif kind.startswith("zookeeper"):
            self._stop_zookeeper(fault)
        elif kind in ("reassign", "preferred", "depose"):
            self._ask(fault)
        else:
            _AIMED[kind](self, self._target(fault), fault)

    def _later(self, fault: Fault, act: Callable[[], object]) -> None:
        self.world.scheduler.after(round(fault.duration_s * SECOND), act)

    def _target(self, fault: Fault) -> SimulatedBroker:
        """The broker in a role; the first one, while nobody has it."""
        if fault.target == CONTROLLER:
            data = self.world.sessions.data(znodes.CONTROLLER)
            number = znodes.decode_controller(znodes.CONTROLLER, data).broker_id if data else -1
        elif fault.target == LEADER:
            name = TopicPartition(TOPIC, fault.partition)
            number = self.world.sessions.history.states[name].leader
        else:
            number = int(fault.target)
        return self.world.brokers.get(number, self.world.brokers[1])

    # Brokers

    def kill(self, broker: SimulatedBroker, fault: Fault) -> None:
        broker.kill()
        self._later(fault, partial(self._start, broker))

    def pause(self, broker: SimulatedBroker, fault: Fault) -> None:
        broker.pause()
        self._later(fault, broker.resume)

    def restart(self, broker: SimulatedBroker, fault: Fault) -> None:
        broker.stop()
        self._later(fault, partial(self._start, broker))

    def _start(self, broker: SimulatedBroker) -> None:
        """Once it has ended."""
        if broker.is_running:
            self.world.scheduler.after(_LOOKS_EVERY, partial(self._start, broker))
        else:
            broker.start()

    # Connections

    def cut_peers(self, broker: SimulatedBroker, fault: Fault) -> None:
        network = self.world.network
        for other in self.world.staying:
            for way in ((broker.host, other.host), (other.host, broker.host)):
                if other is not broker:
                    network.partition(*way)
                    self._later(fault, partial(network.heal, *way))

    def cut_from_zookeeper(self, broker: SimulatedBroker, fault: Fault) -> None:
        ensemble = self.world.sessions.ensemble
        ensemble.cut(broker.host)
        self._later(fault, partial(ensemble.heal, broker.host))

    def cut_everything(self, broker: SimulatedBroker, fault: Fault) -> None:
        self.cut_peers(broker, fault)
        self.cut_from_zookeeper(broker, fault)

    def _stop_zookeeper(self, fault: Fault) -> None:
        """All of its servers, as there is one in the other world."""
        ensemble = self.world.sessions.ensemble
        for server in ensemble.servers:
            ensemble.stop(server.number)
            self._later(fault, partial(ensemble.start, server.number))

    # Requests of an operator

    def _ask(self, fault: Fault) -> None:
        if self._operator is None:
            self._operator = self.world.client("operator")
        self._operator.spawn(fault.kind, self._write, self._operator, fault)

    def _write(self, runtime: SimulatedRuntime, fault: Fault) -> None:
        session = self.world.sessions.connect(runtime)
        try:
            _ASKED[fault.kind](session, fault)
        except ZkError as error:  # it is away, or another move is under way
            self.world.scheduler.note(f"fails: {error!r}")
        session.close()


def _reassign(session: ZkClient, fault: Fault) -> None:
    moved = TopicPartition(TOPIC, fault.partition)
    admin.start_reassignment(session, {moved: fault.replicas})


def _elect(session: ZkClient, fault: Fault) -> None:
    names = [TopicPartition(TOPIC, number) for number in range(fault.partition + 1)]
    admin.start_preferred_election(session, names)


def _depose(session: ZkClient, fault: Fault) -> None:
    session.delete(znodes.CONTROLLER)


_AIMED: dict[str, Callable[[ScenarioRun, SimulatedBroker, Fault], None]] = {
    "kill": ScenarioRun.kill,
    "pause": ScenarioRun.pause,
    "pause-long": ScenarioRun.pause,
    "restart": ScenarioRun.restart,
    "cut-peers": ScenarioRun.cut_peers,
    "cut-zookeeper": ScenarioRun.cut_from_zookeeper,
    "cut-everything": ScenarioRun.cut_everything,
}
_ASKED: dict[str, Callable[[ZkClient, Fault], None]] = {
    "reassign": _reassign,
    "preferred": _elect,
    "depose": _depose,
}
