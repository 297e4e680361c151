"""A coordinator on a fake clock, and members that talk to it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from typing import Any

from kafka08.server.groups.coordinator import (
    GroupCoordinator,
    MemberId,
    Storing,
)
from kafka08.server.groups.group import JoinAnswer, JoinRequest, Reply, Strategy, SyncAnswer
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeClock

SESSION_MS, REBALANCE_MS, DELAY_MS = 10_000, 60_000, 3_000


def config(**settings: Any) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {
            "broker.id": "1",
            "zookeeper.connect": "nowhere:1",
            **{key.replace("_", "."): str(value) for key, value in settings.items()},
        }
    )


def strategies(*names: str, metadata: bytes = b"m") -> tuple[Strategy, ...]:
    return tuple(Strategy(name, metadata) for name in names)


class Desk:
    """A coordinator whose stores are done by hand: ``storing`` holds what waits for one."""

    def __init__(self, **settings: Any) -> None:
        self.clock = FakeClock()
        ids = itertools.count(1)
        self.coordinator = GroupCoordinator(config(**settings), self.clock, lambda: next(ids))
        self.storing: list[Storing] = []

    def join(
        self,
        member_id: str = "",
        group: str = "g",
        *,
        instance: str | None = None,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        kind: str = "consumer",
        known: tuple[Strategy, ...] = strategies("range"),
        requires_id: bool = False,
    ) -> Reply[JoinAnswer]:
        reply: Reply[JoinAnswer] = Reply(threading.Event())
        request = JoinRequest(
            group, member_id, instance, "c", "/h", session_ms, rebalance_ms, kind, known,
            requires_id,
        )  # fmt: skip
        self._keep(self.coordinator.join(request, 7, reply))
        return reply

    def sync(
        self,
        answer: JoinAnswer | None,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        generation: int | None = None,
    ) -> Reply[SyncAnswer]:
        assert answer is not None
        reply: Reply[SyncAnswer] = Reply(threading.Event())
        generation = answer.generation if generation is None else generation
        named = MemberId(answer.member_id, instance)
        self._keep(self.coordinator.sync(group, generation, named, assignments or {}, reply))
        return reply

    def _keep(self, storing: Storing | None) -> None:
        if storing is not None:
            self.storing.append(storing)

    def store(self, code: int = 0) -> None:
        """Finish everything that is being stored."""
        storing, self.storing = self.storing, []
        for each in storing:
            self.coordinator.stored(each, code)

    def heartbeat(self, answer: JoinAnswer, *, instance: str | None = None) -> int:
        named = MemberId(answer.member_id, instance)
        return self.coordinator.heartbeat("g", answer.generation, named)

    def leave(self, *named: MemberId | str) -> list[int]:
        return self.coordinator.leave(
            "g", [each if isinstance(each, MemberId) else MemberId(each) for each in named]
        )

    def wait(self, ms: int) -> None:
        """Let time pass, one deadline after the other."""
        end = self.clock.now + ms / 1000
        while (at := self.coordinator.timers.next) is not None and at <= end:
            self.clock.now = max(self.clock.now, at)
            self.coordinator.run_timers()
        self.clock.now = end

    def state(self, group: str = "g") -> str:
        found = self.coordinator.groups.get(group)
        return "" if found is None else found.state.value

    def stable(self, count: int = 1, **joins: Any) -> list[JoinAnswer]:
        """A stable group of so many members; the first leads."""
        replies = [self.join(**joins) for _ in range(count)]
        self.wait(count * DELAY_MS + DELAY_MS)
        answers = [answer_of(reply) for reply in replies]
        for answer in answers:
            self.sync(answer, {each.member_id: each.member_id.encode() for each in answers})
        self.store()
        assert self.state() == "Stable"
        return answers


def answer_of(reply: Reply[Any]) -> Any:
    assert reply.answer is not None, "still parked"
    return reply.answer
