"""kafka08.console.access."""

from __future__ import annotations

import pytest

from kafka08.console.access import Tokens, User, is_same_origin


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
