"""The calls of a user of transactions: those that end one wait for all records first."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence

from kafka08.errors import KafkaError
from kafka08.producer.batch import ProducerBatch
from kafka08.producer.errors import WaitTimeoutError
from kafka08.producer.transactions.manager import (
    ConsumerGroupMetadata,
    Offsets,
    TransactionManager,
)
from kafka08.runtime import Clock

logger = logging.getLogger("org.apache.kafka.clients.producer.KafkaProducer")


class TransactionCalls:
    """``patience``: seconds that a call may take. ``await_records`` waits up to so many seconds for
    the end of all records, and says whether they have ended. ``finish`` reports the end of some."""

    def __init__(
        self,
        manager: TransactionManager,
        clock: Clock,
        patience: float,
        await_records: Callable[[float], bool],
        finish: Callable[[Sequence[ProducerBatch]], object],
    ) -> None:
        self._manager = manager
        self._now = clock.monotonic
        self._patience = patience
        self._await_records = await_records
        self._finish = finish

    def init(self) -> None:
        self._manager.init(self._patience)

    def begin(self) -> None:
        self._manager.begin()

    def send_offsets(self, offsets: Offsets, group: str | ConsumerGroupMetadata) -> None:
        if isinstance(group, str):
            group = ConsumerGroupMetadata(group)
        self._manager.send_offsets(offsets, group, self._patience)

    def commit(self) -> None:
        self._manager.begin_commit()
        self._manager.commit(self._after_records(self._patience))

    def abort(self) -> None:
        self._abort(self._patience)

    def _abort(self, patience: float) -> None:
        self._finish(self._manager.begin_abort())
        self._manager.abort(self._after_records(patience))

    def _after_records(self, patience: float) -> float:
        """Wait for the end of all records; returns the seconds that are left."""
        deadline = self._now() + patience
        if not self._await_records(patience):
            raise WaitTimeoutError(f"Not all records were acknowledged within {patience:g} s")
        return deadline - self._now()

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Begin a transaction, and end it with the block."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            if self._manager.must_end:
                self.abort()
            raise

    def close(self, timeout: float | None) -> float | None:
        """Abort a transaction that is open, as it holds readers back. Returns the seconds that are
        left of ``timeout``."""
        begin = self._now()
        if self._manager.must_end:
            patience = self._patience if timeout is None else min(timeout, self._patience)
            try:
                self._abort(patience)
            except KafkaError as error:
                logger.warning("The open transaction was not aborted: %s", error)
        return None if timeout is None else max(timeout - (self._now() - begin), 0.0)
