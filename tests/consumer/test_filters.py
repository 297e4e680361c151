from __future__ import annotations

import pytest

from kafka08.common import INTERNAL_TOPICS
from kafka08.consumer.filters import Blacklist, Whitelist, filter_for, normalise
from kafka08.errors import ConfigError


@pytest.mark.scenario("client-14")
@pytest.mark.parametrize(
    ("raw", "regex"),
    [
        ('"a, b"', "a|b"),
        ("  'x.*' ", "x.*"),
        ("a,b ,c", "a|b|c"),
        ("\"'q'\"", "q"),
        ("plain", "plain"),
    ],
)
def test_normalisation(raw: str, regex: str) -> None:
    assert normalise(raw) == regex


def test_match_is_of_the_whole_name() -> None:
    white = Whitelist('"a, b"')
    assert white.allows("a") and white.allows("b")
    assert not white.allows("ab") and not white.allows("xa")


def test_bad_regex_is_refused() -> None:
    with pytest.raises(ConfigError, match="is an invalid regex"):
        Whitelist("a(")


def test_blacklist_is_the_complement_without_internal_topics() -> None:
    topics = ["u", "t", *INTERNAL_TOPICS]
    assert Blacklist("t").select(topics) == ["u"]
    assert Blacklist("t").select(topics, exclude_internal=False) == [*INTERNAL_TOPICS, "u"]
    assert Whitelist(".*").select(topics) == ["t", "u"]


def test_filter_for_registration() -> None:
    assert isinstance(filter_for("black_list", "a"), Blacklist)
    assert isinstance(filter_for("white_list", "a"), Whitelist)
