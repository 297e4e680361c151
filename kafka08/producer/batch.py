"""Records that are sent together, and the futures of their results.

A batch belongs to one partition and ends as a whole: stored from a base offset on, or failed.
The future of a record only holds its position in a batch. Mirrors RecordBatch and
FutureRecordMetadata of org.apache.kafka.clients.producer.internals.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.producer.errors import WaitTimeoutError
from kafka08.runtime import Event, Lock

_PACKAGE = "org.apache.kafka.clients.producer.internals"
logger = logging.getLogger(f"{_PACKAGE}.RecordBatch")
callback_logger = logging.getLogger(f"{_PACKAGE}.ErrorLoggingCallback")

NO_OFFSET = -1
# True in the task that ends batches: it must not wait for the end of one.
in_callback: ContextVar[bool] = ContextVar("in_callback", default=False)


class RecordMetadata(NamedTuple):
    """Where a record was stored; offset -1 if the broker does not answer (acks 0)."""

    topic: str
    partition: int
    offset: int


Callback = Callable[["RecordMetadata | None", "BaseException | None"], object]


def log_error(_metadata: RecordMetadata | None, error: BaseException | None) -> None:
    """The callback of tools that go on after an error (ErrorLoggingCallback)."""
    if error is not None:
        callback_logger.error("Error when sending message: %s", error)


class ProducerBatch:
    """Filled and ended under ``lock``; ``finish`` reports the end.

    ``created``: monotonic seconds. ``number`` is its position in the order of all batches.
    ``keys`` is None as long as no record has a key, ``headers`` (encoded) as long as none has any;
    ``times`` (ms) is empty unless all have one.
    """

    __slots__ = (
        "_event", "_lock", "_make_event", "attempts", "base_offset", "callbacks", "count",
        "created", "done", "error", "headers", "keys", "number", "size", "times", "tp", "values",
    )  # fmt: skip

    def __init__(
        self,
        tp: TopicPartition,
        number: int,
        created: float,
        lock: Lock,
        make_event: Callable[[], Event],
    ) -> None:
        self.tp = tp
        self.number = number
        self.created = created
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] | None = None
        self.times: list[int] = []
        self.headers: list[bytes | None] | None = None
        self.callbacks: list[tuple[int, Callback]] = []
        self.size = 0
        self.count = 0
        self.attempts = 0
        self.done = False
        self.error: BaseException | None = None
        self.base_offset = NO_OFFSET
        self._lock = lock
        self._make_event = make_event
        self._event: Event | None = None

    def stamp(self, times: Sequence[int], headers: Sequence[bytes | None] | None) -> None:
        """Add the times and headers of the records that were added last."""
        if headers is not None:
            if self.headers is None:
                self.headers = [None] * len(self.times)
            self.headers += headers
        elif self.headers is not None:
            self.headers += [None] * len(times)
        self.times += times

    def end(self, base_offset: int, error: BaseException | None) -> None:
        """End the batch and release its records. Called once, under the lock."""
        self.count = len(self.values)
        self.base_offset = base_offset
        self.error = error
        self.done = True
        self.values = []
        self.keys = None
        self.times = []
        self.headers = None

    def finish(self) -> None:
        """Call callbacks, then wake waiting tasks. Called after ``end``, without the lock."""
        callbacks, self.callbacks = self.callbacks, []
        if callbacks:
            token = in_callback.set(True)
            for index, callback in callbacks:
                self._call(callback, index)
            in_callback.reset(token)
        if self._event is not None:
            self._event.set()

    def metadata(self, index: int) -> RecordMetadata:
        offset = self.base_offset
        return RecordMetadata(*self.tp, offset + index if offset >= 0 else NO_OFFSET)

    def wait(self, timeout: float | None) -> bool:
        """Wait up to ``timeout`` seconds; returns whether it ended."""
        with self._lock:
            if self.done:
                return True
            if self._event is None:
                self._event = self._make_event()
            event = self._event
        return event.wait(timeout) or self.done

    def add_callback(self, index: int, callback: Callback) -> None:
        with self._lock:
            if not self.done:
                self.callbacks.append((index, callback))
                return
        self._call(callback, index)

    def _call(self, callback: Callback, index: int) -> None:
        """Exceptions of the callback are logged."""
        metadata = None if self.error else self.metadata(index)
        try:
            callback(metadata, self.error)
        except Exception:
            logger.exception("Error executing user-provided callback on message for %s:", metadata)


class RecordFuture:
    """The result of one ``send``. Safe to wait on from any task."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: ProducerBatch, index: int) -> None:
        self._batch = batch
        self._index = index

    def done(self) -> bool:
        return self._batch.done

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait up to ``timeout`` seconds (None: without limit) for the result.

        Raises the record's error, or WaitTimeoutError (a TimeoutError); then the record may still
        be sent.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        return self._batch.metadata(self._index)

    get = result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The record's error; None if it was stored. Waits as ``result`` does."""
        batch = self._batch
        if not batch.done and not batch.wait(timeout):
            raise WaitTimeoutError(
                f"The record for {batch.tp} was not acknowledged within {timeout} s; it is still "
                "being sent"
            )
        return batch.error

    def add_done_callback(self, callback: Callable[[RecordFuture], object]) -> None:
        """Call ``callback(future)`` when it is done, or at once if it is done already."""
        self._batch.add_callback(self._index, lambda metadata, error: callback(self))

    def __repr__(self) -> str:
        batch = self._batch
        state = "pending" if not batch.done else repr(batch.error or batch.metadata(self._index))
        return f"RecordFuture({batch.tp}, {state})"
