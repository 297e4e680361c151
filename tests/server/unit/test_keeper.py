from __future__ import annotations

import pytest

from kafka08.server.unit.keeper import Keeper
from kafka08.settings.unit import UnitMember
from tests.fakes.runtime import FakeRuntime
from tests.server.unit.support import ScriptedProcess, unit_members


class Kept:
    """A keeper whose broker has one process after the other; after the last it is stopped."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.processes: list[ScriptedProcess | OSError] = []
        self.decided: list[bool] = []
        self.keeper = Keeper(self.runtime, unit_members(1)[0], self._launch, self.decided.append)

    def _launch(self, member: UnitMember) -> ScriptedProcess:
        assert member.config.broker_id == 4
        found = self.processes.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    def process(self, status: int, *, starts: bool = True, seconds: float = 0.0) -> None:
        self.processes.append(ScriptedProcess(self.runtime, status, starts=starts, seconds=seconds))

    def run(self) -> None:
        last = ScriptedProcess(self.runtime, 143, meanwhile=self.keeper.stop)
        self.processes.append(last)
        self.keeper.start()
        self.keeper.join()


def test_a_broker_that_dies_is_started_again_later_and_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = Kept()
    for status in (-9, 1, 143, -11, 0, -64, 2):
        kept.process(status, seconds=1)
    kept.run()
    assert kept.runtime.slept == [1, 2, 4, 8, 16, 30, 30]
    errors = [each for each in caplog.records if each.levelname == "ERROR"]
    assert [each.getMessage() for each in errors][:6] == [
        "Broker 4 was ended by SIGKILL. It is started again in 1 s",
        "Broker 4 ended with status 1. It is started again in 2 s",
        "Broker 4 ended with status 143. It is started again in 4 s",
        "Broker 4 was ended by SIGSEGV. It is started again in 8 s",
        "Broker 4 ended with status 0. It is started again in 16 s",
        "Broker 4 was ended by SIGRTMAX. It is started again in 30 s",
    ]
    assert kept.decided == [True]


def test_after_a_long_run_the_delay_is_short_again() -> None:
    kept = Kept()
    for seconds in (1, 1, 30, 31, 1):
        kept.process(-9, seconds=seconds)
    kept.run()
    assert kept.runtime.slept == [1, 2, 4, 1, 2]


def test_a_first_start_that_fails_is_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    kept.process(1, starts=False)
    kept.run()
    assert (kept.decided, len(kept.processes)) == ([False], 1)
    assert caplog.messages[-1] == "Broker 4 did not start: it ended with status 1"
    assert not kept.keeper.is_running


def test_a_later_start_that_fails_is(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    kept.process(-9)
    kept.process(1, starts=False)
    kept.processes.append(OSError(11, "Resource temporarily unavailable"))
    kept.run()
    assert kept.runtime.slept == [1, 2, 4]
    assert kept.decided == [True]
    told = "Broker 4 could not be run: Resource temporarily unavailable. It is started again in 4 s"
    assert told in caplog.messages


def test_a_stop_asks_the_process_and_is_no_death(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    kept.run()
    assert (kept.decided, kept.runtime.slept) == ([True], [])
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_a_stop_in_the_pause_starts_nothing() -> None:
    kept = Kept()
    kept.process(-9)
    kept.runtime.while_waiting.append(kept.keeper.stop)
    kept.run()
    assert len(kept.processes) == 1


def test_a_stop_terminates_the_process_that_runs() -> None:
    kept = Kept()
    process = ScriptedProcess(kept.runtime, 143, meanwhile=kept.keeper.stop)
    kept.processes.append(process)
    kept.keeper.start()
    kept.keeper.join()
    assert process.terminated == 1
