"""kafka08.console.password."""

from __future__ import annotations

import io

import pytest

from kafka08.console.password import USAGE, main
from kafka08.security.users import Users


def test_the_line_is_one_of_the_users_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
    assert main(["ann", "operator"]) == 0
    line = capsys.readouterr().out
    assert "s3cret" not in line
    assert Users([line], "users").role("ann", "s3cret") == "operator"


@pytest.mark.parametrize(
    ("argv", "password", "told"),
    [
        ([], "x", USAGE),
        (["ann", "king"], "x", "role"),
        (["a:b", "reader"], "x", "colon"),
        (["ann", "reader"], "", "password"),
    ],
)
def test_a_wrong_call_is_told(
    argv: list[str],
    password: str,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
    assert main(argv) == 1
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""
