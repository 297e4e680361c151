"""The load: frames built once, pushed and pulled over raw sockets by one epoll loop.

Per round trip the generator does one recv and one send of a prebuilt slice, so that the broker is
the limit. Knows nothing of brokers as processes, of rounds or of tables.
"""

from __future__ import annotations

import gzip
import random
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import snappy

from integration.wire import Wire, entry, fetch_frame, produce_frame

CODECS = {"none": 0, "gzip": 1, "snappy": 2}
FRAMES_PER_PARTITION = 20
RECEIVE_BYTES = 1 << 20
SNAPPY_BLOCK = 32768
FETCH_REPLY_HEAD = struct.Struct(">ii")


class Batch(NamedTuple):
    """A message set ready to send: `records` messages, `payload` bytes of values in all."""

    message_set: bytes
    records: int
    payload: int


class Amount(NamedTuple):
    """What one cell moved. `generator_cpu_s` tells whether the generator was the limit."""

    records: int
    payload: int
    seconds: float
    generator_cpu_s: float


def words(size: int, seed: int) -> bytes:
    """Text-like bytes: compress about as log lines do."""
    noise = random.Random(seed)
    vocabulary = [b"%x" % noise.getrandbits(28) for _ in range(400)]
    text = b""
    while len(text) < size:
        text += noise.choice(vocabulary) + b" "
    return text[:size]


def batch(record_bytes: int, batch_bytes: int, codec: str = "none") -> Batch:
    """Records of `record_bytes` until `batch_bytes` is full, at least one."""
    count = max(1, batch_bytes // (26 + record_bytes))
    values = [words(record_bytes, seed) for seed in range(min(count, 64))]
    plain = b"".join(entry(None, values[i % len(values)], i) for i in range(count))
    if codec == "gzip":
        plain = entry(None, gzip.compress(plain, 6), count - 1, CODECS[codec])
    elif codec == "snappy":
        plain = entry(None, xerial(plain), count - 1, CODECS[codec])
    return Batch(plain, count, count * record_bytes)


def xerial(data: bytes) -> bytes:
    """Snappy in the framing of the Java clients."""
    out = bytearray(b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1))
    for start in range(0, len(data), SNAPPY_BLOCK):
        block = bytes(snappy.compress(data[start : start + SNAPPY_BLOCK]))
        out += struct.pack(">i", len(block)) + block
    return bytes(out)


class Connection:
    """A nonblocking socket; `send` keeps what the kernel did not take."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.unsent = memoryview(b"")

    def send(self, data: memoryview | bytes) -> int:
        """Bytes the kernel took; the rest waits in `unsent`."""
        try:
            taken = self.socket.send(data)
        except BlockingIOError:
            taken = 0
        self.unsent = memoryview(data)[taken:]
        return taken


def produce(
    port: int,
    topic: str,
    partitions: int,
    load: Batch,
    *,
    acks: int,
    connections: int,
    in_flight: int,
    seconds: float,
    max_bytes: int,
) -> Amount:
    """Produce for `seconds`, at most `max_bytes`; the end is when all of it is stored."""
    frames = [produce_frame(topic, p, load.message_set, acks) for p in range(partitions)]
    size = len(frames[0])
    ring = memoryview(b"".join(frames) * FRAMES_PER_PARTITION)
    count = partitions * FRAMES_PER_PARTITION
    reply_size = 4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2 + 8
    open_ = [Connection(port) for _ in range(connections)]
    busy, begin = time.process_time(), time.perf_counter()
    limit = max_bytes // size
    if acks:
        sent = _produce_answered(open_, ring, size, count, reply_size, in_flight, seconds, limit)
    else:
        sent = _produce_unanswered(open_, ring, size, count, seconds, limit)
        _settle(open_, topic, load)
        sent += len(open_)
    took = time.perf_counter() - begin
    busy = time.process_time() - busy
    for connection in open_:
        connection.socket.close()
    return Amount(sent * load.records, sent * load.payload, took, busy)


def _produce_answered(
    open_: list[Connection],
    ring: memoryview,
    size: int,
    count: int,
    reply_size: int,
    in_flight: int,
    seconds: float,
    limit: int,
) -> int:
    """Requests sent, each answered. One epoll loop, `in_flight` requests per connection."""
    poll = select.epoll()
    by_fd = {c.socket.fileno(): c for c in open_}
    at = dict.fromkeys(by_fd, 0)
    pending = dict.fromkeys(by_fd, 0)  # reply bytes still due
    scratch = bytearray(RECEIVE_BYTES)
    sent = 0
    deadline = time.perf_counter() + seconds

    def push(fd: int, number: int) -> None:
        nonlocal sent
        first = at[fd]
        number = min(number, count - first)
        at[fd] = (first + number) % count
        sent += number
        pending[fd] += number * reply_size
        data = ring[first * size : (first + number) * size]
        if by_fd[fd].send(data) < len(data):
            poll.modify(fd, select.EPOLLIN | select.EPOLLOUT)

    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
        push(fd, in_flight)
    while any(pending.values()):
        for fd, event in poll.poll(30):
            connection = by_fd[fd]
            if event & select.EPOLLOUT and not _flush(connection):
                poll.modify(fd, select.EPOLLIN)
            if event & ~select.EPOLLOUT:
                got = connection.socket.recv_into(scratch)
                if not got:
                    raise ConnectionResetError("closed by the broker")
                pending[fd] -= got
            free = in_flight - -(-pending[fd] // reply_size)
            more = time.perf_counter() < deadline and sent < limit
            if free and more and not connection.unsent:
                push(fd, free)
    poll.close()
    return sent


def _flush(connection: Connection) -> bool:
    """Whether something is still unsent afterwards."""
    connection.send(connection.unsent)
    return bool(connection.unsent)


def _produce_unanswered(
    open_: list[Connection], ring: memoryview, size: int, count: int, seconds: float, limit: int
) -> int:
    """Requests sent with acks 0, as fast as the sockets take them."""
    chunk = max(1, min(count, (256 << 10) // size)) * size
    poll = select.epoll()
    by_fd = {c.socket.fileno(): c for c in open_}
    at = dict.fromkeys(by_fd, 0)
    for fd in by_fd:
        poll.register(fd, select.EPOLLOUT)
    sent = 0
    deadline = time.perf_counter() + seconds
    while by_fd and ((time.perf_counter() < deadline and sent < limit) or _unsent(by_fd)):
        over = time.perf_counter() >= deadline or sent >= limit
        for fd, _ in poll.poll(30):
            connection = by_fd[fd]
            if connection.unsent:
                _flush(connection)
            elif over:
                poll.unregister(fd)
                del by_fd[fd]
            else:
                first = at[fd]
                data = ring[first : first + chunk]
                at[fd] = (first + len(data)) % (size * count)
                sent += len(data) // size
                connection.send(data)
    poll.close()
    return sent


def _unsent(by_fd: dict[int, Connection]) -> bool:
    return any(connection.unsent for connection in by_fd.values())


def _settle(open_: list[Connection], topic: str, load: Batch) -> None:
    """Requests are served in order per connection: one answered request ends the queue."""
    last = produce_frame(topic, 0, load.message_set, 1)
    for connection in open_:
        connection.socket.setblocking(True)
        connection.socket.settimeout(120)
        connection.socket.sendall(last)
    for connection in open_:
        wire = Wire.__new__(Wire)
        wire.socket = connection.socket
        code = struct.unpack(">h", wire.receive()[-10:-8])[0]
        if code:
            raise RuntimeError(f"the broker refused with {code}")


class Reader:
    """Fetches one partition round and round; offsets follow from the entries in each reply."""

    def __init__(
        self,
        port: int,
        topic: str,
        partition: int,
        max_bytes: int,
        load: Batch,
        first: int = 0,
    ) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.offset = self._first = first
        self.records = 0
        self._topic = topic
        self._partition = partition
        self._max_bytes = max_bytes
        self._plain = len(load.message_set) // load.records if not load.message_set[17] else 0
        self._need = 0
        self._have = 0
        self._buffer = memoryview(bytearray(max_bytes + 4096))

    def ask(self) -> None:
        self._have = self._need = 0
        self.connection.sendall(
            fetch_frame(self._topic, self._partition, self.offset, self._max_bytes)
        )

    def receive(self) -> bool:
        """Take what is there; whether the reply is whole (and then counted)."""
        if self._have == len(self._buffer):
            self._grow(len(self._buffer) * 2)
        got = self.connection.recv_into(self._buffer[self._have :])
        if not got:
            raise ConnectionResetError("closed by the broker")
        self._have += got
        if not self._need and self._have >= 4:
            self._need = 4 + int.from_bytes(self._buffer[:4], "big")
            if self._need > len(self._buffer):
                self._grow(self._need)
        if self._have < self._need or not self._need:
            return False
        self._count()
        return True

    def _grow(self, size: int) -> None:
        bigger = memoryview(bytearray(size))
        bigger[: self._have] = self._buffer[: self._have]
        self._buffer = bigger

    def _count(self) -> None:
        start = 4 + 4 + 4 + 2 + len(self._topic) + 4
        _, code, hw, size = struct.unpack_from(">ihqi", self._buffer, start)
        if code:
            raise RuntimeError(f"the broker answered {code}")
        start += 18
        if self._plain:
            after = self.offset + size // self._plain
        else:
            after = self._after_wrappers(start, start + size)
        if after == self.offset:
            raise RuntimeError(f"nothing whole in a reply of {size} bytes at {self.offset}")
        self.records += after - self.offset
        self.offset = self._first if after >= hw else after

    def _after_wrappers(self, at: int, end: int) -> int:
        after = self.offset
        while at + 12 <= end:
            offset, size = struct.unpack_from(">qi", self._buffer, at)
            at += 12 + size
            if at <= end:
                after = offset + 1
        return after


def fetch(
    port: int,
    topic: str,
    partitions: int,
    load: Batch,
    *,
    max_bytes: int,
    connections: int,
    seconds: float,
    back: int | None = None,
) -> Amount:
    """Fetch a preloaded topic for `seconds`, one request in flight per connection: all of it, or
    the last `back` offsets of each partition."""
    readers = []
    for number in range(connections):
        partition = number % partitions
        first = 0
        if back is not None:
            with Wire(port) as wire:
                first = max(0, wire.offset(topic, partition) - back)
        readers.append(Reader(port, topic, partition, max_bytes, load, first))
    deadline = time.perf_counter() + seconds
    return _pull(readers, load, lambda reader: time.perf_counter() < deadline)


def _pull(readers: list[Reader], load: Batch, goes_on: Callable[[Reader], bool]) -> Amount:
    """All of them fetch, one request each in flight, until none goes on."""
    poll = select.epoll()
    by_fd = {reader.connection.fileno(): reader for reader in readers}
    busy, begin = time.process_time(), time.perf_counter()
    for fd, reader in by_fd.items():
        poll.register(fd, select.EPOLLIN)
        reader.ask()
    open_ = len(readers)
    while open_:
        for fd, _ in poll.poll(30):
            if by_fd[fd].receive():
                if goes_on(by_fd[fd]):
                    by_fd[fd].ask()
                else:
                    open_ -= 1
    took = time.perf_counter() - begin
    busy = time.process_time() - busy
    poll.close()
    for reader in readers:
        reader.connection.close()
    records = sum(reader.records for reader in readers)
    return Amount(records, records * load.payload // load.records, took, busy)


def drain(
    port: int, topic: str, partitions: int, load: Batch, *, max_bytes: int, groups: int
) -> Amount:
    """`groups` readers of each partition read a preloaded topic once, from end to end."""
    readers = [
        Reader(port, topic, number, max_bytes, load)
        for number in range(partitions)
        for _ in range(groups)
    ]
    return _pull(readers, load, lambda reader: reader.offset != 0)  # back to 0 at the end


def produce_at(port: int, topic: str, partitions: int, load: Batch, rate: float, stop: Any) -> None:
    """Produce `rate` batches a second, one connection, until the event `stop` is set."""
    frames = [produce_frame(topic, number, load.message_set, 1) for number in range(partitions)]
    with Wire(port) as wire:
        begin, sent = time.perf_counter(), 0
        while not stop.is_set():
            due = int((time.perf_counter() - begin) * rate) - sent
            for _ in range(min(due, 20)):
                wire.socket.sendall(frames[sent % partitions])
                sent += 1
            for _ in range(min(max(due, 0), 20)):
                wire.receive()
            if due < 1:
                time.sleep(0.0005)


def preload(port: int, topic: str, partitions: int, load: Batch, payload: int) -> None:
    """`payload` bytes of values into each partition."""
    with Wire(port) as wire:
        for number in range(partitions):
            for _ in range(max(2, payload // load.payload)):
                wire.produce(topic, number, load.message_set)


def latencies(port: int, topic: str, count: int) -> list[float]:
    """Seconds from sending one record of 100 bytes until a waiting consumer has it, sorted."""
    record = produce_frame(topic, 0, entry(None, words(100, 1)), 1)
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
