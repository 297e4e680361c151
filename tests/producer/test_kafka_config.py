from __future__ import annotations

import logging

import pytest

from kafka08.errors import ConfigError
from kafka08.producer.kafka_config import KafkaProducerConfig

SERVERS = {"bootstrap.servers": "b:1"}


def test_known_settings_are_kept_and_others_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    given = {"acks": "1", "serializer.class": "x"}
    with caplog.at_level(logging.WARNING):
        assert KafkaProducerConfig.known(given) == {"acks": "1"}
    assert caplog.messages == ["Property serializer.class is not valid"]


def test_nothing_changes_for_those_who_do_not_ask_for_idempotence() -> None:
    config = KafkaProducerConfig.of(SERVERS)
    assert (config.enable_idempotence, config.transactional_id) == (False, None)
    assert (config.acks, config.retries, config.api_versions_request) == ("1", 0, False)
    assert config.transaction_timeout_ms == 60000


@pytest.mark.parametrize("given", [{"enable.idempotence": "true"}, {"transactional.id": "id"}])
def test_what_idempotence_changes(given: dict[str, str]) -> None:
    config = KafkaProducerConfig.of({**SERVERS, **given})
    assert config.enable_idempotence
    assert (config.acks, config.retries, config.api_versions_request) == ("all", 2**31 - 1, True)
    chosen = {"acks": "-1", "retries": "7", "max.in.flight.requests.per.connection": "5"}
    config = KafkaProducerConfig.of({**SERVERS, **given, **chosen})
    assert (config.acks, config.retries) == ("-1", 7)


@pytest.mark.parametrize(
    ("key", "value", "needed"),
    [
        ("acks", "1", "all"),
        ("acks", "0", "all"),
        ("retries", "0", "more"),
        ("max.in.flight.requests.per.connection", "6", "at most 5"),
        ("guarantee.message.order", "false", "true"),
        ("api.versions.request", "false", "true"),
    ],
)
def test_settings_that_idempotence_refuses(key: str, value: str, needed: str) -> None:
    for given, name in (
        ({"enable.idempotence": "true"}, "enable.idempotence=true"),
        ({"transactional.id": "id"}, "transactional.id"),
    ):
        text = f"{key} has value {value}, and {name} needs {needed}."
        with pytest.raises(ConfigError) as caught:
            KafkaProducerConfig.of({**SERVERS, **given, key: value})
        assert str(caught.value) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"transactional.id": ""}, "transactional.id has an empty value"),
        (
            {"transactional.id": "id", "enable.idempotence": "false"},
            "enable.idempotence has value false, and transactional.id needs it true",
        ),
        ({"transactional.id": "id", "transaction.timeout.ms": "0"}, "not in the range"),
    ],
)
def test_transactional_ids_that_are_refused(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        KafkaProducerConfig.of({**SERVERS, **given})
