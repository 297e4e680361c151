"""How admin commands fail, and what they read from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.errors import KafkaError, UnknownTopicOrPartitionError
from tools import admin_command


def fail() -> int:
    try:
        raise UnknownTopicOrPartitionError("inner")
    except KafkaError as error:
        raise KafkaError("outer") from error


def test_the_status_of_what_succeeds() -> None:
    assert admin_command.run(lambda: None, "") == 0
    assert admin_command.run(lambda: 3, "") == 3


def test_a_failure_is_told_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(admin_command.STRICT_EXIT, raising=False)
    assert admin_command.run(fail, "Error: {error}") == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "Error: outer"
    assert lines[1] == f"{KafkaError.java_class}: outer"
    assert lines[2].startswith("\tat test_admin_command.fail(test_admin_command.py:")
    assert f"Caused by: {UnknownTopicOrPartitionError.java_class}: inner" in lines
    assert printed.err == ""
    monkeypatch.setenv(admin_command.STRICT_EXIT, "1")
    assert admin_command.run(fail, "") == 1


def test_a_reader_that_went_away_is_no_failure() -> None:
    def write() -> int:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        admin_command.run(write, "")


def test_python_s_own_causes_are_not_shown() -> None:
    try:
        try:
            raise ValueError("how Python found out")
        except ValueError as error:
            raise KafkaError("what it means") from error
    except KafkaError as error:
        assert "Caused by" not in admin_command.stack_trace(error)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(FileNotFoundError) as caught:
        admin_command.read_file(str(path))
    assert str(caught.value) == f"{path} (No such file or directory)"
    assert admin_command.java_class_of(caught.value) == "java.io.FileNotFoundException"
    path.write_bytes(b"{}")
    assert admin_command.read_file(str(path)) == b"{}"
