"""Transactional producers, members of a group that make records from records, and readers.

Writers spread each transaction over partitions of two topics; converters consume one of these, and
write an output for each record together with the offsets of their group. Some transactions are
aborted on purpose. Everybody outlives any fault and writes down what they know.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from integration.cluster.cluster import Cluster, eventually
from integration.faults.history import History
from integration.faults.load import Address, Task
from integration.faults.transactions import clients
from integration.faults.transactions.clients import Client, Taken, TransactionError
from integration.faults.transactions.records import Record, decode, encode
from kafka08.common import READ_COMMITTED
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.standalone import StandaloneConsumer

ORDERS, NOTES, PARCELS = "orders", "notes", "parcels"
TOPICS = (ORDERS, NOTES, PARCELS)
GROUP = "packers"
PROPS = {
    "transaction.state.log.num.partitions": 4,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
}
MOST_RECORDS = 8
ABORTED = 0.2  # of all transactions, on purpose
FLUSHED = 0.7  # of these, so that readers have something to leave out
READ_S = 60.0
CLOSE_S = 30.0  # for a client to close, and for its task to end then
MAX_OFFSET = (1 << 63) - 1


class Transactor(Task):
    """Begins transactions and ends them, with one client after the other."""

    def __init__(self, client: Client, history: History, pause_s: float) -> None:
        super().__init__(client.id)
        self.committed = 0
        self._client = client
        self._history = history
        self._pause_s = pause_s
        self._rng = random.Random(client.id)
        self._is_open = False
        self._count = 0

    def step(self) -> None:
        if not self._is_open:
            try:
                self._client.open()
                self._is_open = True
            except TransactionError:
                self._ending.wait(0.5)
                return
        self._work()
        self._ending.wait(self._rng.uniform(0, 2 * self._pause_s))

    def _work(self) -> None:
        raise NotImplementedError

    def _transact(
        self, records: Sequence[tuple[str, int, Record | None]], *, offsets: bool
    ) -> bool:
        """Send a record to each topic and partition, which is made from another one if that is
        named. Whether the transaction is committed for sure."""
        number = self._count
        self._count += 1
        named = [
            [topic, partition, str(source) if source else None]
            for topic, partition, source in records
        ]
        self._history.add("begun", id=self.name, x=number, r=named)
        commits = self._rng.random() >= ABORTED
        asked = False
        try:
            self._client.begin()
            for place, (topic, partition, _) in enumerate(records):
                value = encode(Record(self.name, number, place))
                self._client.send(topic, partition, value)
            if offsets:
                self._client.offsets()
            if commits:
                asked = True
                self._history.add("asked", id=self.name, x=number)
                self._client.commit()
                self.committed += 1
                self.progress_at = time.monotonic()
            else:
                if self._rng.random() < FLUSHED:
                    self._client.flush()
                self._client.abort()
            self._history.add("committed" if commits else "aborted", id=self.name, x=number)
        except TransactionError as error:
            what = "unknown" if asked else "aborted"
            self._history.add(what, id=self.name, x=number, why=str(error))
            self._recover(error)
            return False
        return commits

    def _recover(self, error: TransactionError) -> None:
        self._is_open = False
        if error.abortable:
            with contextlib.suppress(TransactionError):
                self._client.abort()
                self._is_open = True

    def abandon(self) -> None:
        """End without going on for an answer. A client may not even close."""
        self.end()
        closing = threading.Thread(target=self._client.close, daemon=True)
        closing.start()
        closing.join(CLOSE_S)

    def where(self) -> str:
        """The place in the client's code where it is, or waits."""
        frame = sys._current_frames().get(self.ident or 0)
        places = traceback.extract_stack(frame) if frame else []
        inside = [each for each in places if each.filename == clients.__file__]
        return f"{inside[-1].name}, line {inside[-1].lineno}" if inside else "no call of its client"

    def _close(self) -> None:
        self._client.close()


class Writer(Transactor):
    """Writes to the first two topics."""

    def __init__(self, client: Client, history: History, pause_s: float, partitions: int) -> None:
        super().__init__(client, history, pause_s)
        self._places = [(topic, n) for topic in (ORDERS, NOTES) for n in range(partitions)]

    def _work(self) -> None:
        chosen = self._rng.choices(self._places, k=self._rng.randint(2, MOST_RECORDS))
        self._transact([(*place, None) for place in chosen], offsets=False)


class Converter(Transactor):
    """Writes a record to the last topic for each of the first."""

    def __init__(self, client: Client, history: History, pause_s: float, partitions: int) -> None:
        super().__init__(client, history, pause_s)
        self._partitions = partitions

    def _work(self) -> None:
        try:
            taken = self._client.poll()
        except TransactionError:
            self._is_open = False
            return
        if not taken:
            self.progress_at = time.monotonic()
            return
        records = []
        for each in taken:
            source = decode(each.value)
            assert source is not None, f"foreign bytes in {ORDERS}: {each}"
            records.append((PARCELS, self._rng.randrange(self._partitions), source))
        if not self._transact(records, offsets=True) and self._is_open:
            try:
                self._client.rewind()
            except TransactionError:
                self._is_open = False


class CommittedReader(Task):
    """Our consumer at work on a topic; what it is shown is written down in ``history`` as ``what``.
    ``last``: it ends when it has read these offsets of partitions, and there is no more for a
    moment; None: when it is told to."""

    def __init__(
        self,
        topic: str,
        bootstrap: Sequence[Address],
        history: History,
        what: str = "shown",
        last: Mapping[int, int] | None = None,
    ) -> None:
        super().__init__(f"kafka08-{topic}")
        self._topic = topic
        self._history = history
        self._what = what
        self._left = None if last is None else dict(last)
        config = ConsumerConfig(
            group_id=self.name,
            zookeeper_connect="none",
            api_versions_request=True,
            isolation_level=READ_COMMITTED,
            auto_offset_reset="smallest",
            consumer_timeout_ms=500,
            socket_timeout_ms=4000,
        )
        self._consumer = StandaloneConsumer(bootstrap, config)
        self._stream: Any = None

    def step(self) -> None:
        if self._stream is None:
            self._stream = self._consumer.stream(self._topic)
        try:
            message = next(self._stream)
        except ConsumerTimeoutError:
            if self._left is not None and not self._left:
                self.end()
            return
        taken = Taken(message.partition, message.offset, bytes(message.value))
        note(self._history, self._what, "kafka08", self._topic, [taken])
        if self._left is not None and taken.offset >= self._left.get(taken.partition, MAX_OFFSET):
            del self._left[taken.partition]

    def _close(self) -> None:
        self._consumer.close()


class LibrdkafkaReader(Task):
    """librdkafka's consumer on all topics, now and then again from somewhere before."""

    def __init__(self, bootstrap: Sequence[Address], history: History, partitions: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        super().__init__("librdkafka-reader")
        self._history = history
        self._consumer = Consumer(
            {
                "bootstrap.servers": ",".join(f"{host}:{port}" for host, port in bootstrap),
                "group.id": self.name,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._consumer.assign(
            [TopicPartition(topic, number, 0) for topic in TOPICS for number in range(partitions)]
        )
        self._ends: dict[tuple[str, int], int] = {}

    def step(self) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        message = self._consumer.poll(0.5)
        if message is not None and not message.error():
            place = message.topic(), message.partition()
            self._ends[place] = max(self._ends.get(place, 0), message.offset())
            taken = Taken(message.partition(), message.offset(), message.value())
            note(self._history, "shown", "librdkafka", message.topic(), [taken])
        elif message is None and self._ends and random.random() < 0.1:
            (topic, partition), end = random.choice(list(self._ends.items()))
            offset = random.randint(max(0, end - 300), end)
            with contextlib.suppress(KafkaException):
                self._consumer.seek(TopicPartition(topic, partition, offset))

    def _close(self) -> None:
        self._consumer.close()


def note(history: History, what: str, who: str, topic: str, taken: Sequence[Taken]) -> None:
    """The messages that a reader was shown, by partition."""
    for partition in sorted({each.partition for each in taken}):
        pairs = []
        for each in taken:
            if each.partition == partition:
                record = decode(each.value)
                pairs.append([each.offset, None if record is None else str(record)])
        history.add(what, who=who, at=[topic, partition], v=pairs)


class TransactionalLoad:
    """``count`` writers and converters of each kind of client, and readers. ``start`` it, and when
    the faults are over ``finish`` it."""

    def __init__(
        self,
        cluster: Cluster,
        history: History,
        directory: Path,
        *,
        partitions: int,
        count: int,
        pause_s: float,
        say: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._history = history
        self._directory = directory
        self._partitions = partitions
        self._count = count
        self._pause_s = pause_s
        self._say = say
        self._bootstrap = [(b.host.address, b.port) for b in cluster.brokers.values()]
        self._writers: list[Transactor] = []
        self._converters: list[Transactor] = []
        self._readers: list[Task] = []

    @property
    def tasks(self) -> list[Task]:
        return [*self._writers, *self._converters, *self._readers]

    @property
    def transactors(self) -> list[Transactor]:
        return [*self._writers, *self._converters]

    @property
    def committed(self) -> int:
        return sum(each.committed for each in self.transactors)

    def start(self, lists: Sequence[Sequence[int]], config: dict[str, object]) -> None:
        """Make the topics, with these replicas by partition, and begin."""
        for topic in TOPICS:
            self._cluster.new_topic(*lists, config=config, name=topic)
        more = (self._history, self._pause_s, self._partitions)
        for kind in clients.CLIENTS:
            for number in range(self._count):
                self._writers.append(Writer(self._client(f"{kind}-writer-{number}"), *more))
                converter = self._client(f"{kind}-converter-{number}", GROUP, ORDERS)
                self._converters.append(Converter(converter, *more))
        self._readers += [
            CommittedReader(topic, self._bootstrap, self._history) for topic in TOPICS
        ]
        self._readers.append(LibrdkafkaReader(self._bootstrap, self._history, self._partitions))
        for task in self.tasks:
            task.start()

    def _client(self, id_: str, group: str = "", topic: str = "") -> Client:
        kind = clients.CLIENTS[id_.partition("-")[0]]
        return kind(id_, self._bootstrap, self._directory, group, topic)

    def finish(self, patience_s: float) -> Iterator[str]:
        """End everything, and have all of it read by each kind of reader. Yields a line for
        all that does not come to its end in time."""
        yield from self._end(self._writers, patience_s)
        yield from self._until("every order has its parcel", self._is_converted, patience_s)
        yield from self._end(self._converters, patience_s)
        yield from self._until("no open transaction", self._is_stable, patience_s)
        for reader in self._readers:
            reader.end()
        for reader in self._readers:
            reader.join(30)
        for topic in TOPICS:
            try:
                self._read_whole(topic)
            except Exception as error:
                yield f"{topic} could not be read as a whole: {error!r}"

    def _end(self, tasks: Sequence[Transactor], patience_s: float) -> Iterator[str]:
        for task in tasks:
            task.end()
        deadline = time.monotonic() + patience_s
        for task in tasks:
            task.join(max(0.0, deadline - time.monotonic()))
            if task.is_alive():
                yield f"{task.name}: its last transaction does not end, in {task.where()}"
                task.abandon()
                task.join(CLOSE_S)

    @staticmethod
    def _until(what: str, probe: Callable[[], bool], patience_s: float) -> Iterator[str]:
        try:
            eventually(what, probe, patience_s)
        except AssertionError as error:
            yield str(error)

    def _is_converted(self) -> bool:
        time.sleep(1)
        try:
            orders, parcels = (
                clients.librdkafka_whole(self._bootstrap, topic, self._partitions, 10)
                for topic in (ORDERS, PARCELS)
            )
        except TimeoutError:
            return False
        return len(parcels) >= len(orders)

    def _is_stable(self) -> bool:
        """The last stable offset of each partition is its end."""
        from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
        from confluent_kafka.admin import AdminClient, OffsetSpec

        address = ",".join(f"{host}:{port}" for host, port in self._bootstrap)
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        places = [
            TopicPartition(topic, number) for topic in TOPICS for number in range(self._partitions)
        ]
        ends = []
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
            asked = {each: OffsetSpec.latest() for each in places}
            found = admin.list_offsets(asked, isolation_level=level, request_timeout=10)
            try:
                ends.append({tp: future.result().offset for tp, future in found.items()})
            except KafkaException:  # a leader is new
                return False
        held = {str(tp): (ends[0][tp], end) for tp, end in ends[1].items() if ends[0][tp] != end}
        if held:
            time.sleep(0.5)
        return not held

    def _read_whole(self, topic: str) -> None:
        whole = clients.librdkafka_whole(self._bootstrap, topic, self._partitions, READ_S)
        self._say(f"{topic}: {len(whole)} committed records")
        note(self._history, "whole", "librdkafka", topic, whole)
        note(self._history, "whole", "java", topic, clients.java_whole(self._bootstrap, topic, 120))
        last = {each.partition: each.offset for each in whole}
        reader = CommittedReader(topic, self._bootstrap, self._history, "whole", last)
        reader.start()
        reader.join(READ_S)
        if reader.crash is not None:
            raise reader.crash
        if reader.is_alive():
            reader.end()
            raise TimeoutError("our reader does not come to the end")
