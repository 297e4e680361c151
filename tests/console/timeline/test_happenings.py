"""kafka08.console.timeline.happenings."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.timeline.happenings import (
    MOST_NAMES,
    MOST_TEXT,
    TOPIC,
    Happening,
    happening,
    listed,
    partitions,
)


def test_text_and_names_have_bounds() -> None:
    names = [f"topic-{number:04}" for number in range(1000)]
    found = happening((1, 2), TOPIC, "x" * 1000, names)
    assert (found.since_ms, found.time_ms) == (1, 2)
    assert len(found.text) == MOST_TEXT and found.text.endswith("x...")
    assert found.names == tuple(names[: MOST_NAMES // 10])
    assert found.more == 1000 - MOST_NAMES // 10
    assert happening((1, 2), TOPIC, "t", ["n" * (MOST_NAMES + 1)])[4:] == ((), 1)


def test_what_fits_is_whole() -> None:
    text = "x" * MOST_TEXT
    expected = Happening(2, 1, TOPIC, text, ("a", "b"), 0)
    assert happening((1, 2), TOPIC, text, {"b", "a"}) == expected


def test_a_name_that_is_no_unicode_can_be_kept() -> None:
    assert happening((1, 2), TOPIC, "\ud800", ["\udfff"])[3:5] == ("?", ("?",))


@pytest.mark.parametrize(
    ("word", "has"), [("ORD", True), ("moved", True), ("pay", False), ("", True)]
)
def test_words(word: str, has: bool) -> None:
    assert happening((1, 2), TOPIC, "It moved", ["orders"]).has(word) is has


def test_lists_are_short() -> None:
    assert listed(["b", "a"]) == "a, b"
    assert listed("edcba") == "a, b, c and 2 more"
    one, other = TopicPartition("t", 0), TopicPartition("u", 3)
    assert partitions([one]) == "partition t-0"
    assert partitions([one, other]) == "2 partitions of t, u"
