"""Producers of librdkafka with enable.idempotence on, as applications use them.

Up to five requests are in flight, and the client alone repeats them. A record is sent once as far
as the history knows, so that each copy beyond the first is a violation. A gap is a fatal error.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from typing import Any

from integration.faults import values
from integration.faults.history import History
from integration.faults.load import ACKS_TIMEOUT_MS, CALL_TIMEOUT_MS, GZIP, Address, Leaders, Task
from integration.faults.values import Value

_BACKLOG = 200  # records


class IdempotentProducer(Task):
    """Sends numbered sets to a partition, without waiting for the acknowledgement of each."""

    def __init__(
        self,
        number: int,
        topic: str,
        partition: int,
        leaders: Leaders,
        history: History,
        pause_s: float,
        bootstrap: Sequence[Address],
    ) -> None:
        from confluent_kafka import Producer

        super().__init__(f"producer-{number}-{partition}", topic, partition, leaders)
        self.acknowledged = 0
        self.tries = 0
        self.end_offset = 0
        self._number = number
        self._history = history
        self._pause_s = pause_s
        self._next = 0
        self._abandoned = threading.Event()
        self._failure = ""
        self._producer = Producer(
            {
                "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in bootstrap),
                "client.id": self.name,
                "enable.idempotence": True,
                "enable.gapless.guarantee": True,
                "message.timeout.ms": 0,
                "request.timeout.ms": ACKS_TIMEOUT_MS,
                "socket.timeout.ms": CALL_TIMEOUT_MS,
                "reconnect.backoff.max.ms": 500,
                "linger.ms": 2,
                "compression.type": "gzip" if number % 3 == GZIP + 1 else "none",
                "log_level": 0,
                "error_cb": self._error,
            }
        )

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self.step()
            while len(self._producer) and not self._abandoned.is_set():
                self._producer.flush(0.5)
                self._check()
        except BaseException as error:
            self.crash = error
            raise

    def step(self) -> None:
        """One set; waits while too many records are not acknowledged."""
        count = random.randint(1, 8)
        first = Value(self._number, self._next)
        self._next += count
        self.tries += 1
        self._history.batch("send", self.partition, first, count)
        for sequence in range(first.sequence, self._next):
            value = values.encode(self.partition, Value(self._number, sequence))
            self._producer.produce(
                self._topic, value, partition=self.partition, on_delivery=self._delivered
            )
        self._producer.poll(0)
        while len(self._producer) > _BACKLOG and not self._abandoned.is_set():
            self._producer.poll(0.2)
            self._check()
        self._check()
        time.sleep(random.uniform(0, 2 * self._pause_s))

    def abandon(self) -> None:
        """End without going on for acknowledgements."""
        self._abandoned.set()
        self.end()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = f"not delivered: {error}"
            return
        value = values.decode(self.partition, message.value())
        assert value is not None
        offset = message.offset()
        if offset is None:  # the client knows only that the broker has it
            self._history.batch("stored", self.partition, value, 1)
        else:
            self._history.batch("ack", self.partition, value, 1, o=offset)
            self.end_offset = offset + 1
        self.acknowledged += 1
        self.progress_at = time.monotonic()

    def _error(self, error: Any) -> None:
        if error.fatal():
            self._failure = f"fatal: {error}"

    def _check(self) -> None:
        if self._failure:
            raise AssertionError(self._failure)
