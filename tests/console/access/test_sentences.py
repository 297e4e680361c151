"""kafka08.console.access.sentences."""

from __future__ import annotations

import pytest

from kafka08.console.access.sentences import allows, covers, denies, resource_text, sentence
from kafka08.security.acls import (
    CLUSTER,
    EVERYONE,
    Operation,
    PatternType,
    Resource,
    ResourceType,
)
from tests.console.access.served import TOPIC, allow, deny

TYPE = ResourceType.TOPIC
ALL_TOPICS = Resource(TYPE, "*")
PREFIX = Resource(TYPE, "ord", PatternType.PREFIXED)
LONGER = Resource(TYPE, "order", PatternType.PREFIXED)


@pytest.mark.parametrize(
    ("resource", "text"),
    [
        (TOPIC, "topic orders"),
        (ALL_TOPICS, "all topics"),
        (PREFIX, "topics that begin with ord"),
        (CLUSTER, "the cluster"),
        (Resource(ResourceType.TRANSACTIONAL_ID, "x"), "transactional id x"),
    ],
)
def test_resources_in_words(resource: Resource, text: str) -> None:
    assert resource_text(resource) == text


@pytest.mark.parametrize("kind", ResourceType)
@pytest.mark.parametrize("operation", Operation)
def test_every_rule_has_a_sentence(kind: ResourceType, operation: Operation) -> None:
    text = sentence((Resource(kind, "x"), allow(operation=operation)))
    assert text.startswith("User:ann may ")


def test_sentences() -> None:
    assert sentence((TOPIC, allow())) == "User:ann may read topic orders"
    assert sentence((TOPIC, deny(host="10.0.0.1"))) == (
        "User:ann may not read topic orders from 10.0.0.1"
    )
    assert sentence((CLUSTER, allow(EVERYONE, Operation.CLUSTER_ACTION))) == (
        "Everybody may act as a broker of the cluster"
    )
    assert sentence((PREFIX, deny(EVERYONE, Operation.ALL))) == (
        "Nobody may do everything with topics that begin with ord"
    )


@pytest.mark.parametrize(
    ("wide", "narrow", "is_covered"),
    [
        (TOPIC, TOPIC, True),
        (ALL_TOPICS, TOPIC, True),
        (ALL_TOPICS, PREFIX, True),
        (PREFIX, TOPIC, True),
        (PREFIX, LONGER, True),
        (LONGER, PREFIX, False),
        (PREFIX, ALL_TOPICS, False),
        (Resource(TYPE, "*", PatternType.PREFIXED), ALL_TOPICS, False),
        (TOPIC, PREFIX, False),
        (TOPIC, Resource(TYPE, "other"), False),
        (ALL_TOPICS, Resource(ResourceType.GROUP, "orders"), False),
    ],
)
def test_what_a_resource_covers(wide: Resource, narrow: Resource, is_covered: bool) -> None:
    assert covers(wide, narrow) is is_covered


def test_what_denies_an_allow_completely() -> None:
    asked = TOPIC, allow(host="10.0.0.1")
    assert denies((PREFIX, deny(EVERYONE, Operation.ALL)), asked)
    assert denies((TOPIC, deny(host="10.0.0.1")), asked)
    assert not denies((TOPIC, deny(host="10.0.0.2")), asked)
    assert not denies((TOPIC, deny("User:bob")), asked)
    assert not denies((TOPIC, deny(operation=Operation.WRITE)), asked)
    assert not denies((TOPIC, deny(host="10.0.0.1")), (TOPIC, allow()))
    assert not denies((TOPIC, allow()), asked)
    assert not denies((TOPIC, deny()), (TOPIC, deny()))


def test_what_allows_the_same() -> None:
    asked = TOPIC, allow(operation=Operation.DESCRIBE)
    assert allows((ALL_TOPICS, allow(EVERYONE, Operation.WRITE)), asked)
    assert not allows((TOPIC, allow(host="10.0.0.1")), asked)
    assert not allows(asked, (TOPIC, allow()))
    assert not allows((TOPIC, deny(operation=Operation.DESCRIBE)), asked)
