"""Requests of a producer to the coordinators of its transactional id and of groups.

Errors that pass are tried again: a coordinator that moves, loads, or still ends the last
transaction. Does not know the state of the producer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import Response, flatten
from kafka08.client.retry import Retry
from kafka08.common import Broker
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    InvalidProducerEpochError,
    KafkaError,
    LaterCode,
    NotCoordinatorForConsumerError,
    ProtocolError,
)
from kafka08.producer.errors import (
    ConcurrentTransactionsError,
    ProducerClosedError,
    ProducerFencedError,
    UnsupportedVersionError,
    WaitTimeoutError,
    answered,
)
from kafka08.protocol.negotiation import NoApiVersionsError, NotServedError
from kafka08.runtime import Lock, Runtime

Key = tuple[int, str]
"""GROUP or TRANSACTION of ``client.cluster``, and the name."""

# The markers of a transaction take no longer, most of the time.
_CONCURRENT_S = 0.02
_MOVED = (ConsumerCoordinatorNotAvailableError, NotCoordinatorForConsumerError)
# Coordinators answer the second one in versions before they can say fenced.
_FENCED = (ProducerFencedError.code, InvalidProducerEpochError.code)
_WORDS = ("group", "transactional.id")


class Coordinators:
    """``backoff``: seconds between tries. May be called by any task; ``stop`` ends all waits."""

    def __init__(self, cluster: ClusterClient, runtime: Runtime, backoff: float) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._backoff = backoff
        self._stopping = runtime.event()
        self._found: dict[Key, Broker] = {}
        self._have_served = False

    def lock(self) -> Lock:
        """For callers that ask one after the other."""
        return self._runtime.lock()

    def stop(self) -> None:
        self._stopping.set()

    def call(self, key: Key, request: object, patience: float) -> Response:
        """The answer of the coordinator of ``key``, which is without errors.

        Raises the error of a code, UnsupportedVersionError if the brokers do not serve
        transactions, WaitTimeoutError after ``patience`` seconds, and ProducerClosedError.
        """

        def ask() -> Response:
            try:
                answer = self._cluster.call(self._coordinator(key), request, api_versions=True)
                _raise_error_in(answer, f"{_WORDS[key[0]]} {key[1]}")
            except (OSError, ProtocolError, *_MOVED):
                self._found.pop(key, None)
                raise
            return answer

        return self._until(patience, ask)

    def call_any(self, request: object, patience: float) -> Response:
        """The same of any broker."""

        def ask() -> Response:
            answer = self._cluster.call_any(request)
            _raise_error_in(answer, type(request).__name__)
            return answer

        return self._until(patience, ask)

    def _coordinator(self, key: Key) -> Broker:
        found = self._found.get(key)
        if found is None:
            kind, name = key
            try:
                found = self._cluster.coordinator(name, kind)
            except NoApiVersionsError as error:
                self._refuse_unless_served(error)
                raise
            self._found[key] = found
            self._have_served = True
        return found

    def _refuse_unless_served(self, error: NoApiVersionsError) -> None:
        if not self._have_served:
            raise UnsupportedVersionError(
                "Transactions need brokers that answer ApiVersions, and none of bootstrap.servers "
                "does. Brokers of 0.8.2.2 do not, nor does kafka08 with api.versions.enable=false "
                f"or beside a broker of 0.8.2.2: {error}"
            ) from error

    def _until(self, patience: float, step: Callable[[], Response]) -> Response:
        retry = Retry(
            self._runtime, self._pause, patience=patience, stopping=self._stopping, passes=_passes
        )
        try:
            return retry.run(step)
        except NotServedError as error:
            raise UnsupportedVersionError(str(error)) from error
        except (OSError, KafkaError) as error:
            if not _passes(error):
                raise
            self._give_up(patience, error)

    def _give_up(self, patience: float, error: Exception) -> NoReturn:
        if self._stopping.is_set():
            raise ProducerClosedError from error
        raise WaitTimeoutError(
            f"The brokers did not do it within {patience:g} s; it may be done yet: {error}"
        ) from error

    def _pause(self, error: Exception) -> float:
        if isinstance(error, ConcurrentTransactionsError):
            return min(_CONCURRENT_S, self._backoff)
        return self._backoff


def _passes(error: Exception) -> bool:
    """Whether another try may succeed."""
    if isinstance(error, NotServedError):
        return False
    return isinstance(error, OSError | ProtocolError) or getattr(error, "retriable", False)


def _raise_error_in(answer: Response, where: str) -> None:
    errors = [
        ProducerFencedError(f"{where}: {ProducerFencedError.text}")
        if code in _FENCED
        else answered(code, name)
        for code, name in _codes_in(answer, where)
        if code not in (NO_ERROR, LaterCode.OPERATION_NOT_ATTEMPTED)
    ]
    if errors:
        raise next((error for error in errors if not error.retriable), errors[0])


def _codes_in(answer: Response, where: str) -> list[tuple[int, object]]:
    topics = getattr(answer, "topics", None)
    if topics is None:
        return [(answer.error, where)]
    return [(entry.error, tp) for tp, entry in flatten(topics).items()]
