"""Brokers of a unit that run as tests say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka08.server.unit.launcher import MemberProcess
from kafka08.settings.unit import UnitMember, unit_of
from tests.fakes.runtime import FakeRuntime


class ScriptedProcess(MemberProcess):
    """A process that ``starts`` or not, runs for some seconds, does ``meanwhile``, and ends with
    ``status``."""

    def __init__(
        self,
        runtime: FakeRuntime,
        status: int,
        *,
        starts: bool = True,
        seconds: float = 0.0,
        meanwhile: Callable[[], Any] = bool,
    ) -> None:
        self.pid = 4711
        self._runtime = runtime
        self._status = status
        self._starts = starts
        self._seconds = seconds
        self._meanwhile = meanwhile
        self.terminated = 0

    def wait_for_start(self) -> bool:
        return self._starts

    def wait(self) -> int:
        self._runtime.clock.advance(self._seconds)
        self._meanwhile()
        return self._status

    def terminate(self) -> None:
        self.terminated += 1


def unit_members(count: int, **changes: str) -> list[UnitMember]:
    found = {"broker.id": "4", "zookeeper.connect": "z:1", "broker.processes": str(count)}
    found |= {key.replace("__", "."): value for key, value in changes.items()}
    return unit_of(found, "box").members
