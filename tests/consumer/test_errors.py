"""Errors of consumers: their texts, and the JVM classes that tools print for them."""

from __future__ import annotations

import pytest

from kafka08.consumer.errors import (
    ConsumerTimeoutError,
    MessageStreamsExistError,
    StreamFailedError,
)
from kafka08.errors import KafkaError, code_of


@pytest.mark.parametrize(
    ("error", "java_class"),
    [
        (ConsumerTimeoutError(), "kafka.consumer.ConsumerTimeoutException"),
        (MessageStreamsExistError(), "kafka.common.MessageStreamsExistException"),
        (StreamFailedError(), "java.lang.IllegalStateException"),
    ],
)
def test_texts_and_classes(error: KafkaError, java_class: str) -> None:
    assert error.java_class == java_class
    assert str(error) == error.text != KafkaError.text
    assert (code_of(error), error.retriable) == (-1, False)
