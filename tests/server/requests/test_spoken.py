from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.network.peer import Peer, current_peer
from kafka08.protocol.schemas import OffsetCommitRequestV0, RequestHeader
from kafka08.server.requests.heard import HeardGroups, HeardTopics, Speaker, Spoken
from kafka08.server.requests.spoken import KEPT_MS, SpokenVersions, described
from tests.fakes.runtime import FakeRuntime

OLD = Speaker("c", "10.0.0.3", "User:ANONYMOUS", None)
NEW = Speaker(None, "10.0.0.4", "User:ann", ("rd", "2.5"))


def names(spoken: SpokenVersions) -> list[str]:
    return [each.name for each, _ in spoken.items()]


def test_handlers_that_tell_nothing_are_left_alone() -> None:
    made: list[Any] = [SimpleNamespace(key=key, last_version=0) for key in (0, 1, 3, 8, 11, 18)]
    found = SpokenVersions(FakeRuntime().clock).heard(made)
    kinds = [HeardTopics, HeardTopics, SimpleNamespace, HeardGroups, HeardGroups, SimpleNamespace]
    assert list(map(type, found)) == kinds


def test_the_one_heard_last_comes_last() -> None:
    runtime = FakeRuntime()
    spoken = SpokenVersions(runtime.clock)
    first, second = Spoken(OLD, 0, 0, "t"), Spoken(OLD, 0, 1, "t")
    for each in (first, second, first):
        runtime.clock.advance(1)
        spoken.note(each)
    now = runtime.clock.millis()
    assert spoken.items() == [(second, now - 1000), (first, now)]


def test_there_are_at_most_so_many() -> None:
    spoken = SpokenVersions(FakeRuntime().clock, most=2)
    for name in "abac":
        spoken.note(Spoken(OLD, 0, 0, name))
    assert (names(spoken), spoken.forgotten) == (["a", "c"], 1)


def test_what_was_not_heard_for_a_day_goes() -> None:
    runtime = FakeRuntime()
    spoken = SpokenVersions(runtime.clock)
    spoken.note(Spoken(OLD, 0, 0, "old"))
    runtime.clock.advance(KEPT_MS / 1000)
    spoken.note(Spoken(OLD, 0, 0, "new"))
    spoken.begin_round()
    assert names(spoken) == ["old", "new"]
    runtime.clock.advance(0.001)
    spoken.begin_round()
    assert (names(spoken), spoken.forgotten) == (["new"], 0)


class Sender:
    """Commits of one connection, which are noted in ``spoken``."""

    def __init__(self, **limits: int) -> None:
        self.runtime = FakeRuntime()
        self.spoken = SpokenVersions(self.runtime.clock, **limits)
        self.handler: Any = SimpleNamespace(key=8, last_version=0, handle=lambda *_: None)
        [self.heard] = self.spoken.heard([self.handler])

    def commit(self, group: str) -> int:
        """The time at which the group was last noted, in seconds since the start."""
        token = current_peer.set(Peer("10.0.0.3:1"))
        self.heard.handle(RequestHeader(8, 0, 1, "c"), OffsetCommitRequestV0(group, []))
        current_peer.reset(token)
        times = {each.name: last_ms for each, last_ms in self.spoken.items()}
        return (times[group] - self.spoken.since_ms) // 1000


def test_times_are_exact_to_a_round() -> None:
    sender = Sender()
    assert sender.commit("g") == 0
    sender.runtime.clock.advance(5)
    assert sender.commit("g") == 0
    jobs: list[Callable[[], object]] = []
    scheduler: Any = SimpleNamespace(every=lambda name, period, job, **_: jobs.append(job))
    sender.spoken.schedule(scheduler)
    jobs[0]()
    assert sender.commit("g") == 5


def test_many_names_end_a_round() -> None:
    sender = Sender(most_in_round=2)
    for name in "ab":
        sender.commit(name)
    sender.runtime.clock.advance(5)
    assert sender.commit("a") == 0
    sender.commit("c")
    assert sender.commit("a") == 5


@pytest.mark.parametrize(
    ("spoken", "expected"),
    [
        (
            Spoken(OLD, 0, 1, "t", 0),
            ("c", "10.0.0.3", "User:ANONYMOUS", False, None, None, "Produce", 1, "t", None, 0, 7),
        ),
        (
            Spoken(NEW, 8, 2, "g"),
            (
                None,
                "10.0.0.4",
                "User:ann",
                True,
                "rd",
                "2.5",
                "OffsetCommit",
                2,
                None,
                "g",
                None,
                7,
            ),
        ),
        (
            Spoken(OLD._replace(software=("", "")), 1, 4, "t"),
            ("c", "10.0.0.3", "User:ANONYMOUS", True, None, None, "Fetch", 4, "t", None, None, 7),
        ),
    ],
)
def test_an_entry_as_json_holds_it(spoken: Spoken, expected: tuple[object, ...]) -> None:
    [found] = described([(spoken, 7)])
    assert tuple(found.values()) == expected
    assert list(found)[:3] == ["client_id", "host", "principal"]
