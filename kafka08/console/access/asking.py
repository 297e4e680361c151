"""Asks a broker what 0.8.2.2 does not know, and says in words why there is no answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

from werkzeug.exceptions import Conflict

from kafka08.client.admin import RemoteError
from kafka08.client.requests import Call
from kafka08.console.forms import in_words
from kafka08.console.pages.cluster import state_of
from kafka08.console.site import Visit
from kafka08.errors import AdminOperationError, KafkaError, LaterCode

logger = logging.getLogger("kafka.console.Access")

ORIGINALS, NO_AUTHORIZER, FAILED = "original-brokers", "no-authorizer", "failed"
T = TypeVar("T")


class Gap(NamedTuple):
    """Why there is nothing to show. ``kind``: ORIGINALS, NO_AUTHORIZER or FAILED. ``text``:
    sentences."""

    kind: str
    text: str


def originals(visit: Visit, what: str) -> Gap | None:
    """The gap where no broker that is up knows ``what``."""
    found = _broker(visit, what)
    return found if isinstance(found, Gap) else None


def _broker(visit: Visit, what: str) -> int | Gap:
    """The one that is asked."""
    state = state_of(visit)
    if state.asked is not None:
        return state.asked
    if not state.live:
        return Gap(FAILED, "No broker is up.")
    return Gap(
        ORIGINALS,
        f"No broker that is up has {what}: Kafka 0.8.2.2 does not know them. Brokers of this "
        "project have them with api.versions.enable=true.",
    )


def asked(visit: Visit, what: str, read: Callable[[Call], T]) -> T | Gap:
    """The result of ``read`` by one broker, or why there is none."""
    broker = _broker(visit, what)
    if isinstance(broker, Gap):
        return broker
    try:
        return read(partial(visit.site.browser.call_broker, broker))
    except RemoteError as error:
        if error.wire_code == LaterCode.SECURITY_DISABLED:
            return Gap(NO_AUTHORIZER, "Brokers decide by no rules: no authorizer is set.")
        return Gap(FAILED, _refusal(error, what, "Describe"))
    except (OSError, KafkaError) as error:
        logger.warning("Brokers did not show %s: %s", what, error)
        return Gap(FAILED, f"Broker {broker} did not answer: {in_words(error)}.")


def needed(visit: Visit, what: str, read: Callable[[Call], T]) -> T:
    """As ``asked``, for a form, which is of no use without the answer. Raises KafkaError, and
    AdminOperationError where it would not help to try again."""
    found = asked(visit, what, read)
    if isinstance(found, Gap):
        kind = KafkaError if found.kind == FAILED else AdminOperationError
        raise kind(found.text.rstrip("."))
    return found


@contextmanager
def changing(visit: Visit, what: str) -> Iterator[Call]:
    """A call to one broker that changes something. Raises Conflict where no broker can, and
    AdminOperationError if the broker refuses."""
    broker = _broker(visit, what)
    if isinstance(broker, Gap):
        raise Conflict(broker.text)
    try:
        yield partial(visit.site.browser.call_broker, broker)
    except RemoteError as error:
        raise AdminOperationError(_refusal(error, what, "Alter").rstrip(".")) from None


def _refusal(error: RemoteError, what: str, operation: str) -> str:
    if error.wire_code == LaterCode.CLUSTER_AUTHORIZATION_FAILED:
        return (
            f"Brokers refuse {what} to the console: its principal needs {operation} on the cluster."
        )
    return f"A broker refused: {error}."
