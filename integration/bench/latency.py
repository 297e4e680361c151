"""How long records take through a broker: one at a time, and in mixed load of producers and
consumers at a fixed rate.

In the mixed load a request is sent when it is due, whether the ones before are answered or not, and
times count from when it was due: a broker that falls behind shows it. Knows nothing of brokers as
processes, of rounds or of tables.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from integration.bench.load import Connection, Ring, no_meter, reply_bytes, request
from integration.bench.reading import Reader
from integration.bench.records import AROUND_100, CODECS, Batch, batches, encode, words
from integration.wire import Wire, fetch_frame, produce_frame

MIXED_PAIRS = 6
MIXED_PER_SECOND = 600  # requests of all producers together
MIXED_SET_BYTES = 16384
MIXED_EACH = 8  # different sets of each codec
MAX_FETCH_BYTES = 1 << 20
PATIENCE_S = 30.0


def latencies(port: int, topic: str, count: int) -> list[float]:
    """Seconds from sending one record of 100 bytes until a waiting consumer has it, sorted."""
    record = produce_frame(topic, 0, encode([(None, words(100, 1))]).message_set, 1)
    found = []
    with Wire(port) as producer, Wire(port) as consumer:
        offset = producer.offset(topic, 0)
        for _ in range(count):
            consumer.socket.sendall(fetch_frame(topic, 0, offset, max_wait_ms=10000))
            time.sleep(0.001)  # let the fetch park: one record at a time on a quiet broker
            begin = time.perf_counter()
            producer.socket.sendall(record)
            reply = consumer.receive()
            found.append(time.perf_counter() - begin)
            if len(reply) < 100:
                raise RuntimeError("a parked fetch came back empty")
            producer.receive()
            offset += 1
    return sorted(found)


class Mixed(NamedTuple):
    """The figures of a mixed load after the warm-up. Times in seconds, sorted."""

    answers: list[float]
    end_to_end: list[float]
    seconds: float
    broker_cpu_s: float


def mixed_batches(number: int) -> list[Batch]:
    """The requests of producer `number`: sets of every codec in turn, no two producers in step."""
    names = list(CODECS)
    names = names[number % len(names) :] + names[: number % len(names)]
    kinds = [batches(AROUND_100, MIXED_SET_BYTES, name)[:MIXED_EACH] for name in names]
    return [each for turn in zip(*kinds, strict=True) for each in turn]


class Pair:
    """A producer and a consumer of one partition, which nobody else writes."""

    def __init__(self, port: int, topic: str, number: int) -> None:
        sets = mixed_batches(number)
        requests = [request(topic, [(number, b)], 1, f"mixed-producer-{number}") for b in sets]
        self.producer = Connection(port, Ring(requests))
        self.reader = Reader(port, topic, number, MAX_FETCH_BYTES, sets, follow=True)
        self._reply_size = reply_bytes(topic)
        self._received = 0  # bytes of an answer that is not whole
        self._due: deque[float] = deque()
        self._unanswered: deque[float] = deque()
        self._unread: deque[tuple[int, float]] = deque()

    @property
    def idle(self) -> bool:
        return not self._due and not self._unanswered and not self._unread

    def send(self, *dues: float) -> bool:
        """Requests that are due now; whether the kernel has taken all that ever were."""
        self._due.extend(dues)
        producer = self.producer
        if producer.unsent:
            producer.flush()
        while self._due and not producer.unsent:
            due = self._due.popleft()
            producer.push(1)
            self._unanswered.append(due)
            self._unread.append((producer.ring.totals(producer.sent)[0], due))
        return not producer.unsent

    def answered(self) -> list[float]:
        """When the requests were due whose answers have come."""
        data = self.producer.socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("closed by the broker")
        whole, self._received = divmod(self._received + len(data), self._reply_size)
        return [self._unanswered.popleft() for _ in range(whole)]

    def received(self) -> list[float]:
        """When the requests were due that the consumer now has in full."""
        if not self.reader.receive():
            return []
        self.reader.ask()
        found = []
        while self._unread and self._unread[0][0] <= self.reader.offset:
            found.append(self._unread.popleft()[1])
        return found

    def close(self) -> None:
        self.producer.socket.close()
        self.reader.connection.close()


def mixed(
    port: int,
    topic: str,
    *,
    warm_s: float,
    seconds: float,
    cpu: Callable[[], float] = no_meter,
) -> Mixed:
    """Six producers and six consumers on an empty topic of as many partitions.

    Raises TimeoutError if requests stay open long after the last was due.
    """
    pairs = [Pair(port, topic, number) for number in range(MIXED_PAIRS)]
    try:
        return _run(pairs, warm_s, seconds, cpu)
    finally:
        for pair in pairs:
            pair.close()


def _run(pairs: Sequence[Pair], warm_s: float, seconds: float, cpu: Callable[[], float]) -> Mixed:
    poll = select.epoll()
    producers = {pair.producer.socket.fileno(): pair for pair in pairs}
    readers = {pair.reader.connection.fileno(): pair for pair in pairs}
    for fd in producers:
        poll.register(fd, select.EPOLLIN)
    for fd, pair in readers.items():
        poll.register(fd, select.EPOLLIN)
        pair.reader.ask()
    answers: list[float] = []
    end_to_end: list[float] = []
    used: float | None = None
    begin = time.perf_counter()
    measured = begin + warm_s
    sent, total = 0, int((warm_s + seconds) * MIXED_PER_SECOND)
    while sent < total or not all(pair.idle for pair in pairs):
        now = time.perf_counter()
        if used is None and now >= measured:
            used = cpu()
        while sent < total and (due := begin + sent / MIXED_PER_SECOND) <= now:
            _send(poll, pairs[sent % len(pairs)], due)
            sent += 1
        wait = begin + sent / MIXED_PER_SECOND - time.perf_counter() if sent < total else 1.0
        if now > begin + total / MIXED_PER_SECOND + PATIENCE_S:
            raise TimeoutError(f"requests were open {PATIENCE_S} s after the last")
        # epoll alone would round the time up to milliseconds
        select.select([poll], [], [], max(0.0, wait))
        for fd, event in poll.poll(0):
            if event & select.EPOLLOUT:
                _send(poll, producers[fd])
            if event & ~select.EPOLLOUT:
                gone = producers[fd].answered() if fd in producers else readers[fd].received()
                times = answers if fd in producers else end_to_end
                now = time.perf_counter()
                times += [now - due for due in gone if due >= measured]
    took = time.perf_counter() - measured
    poll.close()
    return Mixed(sorted(answers), sorted(end_to_end), took, cpu() - (used or 0.0))


def _send(poll: select.epoll, pair: Pair, *dues: float) -> None:
    whole = pair.send(*dues)
    events = select.EPOLLIN if whole else select.EPOLLIN | select.EPOLLOUT
    poll.modify(pair.producer.socket.fileno(), events)
