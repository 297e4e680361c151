"""The most specific rate of a user and a client id, and whose it is."""

from __future__ import annotations

import pytest

from kafka08.security.limits import (
    DEFAULT,
    Entity,
    Limit,
    QuotaLimits,
    entity_of,
    path_of,
    unfit,
)

# From the most specific to the least.
LEVELS = [
    (Entity("u", "c"), Entity("u", "c"), True),
    (Entity("u", DEFAULT), Entity("u", "c"), False),
    (Entity("u", None), Entity("u", None), True),
    (Entity(DEFAULT, "c"), Entity("u", "c"), False),
    (Entity(DEFAULT, DEFAULT), Entity("u", "c"), False),
    (Entity(DEFAULT, None), Entity("u", None), False),
    (Entity(None, "c"), Entity(None, "c"), True),
    (Entity(None, DEFAULT), Entity(None, "c"), False),
]


@pytest.mark.scenario("security-48")
def test_48_all_nine_levels_in_order() -> None:
    limits = QuotaLimits(9)
    for rate, (entity, _, _) in enumerate(LEVELS, 1):
        limits.set(entity, rate)
    for rate, (entity, owner, is_own) in enumerate(LEVELS, 1):
        assert limits.find("u", "c") == Limit(owner, rate, is_own)
        limits.set(entity, None)
    assert limits.find("u", "c") == Limit(Entity(None, "c"), 9, False)
    assert QuotaLimits().find("u", "c") is None


def test_others_are_not_held() -> None:
    limits = QuotaLimits()
    limits.set(Entity("u", "c"), 1)
    limits.set(Entity("u", None), 2)
    assert limits.find("v", "c") is None
    assert limits.find("u", "d") == Limit(Entity("u", None), 2, True)


def test_a_name_like_that_of_the_default_is_a_name() -> None:
    limits = QuotaLimits()
    limits.set(Entity(client=DEFAULT), 1)
    limits.set(Entity(client="<default>"), 2)
    found = limits.find("u", "<default>")
    assert found is not None and found.rate == 2
    found = limits.find("u", "c")
    assert found is not None and found.rate == 1


def test_it_is_false_while_there_is_no_rate() -> None:
    limits = QuotaLimits()
    assert not limits
    limits.set(Entity("u"), 1)
    assert limits
    limits.set(Entity("u"), None)
    limits.set(Entity("u"), None)
    assert not limits
    assert QuotaLimits(1)


@pytest.mark.parametrize(
    ("path", "entity"),
    [
        ("users/a%2Fb", Entity("a/b")),
        ("users/<default>", Entity(DEFAULT)),
        ("clients/c", Entity(None, "c")),
        ("users/u/clients/<default>", Entity("u", DEFAULT)),
    ],
)
def test_the_paths_of_entities(path: str, entity: Entity) -> None:
    assert entity_of(path) == entity
    assert path_of(entity) == path


@pytest.mark.parametrize("path", ["topics/t", "users", "users/u/clients", "users/u/topics/t"])
def test_paths_of_other_things(path: str) -> None:
    assert entity_of(path) is None


@pytest.mark.parametrize(
    ("rate", "text", "expected"),
    [
        ("producer_byte_rate", "1", ""),
        ("producer_byte_rate", "1024.0", ""),
        ("producer_byte_rate", "0", "a whole number of at least 1"),
        ("producer_byte_rate", "1.5", "a whole number of at least 1"),
        ("request_percentage", "1.5", ""),
        ("request_percentage", "0.0", "a number above 0"),
        ("request_percentage", "1e3", "a number above 0"),
    ],
)
def test_what_a_rate_is_not(rate: str, text: str, expected: str) -> None:
    assert unfit(rate, text) == expected
