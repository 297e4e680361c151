from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.server.unit.supervisor import BrokerUnit
from kafka08.settings.unit import UnitMember
from tests.fakes.runtime import FakeRuntime, Queue
from tests.server.unit.support import ScriptedProcess, unit_members


class Scene:
    """A unit of two, brokers 4 and 5, whose processes are made by ``make``."""

    def __init__(self, make: Callable[[Scene, int], ScriptedProcess]) -> None:
        self.runtime = FakeRuntime()
        self.processes: dict[int, ScriptedProcess] = {}
        self.received: Queue = self.runtime.queue()
        self.runtime.world = lambda done, timeout: self.runtime.run_spawned()

        def launch(member: UnitMember) -> ScriptedProcess:
            broker_id = member.config.broker_id
            self.processes[broker_id] = make(self, broker_id)
            return self.processes[broker_id]

        self.unit = BrokerUnit(self.runtime, unit_members(2), launch, self.received)


@pytest.mark.parametrize(("number", "status"), [(15, 143), (2, 130)])
def test_a_signal_stops_all(number: int, status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    def make(scene: Scene, broker_id: int) -> ScriptedProcess:
        def meanwhile() -> None:
            if broker_id == 5:
                scene.received.put(number)
                for each in scene.unit.keepers:
                    each.stop()

        if broker_id == 4:
            return ScriptedProcess(scene.runtime, 143, meanwhile=scene.unit.keepers[0].stop)
        return ScriptedProcess(scene.runtime, 143, meanwhile=meanwhile)

    scene = Scene(make)
    assert scene.unit.run() == status
    assert sorted(scene.processes) == [4, 5]
    assert "The unit of brokers 4, 5 has started" in caplog.messages
    assert caplog.messages[-1] == "The unit of brokers 4, 5 has stopped"


def test_a_signal_before_any_start_starts_nothing() -> None:
    scene = Scene(lambda scene, broker_id: ScriptedProcess(scene.runtime, 0))
    scene.received.put(15)
    assert scene.unit.run() == 143
    assert scene.processes == {}


def test_a_failed_start_stops_the_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    def make(scene: Scene, broker_id: int) -> ScriptedProcess:
        if broker_id == 4:
            return ScriptedProcess(scene.runtime, 143, meanwhile=scene.unit.keepers[0].stop)
        return ScriptedProcess(scene.runtime, 1, starts=False)

    scene = Scene(make)
    assert scene.unit.run() == 1
    assert "Broker 5 did not start: it ended with status 1" in caplog.messages
    assert "The unit of brokers 4, 5 has started" not in caplog.messages
    assert caplog.messages[-1] == "The unit of brokers 4, 5 has stopped"
