"""kafka08.console.access.quota_values."""

from __future__ import annotations

import pytest

from kafka08.console.access.quota_values import (
    ALL_RATES,
    HINTS,
    TITLES,
    QuotaHolder,
    entered_holder,
    entered_rate,
    holder_of,
    rate_text,
)
from kafka08.console.forms import FieldError
from kafka08.security.limits import DEFAULT, Entity

HOLDERS = [
    ("users/ann", QuotaHolder(Entity("ann")), "user ann"),
    ("users/<default>", QuotaHolder(Entity(DEFAULT)), "every other user"),
    ("clients/c%2F1", QuotaHolder(Entity(None, "c/1")), "client id c/1"),
    (
        "users/ann/clients/<default>",
        QuotaHolder(Entity("ann", DEFAULT)),
        "user ann, every other client id",
    ),
    ("ips/10.0.0.1", QuotaHolder(Entity(), "10.0.0.1"), "address 10.0.0.1"),
    ("ips/<default>", QuotaHolder(Entity(), DEFAULT), "every other address"),
]


@pytest.mark.parametrize(("path", "holder", "text"), HOLDERS)
def test_a_holder_as_path_form_and_text(path: str, holder: QuotaHolder, text: str) -> None:
    assert holder_of(path) == holder
    assert holder.path == path
    assert holder.text == text
    assert entered_holder(holder.fields) == holder


def test_other_entities_have_no_quotas() -> None:
    assert holder_of("topics/t") is None
    assert holder_of("users/ann/topics/t") is None


@pytest.mark.parametrize(
    ("fields", "field", "text"),
    [
        ({}, "user", "choose whom"),
        ({"user_is": "some"}, "user", "'some' is not one of default, named"),
        ({"user_is": "named", "user": " "}, "user", "the name is missing"),
        ({"user": "ann"}, "user", "choose the one of this name"),
        ({"user_is": "default", "user": "ann"}, "user", "or leave the name empty"),
        ({"client_id_is": "named", "client_id": "a\nb"}, "client_id", "no node can have this"),
        ({"user_is": "named", "user": "."}, "user", "no node can have this"),
        ({"user_is": "named", "user": "a" * 256}, "user", "no node can have this"),
        ({"ip_is": "named", "ip": "b1"}, "ip", "'b1' is not an address"),
        ({"ip_is": "default", "user_is": "default"}, "ip", "an address has quotas of its own"),
    ],
)
def test_a_holder_that_makes_no_sense(fields: dict[str, str], field: str, text: str) -> None:
    with pytest.raises(FieldError) as error:
        entered_holder(fields)
    assert error.value.field == field
    assert text in error.value.text


@pytest.mark.parametrize(
    ("rate", "stored", "text"),
    [
        ("producer_byte_rate", "10485760", "10 MiB/s"),
        ("consumer_byte_rate", "1000", "1000 bytes/s"),
        ("consumer_byte_rate", "1024.0", "1 KiB/s"),
        ("producer_byte_rate", "0.5", "0.5 bytes/s"),
        ("controller_mutation_rate", "1200", "1,200 partitions/s"),
        ("request_percentage", "12.5", "12.5 %"),
        ("request_percentage", "50", "50 %"),
        ("connection_creation_rate", "3", "3 connections/s"),
        ("producer_byte_rate", "many", "'many', which brokers ignore"),
        ("producer_byte_rate", "-1", "'-1', which brokers ignore"),
        ("producer_byte_rate", "inf", "'inf', which brokers ignore"),
        ("producer_byte_rate", "nan", "'nan', which brokers ignore"),
    ],
)
def test_a_stored_rate_in_plain_words(rate: str, stored: str, text: str) -> None:
    assert rate_text(rate, stored) == text


@pytest.mark.parametrize(
    ("rate", "text", "stored"),
    [
        ("producer_byte_rate", "", ""),
        ("producer_byte_rate", "1000", "1000"),
        ("producer_byte_rate", "10 MiB/s", "10485760"),
        ("consumer_byte_rate", " 1.5 KB ", "1500"),
        ("consumer_byte_rate", "1000 bytes/s", "1000"),
        ("request_percentage", "12.5 %", "12.5"),
        ("request_percentage", "50", "50"),
        ("controller_mutation_rate", "5 partitions/s", "5"),
        ("connection_creation_rate", "7", "7"),
    ],
)
def test_a_rate_as_people_write_it(rate: str, text: str, stored: str) -> None:
    assert entered_rate(rate, text) == stored


@pytest.mark.parametrize(
    ("rate", "text", "reason"),
    [
        ("producer_byte_rate", "0", "'0' is not a whole number of at least 1"),
        ("producer_byte_rate", "-5", "is not a whole number of at least 1"),
        ("producer_byte_rate", "1 parsec", "'1 parsec' is not like 512 MB"),
        ("producer_byte_rate", "0.5", "'0.5' is not a whole number of bytes"),
        ("producer_byte_rate", "1" * 20, "is not a whole number"),
        ("request_percentage", "0 %", "'0 %' is not a number above 0"),
        ("request_percentage", "half", "'half' is not a number above 0"),
        ("controller_mutation_rate", "1.5", "is not a whole number of at least 1"),
        ("connection_creation_rate", "x", "is not a whole number of at least 1"),
    ],
)
def test_a_rate_that_makes_no_sense(rate: str, text: str, reason: str) -> None:
    with pytest.raises(FieldError) as error:
        entered_rate(rate, text)
    assert error.value.field == rate
    assert reason in error.value.text


def test_every_rate_is_explained() -> None:
    assert set(TITLES) == set(HINTS) == set(ALL_RATES)
