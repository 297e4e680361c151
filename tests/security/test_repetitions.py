"""Lines about what others can repeat: at once, then counted, and bounded in number."""

from __future__ import annotations

from kafka08.security.repetitions import MAX_EVENTS, Repetitions, shown
from tests.fakes.runtime import FakeClock


class WrittenLines:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.lines: list[tuple[str, str, int]] = []
        self.left_out: list[int] = []
        self.events: Repetitions[str] = Repetitions(
            self.clock, lambda *line: self.lines.append(line), self.left_out.append
        )

    def pass_time(self, seconds: float) -> list[tuple[str, str, int]]:
        """The lines of that time."""
        self.lines.clear()
        self.clock.advance(seconds)
        self.events.flush()
        return self.lines


def test_an_event_is_written_at_once_and_its_repetitions_once_a_minute() -> None:
    noted = WrittenLines()
    for number in range(100):
        noted.events.note("a", str(number))
    assert noted.lines == [("a", "0", 1)]
    assert noted.pass_time(59) == []
    assert noted.pass_time(2) == [("a", "99", 99)]
    assert noted.pass_time(61) == []
    assert len(noted.events) == 0


def test_events_without_room_are_counted_together() -> None:
    noted = WrittenLines()
    for number in range(MAX_EVENTS + 7):
        noted.events.note(str(number))
    assert len(noted.lines) == len(noted.events) == MAX_EVENTS
    assert noted.left_out == []
    assert noted.pass_time(1) == []
    assert noted.left_out == [7]
    noted.pass_time(60)
    assert noted.left_out == [7]


def test_ordinary_names_are_shown_as_they_are() -> None:
    for name in ("User:CN=a b,OU=o\\,x", "grüße", "t" * 250):
        assert shown(name) == name
