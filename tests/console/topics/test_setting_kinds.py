"""kafka08.console.topics.setting_kinds. The rows of topics and brokers have further cases."""

from __future__ import annotations

import pytest

from kafka08.console.forms import FieldError
from kafka08.console.topics.setting_kinds import (
    choices_of,
    default_text,
    doc_of,
    mistake,
    plain_of,
    taken,
    type_of,
    unit_of,
)
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.topic import LogConfig

BROKER = {each.key: each for each in BrokerConfig.settings().values()}
TOPIC = {each.key: each for each in LogConfig.settings().values()}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("broker.id", None),  # it has to be set
        ("log.roll.ms", None),  # it follows from log.roll.hours
        ("log.retention.hours", "168"),
        ("delete.topic.enable", "false"),
        ("log.cleanup.policy", "delete"),
    ],
)
def test_built_in_defaults(key: str, text: str | None) -> None:
    assert default_text(BROKER[key]) == text


def test_without_a_declaration_nothing_is_known() -> None:
    assert (type_of(None, ()), choices_of("x.ms", None), unit_of("x.ms", None)) == (
        "unknown",
        (),
        "",
    )
    assert plain_of("x.ms", None, "1000") == ""
    assert taken("x.ms", None, "anything", "f") == "anything"


@pytest.mark.parametrize("value", [None, "", "many", "1.5"])
def test_a_value_that_is_no_number_has_no_unit(value: str | None) -> None:
    assert plain_of("retention.ms", TOPIC["retention.ms"], value) == ""


def test_values_of_fields() -> None:
    assert taken("retention.ms", TOPIC["retention.ms"], "7 days", "f") == "604800000"
    with pytest.raises(FieldError, match="'maybe' is not one of true, false"):
        taken("delete.topic.enable", BROKER["delete.topic.enable"], "maybe", "f")


def test_texts_for_people() -> None:
    assert all("`" not in doc_of(each) for each in (*BROKER.values(), *TOPIC.values()))
    assert mistake(TOPIC["message.format.version"]) == "is not a release like 2.8"
    assert mistake(TOPIC["retention.ms"]) == "is not a number"
