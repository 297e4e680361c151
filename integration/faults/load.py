"""Producers and readers that outlive any fault, and write down what they see.

A producer task owns one partition and has one set in flight, so the order it wants is defined;
whatever happens it sends that set again until it is acknowledged. Connections are channels of
the product, nothing above them: metadata, retries and judgement are made here.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Sequence

from integration.faults import values
from integration.faults.history import History
from integration.faults.values import Value
from kafka08.errors import KafkaError, ProtocolError
from kafka08.message.sets import encode_set, iter_messages
from kafka08.network.channel import Channel
from kafka08.protocol import schemas

Address = tuple[str, int]

CALL_TIMEOUT_MS = 4000
ACKS_TIMEOUT_MS = 2500
FETCH_BYTES = 1 << 18
GZIP = 1
# The only refusals after which nothing was stored: unknown partition, no leader known, isr too
# small before the append. Not leader (6) may be said of a set that had been appended.
NOT_STORED = {3, 5, 19}
PATIENCE_S = 20.0


class Leaders:
    """The leaders of partitions, from any broker's metadata; shared by all tasks."""

    def __init__(self, topic: str, bootstrap: Sequence[Address]) -> None:
        self._topic = topic
        self._bootstrap = list(bootstrap)
        self._lock = threading.Lock()
        self._known: dict[int, Address] = {}
        self._asked_at = 0.0

    def of(self, partition: int) -> Address | None:
        with self._lock:
            return self._known.get(partition)

    def renew(self) -> None:
        """Ask again, unless somebody did a moment ago."""
        with self._lock:
            if time.monotonic() < self._asked_at + 0.2:
                return
            self._asked_at = time.monotonic()
        address = random.choice(self._bootstrap)
        with (
            contextlib.suppress(OSError, KafkaError),
            Channel(*address, timeout_ms=2000) as channel,
        ):
            answer = channel.call(schemas.MetadataRequest([self._topic]))
            self._take(answer)

    def _take(self, answer: schemas.MetadataResponse) -> None:
        brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        found = {
            partition.partition: brokers[partition.leader]
            for topic in answer.topics
            for partition in topic.partitions
            if partition.leader in brokers
        }
        with self._lock:
            self._known.update(found)


class Task(threading.Thread):
    """A thread that takes steps until told to stop. ``progress_at``: when it last got on."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.progress_at = time.monotonic()
        self.crash: BaseException | None = None
        self._ending = threading.Event()

    def end(self) -> None:
        """Ask for the end; what is under way is completed first."""
        self._ending.set()

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self.step()
        except BaseException as error:
            self.crash = error
            raise
        finally:
            self._close()

    def step(self) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError


class PartitionTask(Task):
    """With a connection to its partition's leader."""

    def __init__(self, name: str, topic: str, partition: int, leaders: Leaders) -> None:
        super().__init__(name)
        self.partition = partition
        self._topic = topic
        self._leaders = leaders
        self._channel: Channel | None = None

    def _connected(self) -> Channel | None:
        address = self._leaders.of(self.partition)
        if self._channel is not None and (self._channel.host, self._channel.port) != address:
            self._close()
        if self._channel is None and address is not None:
            self._channel = Channel(*address, client_id=self.name, timeout_ms=CALL_TIMEOUT_MS)
        return self._channel

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _look_around(self) -> None:
        self._leaders.renew()
        time.sleep(random.uniform(0.05, 0.3))


class NumberedProducer(PartitionTask):
    """Sends numbered sets to a partition. Every third producer compresses them."""

    def __init__(
        self,
        number: int,
        topic: str,
        partition: int,
        leaders: Leaders,
        history: History,
        pause_s: float,
    ) -> None:
        super().__init__(f"producer-{number}-{partition}", topic, partition, leaders)
        self.acknowledged = 0
        self.tries = 0
        self.end_offset = 0
        self._number = number
        self._history = history
        self._pause_s = pause_s
        self._next = 0
        self._abandoned = threading.Event()
        self._codec = GZIP if number % 3 == 2 else 0

    def _new_set(self) -> tuple[Value, list[bytes]]:
        """The first of the next few records, and the values of all."""
        first = Value(self._number, self._next)
        self._next += random.randint(1, 8)
        sequences = range(first.sequence, self._next)
        return first, [values.encode(self.partition, Value(self._number, n)) for n in sequences]

    def _pause(self) -> None:
        time.sleep(random.uniform(0, 2 * self._pause_s))

    def abandon(self) -> None:
        """End without going on for acknowledgements."""
        self._abandoned.set()
        self.end()


class Producer(NumberedProducer):
    """Sends with acks -1, one set at a time, each until it is acknowledged."""

    _base_offset = -1

    def step(self) -> None:
        """One set, all the way."""
        first, sent = self._new_set()
        count = len(sent)
        message_set = encode_set([(b"%d" % self._number, value) for value in sent], self._codec)
        while not self._send(first, count, message_set):
            if self._abandoned.is_set():
                return
            self._look_around()
        self.acknowledged += count
        self.end_offset = self._base_offset + count
        self.progress_at = time.monotonic()
        self._pause()

    def _send(self, first: Value, count: int, message_set: bytes) -> bool:
        channel = self._connected()
        if channel is None:
            return False
        try:
            channel.connect()
        except OSError:
            return False  # nothing was sent
        request = schemas.ProduceRequest(
            -1,
            ACKS_TIMEOUT_MS,
            [
                schemas.ProduceTopic(
                    self._topic,
                    [schemas.ProducePartition(self.partition, memoryview(message_set))],
                )
            ],
        )
        self.tries += 1
        what, fields = "unknown", {}
        self._history.batch("send", self.partition, first, count, a=channel.port)
        try:
            answer = channel.call(request).topics[0].partitions[0]
        except (OSError, ProtocolError) as error:
            fields = {"why": str(error) or type(error).__name__}
            self._close()
        else:
            fields = {"why": answer.error}
            if answer.error == 0:
                what, fields = "ack", {"o": answer.base_offset}
                self._base_offset = answer.base_offset
            elif answer.error in NOT_STORED:
                what = "refused"
        self._history.batch(what, self.partition, first, count, a=channel.port, **fields)
        return what == "ack"


class Reader(PartitionTask):
    """Consumes a partition from its start, now and then again from somewhere before."""

    def __init__(self, topic: str, partition: int, leaders: Leaders, history: History) -> None:
        super().__init__(f"reader-{partition}", topic, partition, leaders)
        self.read = 0
        self._history = history
        self._position = 0
        self._end = 0

    def step(self) -> None:
        channel = self._connected()
        if channel is None:
            self._look_around()
            return
        try:
            error, _, found = fetch(channel, self._topic, self.partition, self._position)
        except (OSError, ProtocolError):
            self._close()
            self._look_around()
            return
        if error:
            # Out of range too: an old leader may not have what a newer one has shown us.
            self._look_around()
            return
        if found:
            self._history.records("read", self.partition, self._position, found)
            self.read += len(found)
            self._position += len(found)
            self._end = max(self._end, self._position)
            self.progress_at = time.monotonic()
        elif random.random() < 0.1:
            self._position = random.randint(max(0, self._end - 2000), self._end)
        time.sleep(random.uniform(0.05, 0.2))


def fetch(
    channel: Channel, topic: str, partition: int, offset: int
) -> tuple[int, int, list[Value | None]]:
    """(error, high watermark, values at successive offsets from ``offset``)."""
    answer = channel.call(
        schemas.FetchRequest(
            -1,
            200,
            1,
            [schemas.FetchTopic(topic, [schemas.FetchPartition(partition, offset, FETCH_BYTES)])],
        )
    )
    part = answer.topics[0].partitions[0]
    found: list[Value | None] = []
    if not part.error:
        for message in iter_messages(bytes(part.message_set)):
            if message.offset >= offset:
                # A hole would shift the rest: it shows as foreign records.
                found += [None] * (message.offset - offset - len(found))
                found.append(values.decode(partition, message.value))
    return part.error, part.high_watermark, found


def read_to_end(
    leaders: Leaders, topic: str, partition: int, history: History, wanted: int, timeout_s: float
) -> int:
    """The final read, from offset 0 to the high watermark; that offset.

    A new leader may know too low a one at first: the read goes on for a while until it has
    reached ``wanted``, the end of what was acknowledged. TimeoutError when nothing can be read.
    """
    patience = time.monotonic() + PATIENCE_S
    deadline = time.monotonic() + timeout_s
    offset = 0
    channel: Channel | None = None
    while time.monotonic() < deadline:
        if channel is None:
            leaders.renew()
            address = leaders.of(partition)
            channel = Channel(*address, timeout_ms=CALL_TIMEOUT_MS) if address else None
        try:
            if channel is None:
                raise ConnectionError
            error, hw, found = fetch(channel, topic, partition, offset)
        except (OSError, ProtocolError):
            error, hw, found = -1, -1, []
        if error:
            if channel is not None:
                channel.close()
                channel = None
            time.sleep(0.2)
            continue
        if found:
            history.records("final", partition, offset, found)
            offset += len(found)
        elif offset >= hw and (offset >= wanted or time.monotonic() > patience):
            assert channel is not None
            channel.close()
            return offset
    raise TimeoutError(f"partition {partition} could not be read beyond {offset}")
