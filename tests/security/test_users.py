from __future__ import annotations

import io
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.security import users
from kafka08.security.users import Users, line_for, load


def test_a_user_has_a_role_if_the_password_is_right(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"# ours\n\n{line_for('anna', 'admin', 'päss:word')}\n")
    found = load(str(path))
    for _ in range(2):  # the second time it is remembered
        assert found.role("anna", "päss:word") == "admin"
    assert found.role("anna", "other") is None
    assert found.role("anna", "") is None
    assert found.role("bert", "päss:word") is None
    assert "päss" not in path.read_text()


@pytest.mark.parametrize(
    "line",
    [
        "anna",
        "anna:admin:plain",
        "anna:king:scrypt$00$00",
        ":admin:scrypt$00$00",
        "anna:admin:md5$00$00",
        "anna:admin:scrypt$xx$00",
    ],
)
def test_other_lines_are_named_without_their_content(line: str) -> None:
    with pytest.raises(ConfigError, match="users: line 2 is not") as caught:
        Users(["# comment", line], "users")
    assert "anna" not in str(caught.value)


def test_a_name_twice_or_no_users_at_all(tmp_path: Path) -> None:
    line = line_for("anna", "reader", "x")
    with pytest.raises(ConfigError, match="line 2"):
        Users([line, line], "users")
    with pytest.raises(ConfigError, match="no users"):
        Users(["# nobody"], "users")
    with pytest.raises(ConfigError, match="No such file"):
        load(str(tmp_path / "none"))


def test_the_command_writes_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    assert users.main(["anna", "reader"]) == 0
    line = capsys.readouterr().out.strip()
    assert Users([line], "line").role("anna", "secret") == "reader"
    assert "secret" not in line
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    assert users.main(["anna", "king"]) == 1
    assert users.main([]) == 1
