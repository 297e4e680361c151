"""The audit log: the form of its lines, and how many there are at most."""

from __future__ import annotations

import logging

import pytest

from kafka08.security.acls import Operation, Resource, ResourceType
from kafka08.security.audit import AuditLog
from tests.fakes.runtime import FakeClock

TOPIC = ResourceType.TOPIC


class Audited:
    def __init__(self, caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> None:
        caplog.set_level(level, "kafka.authorizer.logger")
        self.clock = FakeClock()
        self.log = AuditLog(self.clock)
        self.lines = caplog

    def deny(
        self, topic: str = "t", *, principal: str = "User:alice", allowed: bool = False
    ) -> None:
        resource = Resource(TOPIC, topic)
        self.log.note(allowed, principal, "127.0.0.1", Operation.WRITE, resource, "Produce")

    def pass_time(self, seconds: float) -> list[str]:
        """The lines of that time."""
        self.lines.clear()
        self.clock.advance(seconds)
        self.log.flush()
        return self.lines.messages


LINE = (
    "Principal = User:alice is Denied Operation = Write from host = 127.0.0.1 on resource = "
    "Topic:LITERAL:t for request = Produce with resourceRefCount = {}"
)


def test_a_denial_is_told_at_once_and_its_repetitions_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noted = Audited(caplog)
    for _ in range(100):
        noted.deny()
    assert caplog.messages == [LINE.format(1)]
    assert caplog.records[0].levelno == logging.INFO
    assert noted.pass_time(59) == []
    assert noted.pass_time(2) == [LINE.format(99)]
    for _ in range(5):
        noted.deny()
    assert noted.pass_time(59) == []
    assert noted.pass_time(2) == [LINE.format(5)]
    assert noted.pass_time(61) == []
    caplog.clear()
    noted.deny()
    assert caplog.messages == [LINE.format(1)]


def test_many_topics_are_not_as_many_lines(caplog: pytest.LogCaptureFixture) -> None:
    noted = Audited(caplog)
    for number in range(100_000):
        noted.deny(f"t{number}")
    assert len(caplog.messages) == 1000
    assert len(noted.log._events) == 1000
    (line,) = noted.pass_time(10)
    assert line.startswith("99000 further decisions")
    assert noted.pass_time(60) == []
    noted.deny("t")
    assert len(caplog.messages) == 1


def test_allowed_requests_are_told_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    assert not Audited(caplog).log.tells_allowed
    noted = Audited(caplog, logging.DEBUG)
    assert noted.log.tells_allowed
    noted.deny(allowed=True)
    assert caplog.messages == [LINE.format(1).replace("Denied", "Allowed")]
    assert caplog.records[0].levelno == logging.DEBUG


@pytest.mark.scenario("security-53")
@pytest.mark.parametrize(
    "name",
    [
        "CN=x\r\nPrincipal = User:admin",
        "\x1b[2J",
        "a\u2028b",
        "\u202e",
        "n" * 32_000,
        "\0" * 32_000,
    ],
)
def test_a_name_cannot_write_lines_of_its_own(caplog: pytest.LogCaptureFixture, name: str) -> None:
    noted = Audited(caplog)
    noted.deny(name, principal=f"User:{name}")
    (line,) = caplog.messages
    assert line.isprintable()
    assert len(line) < 1024
