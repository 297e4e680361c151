"""kafka08.console.access."""

from __future__ import annotations

import pytest

from kafka08.console.access import Tokens, User, Users, entry, is_same_origin
from kafka08.errors import ConfigError


def test_a_line_is_read_back_and_hides_the_password() -> None:
    line = entry("ann", "operator", "s3cret")
    assert "s3cret" not in line
    users = Users(f"# users\n\n{line}\n")
    for _ in range(2):
        assert users.check("ann", "s3cret") == User("ann", "operator")
        assert users.check("ann", "other") is None
        assert users.check("bob", "s3cret") is None


@pytest.mark.parametrize(
    "line",
    ["ann", "ann:reader:plain$a$b", "ann:king:scrypt$aa$bb", "ann:reader:scrypt$xx$bb", "a:b:c:d"],
)
def test_a_bad_line_is_named_by_its_number(line: str) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        Users(f"{entry('bob', 'reader', 'x')}\n{line}\n")


def test_a_file_without_users_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no users"):
        Users("# nobody\n")


def test_names_and_roles_are_checked() -> None:
    for name, role in (("a:b", "reader"), ("", "reader"), ("ann", "king")):
        with pytest.raises(ConfigError):
            entry(name, role, "x")


def test_roles_include_the_lesser_ones() -> None:
    assert User("a", "admin").may("operator")
    assert User("a", "operator").may("reader")
    assert not User("a", "reader").may("operator")


def test_tokens_belong_to_a_user_and_a_console() -> None:
    tokens, ann = Tokens(), User("ann", "admin")
    assert tokens.fits(ann, tokens.of(ann))
    assert not tokens.fits(User("bob", "admin"), tokens.of(ann))
    assert not Tokens().fits(ann, tokens.of(ann))
    assert not tokens.fits(ann, "é")


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({}, True),
        ({"Origin": "http://h:1"}, True),
        ({"Origin": "http://evil"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://h:1"}, False),
    ],
)
def test_where_a_form_comes_from(headers: dict[str, str], is_ours: bool) -> None:
    assert is_same_origin(headers, "http://h:1") is is_ours
