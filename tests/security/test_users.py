from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.security.users import User, Users, line_for, load


@pytest.mark.scenario("ops-58")
def test_a_user_has_a_role_if_the_password_is_right(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"# ours\n\n{line_for('anna', 'admin', 'päss:word')}\n")
    found = load(str(path), "users.file")
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
    with pytest.raises(ConfigError, match=r"users\.file has value .*: No such file"):
        load(str(tmp_path / "none"), "users.file")


@pytest.mark.parametrize(
    ("name", "role", "password"),
    [("a:b", "reader", "x"), ("", "reader", "x"), ("anna", "king", "x"), ("anna", "reader", "")],
)
def test_a_line_is_made_of_a_name_a_role_and_a_password(
    name: str, role: str, password: str
) -> None:
    with pytest.raises(ConfigError, match="A user needs"):
        line_for(name, role, password)


def test_roles_include_the_lesser_ones() -> None:
    assert User("a", "admin").may("operator")
    assert User("a", "operator").may("reader")
    assert not User("a", "reader").may("operator")
