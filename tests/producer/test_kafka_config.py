from __future__ import annotations

import logging

import pytest

from kafka08.producer.kafka_config import KafkaProducerConfig


def test_known_settings_are_kept_and_others_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    given = {"acks": "1", "serializer.class": "x"}
    with caplog.at_level(logging.WARNING):
        assert KafkaProducerConfig.known(given) == {"acks": "1"}
    assert caplog.messages == ["Property serializer.class is not valid"]
