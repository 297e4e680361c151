from __future__ import annotations

import os
import sys

import pytest

from kafka08.server.unit.launcher import MemberProcess, command, environment

_READS = "import os, sys; os.write(1, os.read(0, 99)); os.write(0, b'started\\n'); "


def launch(code: str, **properties: str) -> MemberProcess:
    return MemberProcess([sys.executable, "-c", code], os.environ, properties)


def test_the_child_gets_the_properties_and_says_that_it_has_started(
    capfd: pytest.CaptureFixture[str],
) -> None:
    process = launch(_READS + "sys.exit(3)", a="1")
    assert process.wait_for_start() is True
    assert process.wait() == 3
    assert capfd.readouterr().out == '{"a": "1"}\n'


@pytest.mark.parametrize("code", ["import sys; sys.exit(1)", "import os; os.read(0, 99)"])
def test_a_child_that_ends_has_not_started(code: str) -> None:
    process = launch(code, a="1" * 100_000)
    assert process.wait_for_start() is False
    assert process.wait() in (0, 1)


def test_a_terminated_child() -> None:
    process = launch(_READS + "os.read(0, 1)")
    assert process.wait_for_start() is True
    process.terminate()
    assert process.wait() == -15


def test_the_command_is_not_that_of_a_broker_alone() -> None:
    words = command("/b/kafka-java.py", "server.properties", 5)
    assert words[2:] == ["/b/kafka-java.py", "kafka.server.UnitMember", "server.properties", "5"]
    assert "kafka.kafka" not in " ".join(words).lower()


def test_the_environment_names_the_broker() -> None:
    assert environment({"A": "b"}, 5) == {"A": "b", "KAFKA08_UNIT_BROKER": "5"}
