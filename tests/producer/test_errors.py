"""Errors of producers: which may be tried again, and what callers may catch them as."""

from __future__ import annotations

import pytest

from kafka08.errors import KafkaError, code_of
from kafka08.producer import errors


def test_a_lost_connection_is_tried_again_with_new_metadata() -> None:
    error = errors.DisconnectedError()
    assert error.retriable
    assert error.stale_metadata


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.RecordTooLargeError, 10),
        (errors.MetadataTimeoutError, 7),
        (errors.DeliveryTimeoutError, 7),
        (errors.QueueFullError, -1),
    ],
)
def test_codes_are_those_of_the_wire_where_there_is_one(kind: type[KafkaError], code: int) -> None:
    assert code_of(kind()) == code


def test_a_wait_that_ends_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        raise errors.WaitTimeoutError("late")


def test_a_forked_producer_counts_as_closed() -> None:
    with pytest.raises(errors.ProducerClosedError, match="before the process forked"):
        raise errors.ForkedProducerError
