"""Regexes of other members: the answer of ``re``, but never for longer than a few seconds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.consumer import patterns
from kafka08.consumer.patterns import Pattern
from kafka08.errors import ConfigError

NAMES = ["", "a", "b", "ab", "ba", "aab", "abab", "a.b", "A", "AB", "topic-1", "b" * 9, "a_1"]
REGEXES = [
    "a|b", "a*", "(a|b)+", "(?:ab)*", "a?b?", "(?!a).*", ".*(?<=b)", "(?<!a)b.*", "(?i)ab",
    "(?i:a)b", "[^a].*", r"\w+-\d", r"a\.b", "^a.*b$", r"\ba.*b\b", "(a*)*", "(a|a)*b", "a{2}b",
    "(a{1,2}b?){1,3}", "(?=.*b)a.*", "b{9}", "b{0,8}", "(?!)", "", "()*a", "a*?b+?", r"\Aab\Z",
    "((a|b)?){3}", "(?P<x>a)b",
]  # fmt: skip


@pytest.fixture(params=["as it is", "walked"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "walked":
        monkeypatch.setattr(patterns, "_MAX_WAYS", 0)


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("regex", REGEXES)
def test_the_answer_is_that_of_re(regex: str) -> None:
    assert Pattern(regex).covered(NAMES) == {n for n in NAMES if re.fullmatch(regex, n)}


parts = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\b", ""]),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        )
        | inner.map(lambda each: f"(?={each})")
        | inner.map(lambda each: f"(?!{each})")
    ),
    max_leaves=6,
)


@given(parts, st.lists(st.text("ab", max_size=6), max_size=5))
def test_walking_and_trying_agree(regex: str, names: list[str]) -> None:
    walk = patterns._Walk(Pattern(regex)._tree)
    assert [walk.covers(name) for name in names] == [
        re.fullmatch(regex, name) is not None for name in names
    ]


@pytest.mark.parametrize(
    "regex",
    [
        "(a+)+b",
        "(a|a)*b",
        "(.*)*x",
        "(a*)*(a*)*b",
        ".*.*.*.*.*x",
        "(a|aa)+[^a]",
        "(" * 30 + "a*" + ")*" * 30 + "b",
        "(((((a{1,50}){1,50}){1,50}){1,50}){1,50}){1,50}b",
    ],
)
def test_what_would_backtrack_for_years(regex: str) -> None:
    names = ["a" * 249, "a" * 200]
    assert Pattern(regex).covered(names) == set()
    assert Pattern(f"{regex}|a*").covered(names) == set(names)


def test_what_takes_too_many_steps_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_MAX_STEPS", 200)
    with pytest.raises(ConfigError, match="too many steps for 1 topics"):
        Pattern("((a{1,50}){1,50}){1,50}b").covered(["a" * 249])


@pytest.mark.parametrize("regex", [r"(a)\1", "(a)(?(1)b|c)", "a(", "(" * 5000 + ")" * 5000])
def test_refused(regex: str) -> None:
    with pytest.raises(ConfigError, match="is an invalid regex"):
        Pattern(regex)
