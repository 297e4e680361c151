"""The producing load: requests built once, pushed over raw sockets by one epoll loop.

Every connection has its own client id and its own ring of different sets. For each round trip the
generator does one recv and one send of a prebuilt slice, and throws the reply away, so that the
broker is the limit. Knows nothing of brokers as processes, of rounds or of tables.
"""

from __future__ import annotations

import itertools
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from integration.bench.records import Batch
from integration.wire import OFFSETS, PRODUCE, Wire, frame, string, wait_until

RECEIVE_BYTES = 1 << 20
# The rings of all connections together: they should not push the sockets' buffers out of the
# processor's caches.
RING_BYTES = 4 << 20
MOST_IN_RING = 120
UNANSWERED_BYTES = 256 << 10
ASK_NOTHING = frame(OFFSETS, struct.pack(">ii", -1, 0))


Moved = tuple[int, int]
"""Records, and bytes of their values, of one connection."""


class Amount(NamedTuple):
    """The amount of data that one cell moved. `generator_cpu_s` tells whether the generator was
    the limit; `broker_cpu_s` is the count of the cell's meter while the load ran."""

    records: int
    payload: int
    seconds: float
    generator_cpu_s: float
    broker_cpu_s: float


class Request(NamedTuple):
    """A produce request as it goes over the wire, and what is in it."""

    data: bytes
    records: int
    payload: int


def request(
    topic: str, sets: Sequence[tuple[int, Batch]], acks: int, client_id: str = "bench"
) -> Request:
    """One request with a set for each of some partitions."""
    body = struct.pack(">hii", acks, 10000, 1) + string(topic) + struct.pack(">i", len(sets))
    for partition, each in sets:
        body += struct.pack(">ii", partition, len(each.message_set)) + each.message_set
    data = frame(PRODUCE, body, client_id=client_id)
    batches = [each for _, each in sets]
    return Request(data, sum(b.records for b in batches), sum(b.payload for b in batches))


def reply_bytes(topic: str, partitions: int = 1) -> int:
    """Size of the answer to a request for so many partitions of one topic."""
    return 4 + 4 + 4 + 2 + len(topic) + 4 + partitions * (4 + 2 + 8)


class Ring:
    """The requests of one connection, end to end, to be sent round and round."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.data = memoryview(b"".join(each.data for each in requests))
        self.bounds = [0, *itertools.accumulate(len(each.data) for each in requests)]
        self.count = len(requests)
        self._records = [0, *itertools.accumulate(each.records for each in requests)]
        self._payload = [0, *itertools.accumulate(each.payload for each in requests)]

    def take(self, sent: int, number: int) -> tuple[int, memoryview]:
        """The requests after the first `sent` ones: at most `number`, fewer at the ring's end.
        Returns how many they are, and their bytes."""
        first = sent % self.count
        number = min(number, self.count - first)
        return number, self.data[self.bounds[first] : self.bounds[first + number]]

    def totals(self, sent: int) -> tuple[int, int]:
        """Records and payload of the first `sent` requests."""
        turns, rest = divmod(sent, self.count)
        records = turns * self._records[-1] + self._records[rest]
        return records, turns * self._payload[-1] + self._payload[rest]


def rings(
    topic: str,
    partitions: int,
    batches: Sequence[Batch],
    *,
    acks: int,
    connections: int,
    at_once: int = 1,
) -> list[Ring]:
    """For each connection a ring that goes over all partitions, `at_once` in each request."""
    room = RING_BYTES // connections // (len(batches[0].message_set) * at_once)
    count = max(1, min(MOST_IN_RING, room) // partitions) * partitions
    each_batch = itertools.cycle(batches)
    found = []
    for number in range(connections):
        numbers = itertools.cycle([(number + step) % partitions for step in range(partitions)])
        requests = [
            request(
                topic,
                [(next(numbers), next(each_batch)) for _ in range(at_once)],
                acks,
                f"bench-client-{number}",
            )
            for _ in range(count)
        ]
        found.append(Ring(requests))
    return found


class Connection:
    """A nonblocking socket and how far its ring has been sent; `send` keeps what the kernel did
    not take."""

    def __init__(self, port: int, ring: Ring) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.unsent = memoryview(b"")
        self.ring = ring
        self.sent = 0
        self.pending = 0  # reply bytes still due

    def send(self, data: memoryview | bytes) -> int:
        """Bytes the kernel took; the rest waits in `unsent`."""
        try:
            taken = self.socket.send(data)
        except BlockingIOError:
            taken = 0
        self.unsent = memoryview(data)[taken:]
        return taken

    def flush(self) -> bool:
        """Whether something is still unsent afterwards."""
        self.send(self.unsent)
        return bool(self.unsent)

    def push(self, number: int) -> int:
        """Send at most so many requests; how many."""
        number, data = self.ring.take(self.sent, number)
        self.sent += number
        self.send(data)
        return number


def no_meter() -> float:
    return 0.0


def produce(
    port: int,
    topic: str,
    partitions: int,
    batches: Sequence[Batch],
    *,
    acks: int,
    connections: int,
    in_flight: int,
    seconds: float,
    max_bytes: int,
    at_once: int = 1,
    cpu: Callable[[], float] = no_meter,
) -> Amount:
    """Produce for `seconds`, at most `max_bytes`; the end is when all of it is stored."""
    found = rings(topic, partitions, batches, acks=acks, connections=connections, at_once=at_once)
    return send_rings(
        port,
        found,
        reply_size=reply_bytes(topic, at_once) if acks else 0,
        in_flight=in_flight,
        seconds=seconds,
        max_bytes=max_bytes,
        cpu=cpu,
    )


def send_rings(
    port: int,
    rings_: Sequence[Ring],
    *,
    reply_size: int,
    in_flight: int,
    seconds: float,
    max_bytes: int,
    cpu: Callable[[], float] = no_meter,
) -> Amount:
    """A connection for each ring. `reply_size`: bytes of the answer to any request of the rings; 0
    if there is none. Connecting is not measured."""
    open_ = [Connection(port, ring) for ring in rings_]
    limit = requests_in(rings_, max_bytes)

    def send() -> list[Moved]:
        if reply_size:
            _send_answered(open_, reply_size, in_flight, seconds, limit)
        else:
            _send_unanswered(open_, seconds, limit)
            _settle(open_)
        return [each.ring.totals(each.sent) for each in open_]

    return measured(send, [each.socket for each in open_], cpu)


def requests_in(rings_: Sequence[Ring], max_bytes: int) -> int:
    """So many requests of all the rings have about `max_bytes`."""
    total = sum(ring.bounds[-1] for ring in rings_)
    return max(1, max_bytes * sum(ring.count for ring in rings_) // total)


def measured(
    work: Callable[[], Sequence[Moved]],
    sockets: Sequence[socket.socket],
    cpu: Callable[[], float] = no_meter,
) -> Amount:
    """The amount that `work()` moved, and its cost. Closes the sockets afterwards."""
    used, busy, begin = cpu(), time.process_time(), time.perf_counter()
    moved = work()
    took = time.perf_counter() - begin
    busy, used = time.process_time() - busy, cpu() - used
    for sock in sockets:
        sock.close()
    return Amount(sum(r for r, _ in moved), sum(p for _, p in moved), took, busy, used)


def _send_answered(
    open_: list[Connection], reply_size: int, in_flight: int, seconds: float, limit: int
) -> None:
    """One epoll loop, `in_flight` requests per connection, until all are answered."""
    poll = select.epoll()
    by_fd = {c.socket.fileno(): c for c in open_}
    scratch = bytearray(RECEIVE_BYTES)
    sent = 0
    busy = len(open_)  # connections with replies due
    deadline = time.perf_counter() + seconds

    def push(fd: int, connection: Connection, number: int) -> None:
        nonlocal sent
        number = connection.push(number)
        sent += number
        connection.pending += number * reply_size
        if connection.unsent:
            poll.modify(fd, select.EPOLLIN | select.EPOLLOUT)

    for fd, connection in by_fd.items():
        poll.register(fd, select.EPOLLIN)
        push(fd, connection, in_flight)
    while busy:
        events = poll.poll(30)
        if not events:
            raise TimeoutError("the broker has not answered for 30 s")
        for fd, event in events:
            connection = by_fd[fd]
            if event & select.EPOLLOUT and not connection.flush():
                poll.modify(fd, select.EPOLLIN)
            if event & ~select.EPOLLOUT:
                got = connection.socket.recv_into(scratch)
                if not got:
                    raise ConnectionResetError("closed by the broker")
                connection.pending -= got
            free = in_flight - -(-connection.pending // reply_size)
            if free and not connection.unsent and time.perf_counter() < deadline and sent < limit:
                push(fd, connection, free)
            if not connection.pending:
                poll.unregister(fd)
                busy -= 1
    poll.close()


def _send_unanswered(open_: list[Connection], seconds: float, limit: int) -> None:
    """Requests with acks 0, as fast as the sockets take them."""
    ring = open_[0].ring
    chunk = max(1, UNANSWERED_BYTES * ring.count // ring.bounds[-1])
    poll = select.epoll()
    by_fd = {c.socket.fileno(): c for c in open_}
    for fd in by_fd:
        poll.register(fd, select.EPOLLOUT)
    sent = 0
    deadline = time.perf_counter() + seconds
    while by_fd:
        over = time.perf_counter() >= deadline or sent >= limit
        for fd, _ in poll.poll(30):
            connection = by_fd[fd]
            if connection.unsent:
                connection.flush()
            elif over:
                poll.unregister(fd)
                del by_fd[fd]
            else:
                sent += connection.push(chunk)
    poll.close()


def _settle(open_: list[Connection]) -> None:
    """Requests are served in order per connection: an answered request ends the queue."""
    for connection in open_:
        connection.socket.setblocking(True)
        connection.socket.settimeout(120)
        connection.socket.sendall(ASK_NOTHING)
    for connection in open_:
        wire = Wire.__new__(Wire)
        wire.socket = connection.socket
        wire.receive()


class Server(Protocol):
    """A broker of any kind."""

    log_dir: Path

    def delete_topic(self, topic: str) -> None: ...


def discard(broker: Server, topic: str) -> None:
    """Delete a topic, and wait until its files are gone. To free a GB of memory takes a core for a
    third of a second, which would be taken from the next measurement."""
    broker.delete_topic(topic)
    found = broker.log_dir.glob
    wait_until(f"no {topic} in {broker.log_dir}", 120, lambda: not any(found(f"{topic}-*")))


def produce_at(
    port: int, topic: str, partitions: int, batches: Sequence[Batch], rate: float, stop: Any
) -> None:
    """Produce `rate` batches a second, one connection, until the event `stop` is set."""
    (ring,) = rings(topic, partitions, batches, acks=1, connections=1)
    with Wire(port) as wire:
        begin, sent = time.perf_counter(), 0
        while not stop.is_set():
            due = int((time.perf_counter() - begin) * rate) - sent
            for _ in range(min(due, 20)):
                wire.socket.sendall(ring.take(sent, 1)[1])
                sent += 1
            for _ in range(min(max(due, 0), 20)):
                wire.receive()
            if due < 1:
                time.sleep(0.0005)


def preload(port: int, topic: str, partitions: int, batches: Sequence[Batch], payload: int) -> None:
    """`payload` bytes into each partition: the batches in turn, two of them at least."""

    def fill(partition: int) -> None:
        left = payload
        with Wire(port) as wire:
            for number, each in enumerate(itertools.cycle(batches)):
                if left < each.payload and number > 1:
                    return
                left -= each.payload
                wire.produce(topic, partition, each.message_set)

    with ThreadPoolExecutor(partitions) as pool:
        list(pool.map(fill, range(partitions)))
