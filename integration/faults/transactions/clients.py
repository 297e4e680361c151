"""Transactional producers as applications use them, and members of groups: librdkafka and Java.

Both have one face. ``TransactionError`` says whether the transaction can still be aborted; if it
cannot, only ``open`` helps, after which the outcome of a commit is not known.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from integration import builds

JAVA = "org.apache.kafka:kafka-clients:3.9.1"
HERE = Path(__file__).parent
PRODUCER = {
    "transaction.timeout.ms": 15_000,
    "request.timeout.ms": 4_000,
    "retry.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "linger.ms": 2,
}
# Of a call: shorter than many faults, so that some commits have no answer.
CALL_S = 8.0
MOST_TAKEN = 20
Address = tuple[str, int]


class TransactionError(Exception):
    """``abortable``: the producer can go on once it has aborted the transaction."""

    def __init__(self, text: str, *, abortable: bool) -> None:
        super().__init__(text)
        self.abortable = abortable


class Taken(NamedTuple):
    """A record that a member of a group was given."""

    partition: int
    offset: int
    value: bytes


class Client(ABC):
    """``id_``: the transactional id. ``group`` and ``topic``: what it consumes, if anything. All
    calls raise TransactionError."""

    def __init__(
        self, id_: str, bootstrap: Sequence[Address], directory: Path, group: str, topic: str
    ) -> None:
        self.id = id_
        self._bootstrap = ",".join(f"{host}:{port}" for host, port in bootstrap)
        self._directory = directory
        self._group = group
        self._topic = topic

    @abstractmethod
    def open(self) -> None:
        """A new producer, and a new member, in the place of those before. Ends a transaction that
        these left open."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, partition: int, value: bytes) -> None: ...

    @abstractmethod
    def flush(self) -> None: ...

    @abstractmethod
    def offsets(self) -> None:
        """Add the member's positions to the transaction."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def poll(self) -> list[Taken]:
        """The next committed records for the member; empty if there are none for a moment."""

    @abstractmethod
    def rewind(self) -> None:
        """The member goes on at the offsets of its group."""

    @abstractmethod
    def close(self) -> None:
        """From any thread; calls under way fail or end."""


class LibrdkafkaClient(Client):
    """Through confluent-kafka. Its logs are beside the history."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._producer: Any = None
        self._consumer: Any = None
        self._taken: list[Taken] = []
        self._log = logging.FileHandler(self._directory / f"{self.id}.log")
        self._log.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger = logging.Logger(self.id)
        self._logger.addHandler(self._log)

    def open(self) -> None:
        from confluent_kafka import Consumer, Producer

        common = {"bootstrap.servers": self._bootstrap, "client.id": self.id, "log_level": 6}
        self._drop()
        self._producer = Producer(
            {
                **common,
                **PRODUCER,
                "transactional.id": self.id,
                "socket.timeout.ms": 4_000,
                "log_level": 7,
                "debug": "eos",
            },
            logger=self._logger,
        )
        with _translated():
            self._producer.init_transactions(4 * CALL_S)
        if self._group:
            settings = {
                "group.id": self._group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 1000,
                "partition.assignment.strategy": "range",
                "reconnect.backoff.max.ms": 500,
            }
            self._consumer = Consumer({**common, **settings}, logger=self._logger)
            # With callbacks, the member gains and loses partitions in its own polls alone.
            self._consumer.subscribe([self._topic], on_assign=self._moved, on_revoke=self._moved)

    def begin(self) -> None:
        with _translated():
            self._producer.begin_transaction()

    def send(self, topic: str, partition: int, value: bytes) -> None:
        with _translated():
            self._producer.produce(topic, value, partition=partition)
            self._producer.poll(0)

    def flush(self) -> None:
        with _translated():
            self._producer.flush(CALL_S)

    def offsets(self) -> None:
        from confluent_kafka import TopicPartition

        ends = {each.partition: each.offset + 1 for each in self._taken}
        positions = [TopicPartition(self._topic, *each) for each in ends.items()]
        with _translated():
            metadata = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(positions, metadata, CALL_S)

    def commit(self) -> None:
        with _translated():
            self._producer.commit_transaction(CALL_S)

    def abort(self) -> None:
        with _translated():
            self._producer.abort_transaction(CALL_S)

    def poll(self) -> list[Taken]:
        self._taken = []
        while len(self._taken) < MOST_TAKEN:
            with _translated():
                found = self._consumer.poll(0 if self._taken else 0.3)
            if found is None:
                break
            if not found.error():  # after one the consumer goes on by itself
                self._taken.append(Taken(found.partition(), found.offset(), found.value()))
        return self._taken

    def _moved(self, consumer: object, partitions: object) -> None:
        """Messages that were taken and not committed yet may be another member's now."""
        self._taken = []

    def rewind(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        with _translated():
            for each in self._consumer.committed(self._consumer.assignment(), CALL_S):
                offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
                self._consumer.seek(TopicPartition(each.topic, each.partition, offset))

    def close(self) -> None:
        self._drop()
        self._logger.removeHandler(self._log)
        self._logger.addHandler(logging.NullHandler())
        self._log.close()

    def _drop(self) -> None:
        consumer, self._consumer, self._producer = self._consumer, None, None
        if consumer is not None:
            consumer.close()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        found = error.args[0]
        raise TransactionError(str(found), abortable=found.txn_requires_abort()) from None
    except BufferError as error:
        raise TransactionError(str(error), abortable=True) from None


def java_command() -> list[str]:
    """Raises MissingError."""
    return [*builds.java("faults-transactor", [HERE / "Transactor.java"], JAVA), "Transactor"]


def _words(settings: Mapping[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]


class JavaClient(Client):
    """In a process of its own, which gets a line for each call and answers with one: ``ok``, with
    what it polled as PARTITION:OFFSET:VALUE, or ``abort`` or ``fatal`` with an error."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        settings = {
            **PRODUCER,
            "bootstrap.servers": self._bootstrap,
            "client.id": self.id,
            "transactional.id": self.id,
            "max.block.ms": round(CALL_S * 1000),
            "delivery.timeout.ms": round(CALL_S * 1000),
            **({"group": self._group, "topic": self._topic} if self._group else {}),
        }
        with (self._directory / f"{self.id}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*java_command(), *_words(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
            )

    def _ask(self, *words: object) -> list[str]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            answer = self._process.stdout.readline()
        except (OSError, ValueError) as error:
            raise TransactionError(str(error), abortable=False) from None
        kind, _, text = answer.rstrip("\n").partition(" ")
        if kind != "ok":
            raise TransactionError(text or "the process ended", abortable=kind == "abort")
        return text.split()

    def open(self) -> None:
        self._ask("open")

    def begin(self) -> None:
        self._ask("begin")

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._ask("send", topic, partition, value.hex())

    def flush(self) -> None:
        self._ask("flush")

    def offsets(self) -> None:
        self._ask("offsets")

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")

    def poll(self) -> list[Taken]:
        return list(map(_taken, self._ask("poll")))

    def rewind(self) -> None:
        self._ask("rewind")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _taken(text: str) -> Taken:
    partition, offset, value = text.split(":")
    return Taken(int(partition), int(offset), bytes.fromhex(value))


CLIENTS: Mapping[str, Callable[..., Client]] = {"java": JavaClient, "librdkafka": LibrdkafkaClient}


def java_whole(bootstrap: Sequence[Address], topic: str, timeout_s: float) -> list[Taken]:
    """All committed records of a topic, as Java's consumer reads them."""
    address = ",".join(f"{host}:{port}" for host, port in bootstrap)
    settings = {"bootstrap.servers": address, "action": "whole", "topic": topic}
    done = subprocess.run(
        [*java_command(), *_words(settings)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return list(map(_taken, done.stdout.splitlines()))


def librdkafka_whole(
    bootstrap: Sequence[Address], topic: str, partitions: int, timeout_s: float
) -> list[Taken]:
    """The same as librdkafka reads them. Raises TimeoutError if an end does not come."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    reader = Consumer(
        {
            "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in bootstrap),
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    reader.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found, ended = [], set()
    try:
        while len(ended) < partitions:
            message = reader.poll(timeout_s)
            if message is None:
                raise TimeoutError(f"of {topic} only {ended} have ended")
            if not message.error():
                found.append(Taken(message.partition(), message.offset(), message.value()))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    finally:
        reader.close()
    return found
