"""Idempotent producers of librdkafka and Java, as applications use them.

Up to five requests are in flight, and the client alone repeats them. A record is sent once as far
as the history knows, so that each copy beyond the first is a violation. A gap is a fatal error.
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from integration.faults.load import (
    ACKS_TIMEOUT_MS,
    CALL_TIMEOUT_MS,
    Address,
    NumberedProducer,
)
from integration.faults.values import Value
from integration.later import programs

_BACKLOG = 200  # records
JAVA = f"java-{programs.JAVA[-1]}"


class IdempotentProducer(NumberedProducer):
    """Does not wait for the acknowledgement of each set."""

    _failure = ""

    @abstractmethod
    def _send(self, sequence: int, data: bytes) -> None:
        """Hand a record to the client."""

    @abstractmethod
    def _serve(self, seconds: float) -> None:
        """Take acknowledgements for this long, or until the next."""

    @abstractmethod
    def _close(self) -> None: ...

    @property
    def _pending(self) -> int:
        return self._next - self.acknowledged

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self.step()
            self._await(0)
        except BaseException as error:
            self.crash = error
            raise
        finally:
            self._close()

    def step(self) -> None:
        """One set; waits while too many records are not acknowledged."""
        first, sent = self._new_set()
        self.tries += 1
        self._history.batch("send", self.partition, first, len(sent))
        for sequence, data in enumerate(sent, first.sequence):
            self._send(sequence, data)
        self._serve(0)
        self._await(_BACKLOG)
        self._pause()

    def _await(self, pending: int) -> None:
        while not self._failure and self._pending > pending and not self._abandoned.is_set():
            self._serve(0.2)
        if self._failure:
            raise AssertionError(self._failure)

    def _stored(self, sequence: int, offset: int | None) -> None:
        """``offset`` None: the client knows only that the broker has the record."""
        value = Value(self._number, sequence)
        if offset is None:
            self._history.batch("stored", self.partition, value, 1)
        else:
            self._history.batch("ack", self.partition, value, 1, o=offset)
            self.end_offset = offset + 1
        self.acknowledged += 1
        self.progress_at = time.monotonic()

    @property
    def _compression(self) -> str:
        return "gzip" if self._codec else "none"


class LibrdkafkaProducer(IdempotentProducer):
    """Through confluent-kafka. The client's own log is beside the history."""

    def __init__(self, *args: Any, bootstrap: Sequence[Address]) -> None:
        from confluent_kafka import Producer

        super().__init__(*args)
        self._log = logging.FileHandler(self._history.path.with_name(f"{self.name}.log"))
        self._log.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger = logging.Logger(self.name)
        self._logger.addHandler(self._log)
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
                "compression.type": self._compression,
                "log_level": 7,
                "debug": "eos,topic,metadata,broker",
                "error_cb": self._error,
            },
            logger=self._logger,
        )

    def _send(self, sequence: int, data: bytes) -> None:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self._stored(sequence, message.offset())
            else:
                self._failure = f"not delivered: {error}"

        self._producer.produce(self._topic, data, partition=self.partition, on_delivery=delivered)

    def _serve(self, seconds: float) -> None:
        self._producer.poll(seconds)

    def _close(self) -> None:
        """The client has no connection of ours, and may still log."""
        self._logger.removeHandler(self._log)
        self._logger.addHandler(logging.NullHandler())
        self._log.close()

    def _error(self, error: Any) -> None:
        if error.fatal():
            self._failure = f"fatal: {error}"


class JavaProducer(IdempotentProducer):
    """In a process of its own: a thread reads what it says of each record."""

    def __init__(self, *args: Any, bootstrap: Sequence[Address]) -> None:
        super().__init__(*args)
        self._heard = threading.Event()
        self._process = subprocess.Popen(
            programs.command(
                JAVA,
                "send",
                ",".join(f"{host}:{port}" for host, port in bootstrap),
                self._topic,
                self.partition,
                self._compression,
                ACKS_TIMEOUT_MS,
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _send(self, sequence: int, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data.hex().encode() + os.linesep.encode())

    def _serve(self, seconds: float) -> None:
        self._heard.clear()
        if seconds:
            self._heard.wait(seconds)
        if self._process.poll() is not None:
            self._failure = f"the producer ended with {self._process.returncode}"

    def _close(self) -> None:
        """Records that were not acknowledged by now do not have to be any more."""
        self._process.kill()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"\n"):
                return  # it was killed
            sequence, offset, *error = line.decode().split(maxsplit=2)
            if error:
                self._failure = f"{sequence} was not delivered: {error[0]}"
            else:
                self._stored(int(sequence), None if offset == "-1" else int(offset))
            self._heard.set()
