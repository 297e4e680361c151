"""The consuming load: fetches over raw sockets by one epoll loop.

A reader knows which sets its partition holds and in which order, so that it finds the next offset
with a few steps a set instead of looking at each record, and notices if a record is not where it
belongs. Knows nothing of brokers as processes, of rounds or of tables.
"""

from __future__ import annotations

import itertools
import select
import socket
import struct
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence

from integration.bench.load import Amount, Moved, measured, no_meter
from integration.bench.records import ENTRY_OVERHEAD, Batch
from integration.wire import Wire, fetch_frame

REPLY_ROOM = 4096
WAIT_MS = 100
FILLER = -1  # later releases fill up what they have converted with an entry of this offset


class Cycle:
    """The content of a partition: these sets in turn, again and again, from offset 0."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._firsts = [0, *itertools.accumulate(each.records for each in batches)]
        self.records = self._firsts.pop()

    def read(self, offset: int, data: memoryview, at: int, end: int) -> tuple[int, int]:
        """The offset after the whole entries in ``data[at:end]``, of which the first holds
        ``offset``, and their payload in bytes.

        Raises RuntimeError if there are other entries than the broker was given.
        """
        number, inside = self._where(offset)
        payload = 0
        while at + 12 <= end:
            each = self._batches[number]
            found, size = struct.unpack_from(">qi", data, at)
            if found == FILLER:
                break
            expected = offset if each.ends else offset - inside + each.records - 1
            if found != expected:
                raise RuntimeError(f"offset {found} where {expected} was expected")
            if each.ends:
                base = each.ends[inside - 1] if inside else 0
                taken = bisect_right(each.ends, base + end - at) - inside
                if not taken:
                    break
                stored = each.ends[inside + taken - 1] - base
                payload += stored - ENTRY_OVERHEAD * taken
            else:
                taken, stored = each.records - inside, 12 + size
                if at + stored > end:
                    break
                payload += each.payload
            at += stored
            offset += taken
            inside += taken
            if inside < each.records:
                break
            number, inside = (number + 1) % len(self._batches), 0
        return offset, payload

    def _where(self, offset: int) -> tuple[int, int]:
        within = offset % self.records
        number = bisect_right(self._firsts, within) - 1
        return number, within - self._firsts[number]


class Reader:
    """Fetches one partition from the offset `first` to its end, and then round and round; with
    `follow` it waits there for more instead."""

    _version = 0

    def __init__(
        self,
        port: int,
        topic: str,
        partition: int,
        max_bytes: int,
        batches: Sequence[Batch],
        *,
        first: int = 0,
        follow: bool = False,
    ) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.offset = self._first = first
        self.records = 0
        self.payload = 0
        self._topic = topic
        self._partition = partition
        self._max_bytes = max_bytes
        self._cycle = self._make_cycle(batches)
        self._follow = follow
        self._need = 0
        self._have = 0
        self._buffer = memoryview(bytearray(max_bytes + REPLY_ROOM))

    def ask(self) -> None:
        self._have = self._need = 0
        self.connection.sendall(self._frame())

    def _make_cycle(self, batches: Sequence[Batch]) -> Cycle:
        return Cycle(batches)

    def _frame(self) -> bytes:
        return fetch_frame(
            self._topic,
            self._partition,
            self.offset,
            self._max_bytes,
            WAIT_MS,
            version=self._version,
        )

    def _reply(self) -> tuple[int, int, int, int]:
        """Error, high watermark, and where the set is in the buffer: its start, its size."""
        start = 4 + 4 + 4 + 2 + len(self._topic) + 4
        _, code, hw, size = struct.unpack_from(">ihqi", self._buffer, start)
        return code, hw, start + 18, size

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
        code, hw, start, size = self._reply()
        if code:
            raise RuntimeError(f"the broker answered {code}")
        after, payload = self._cycle.read(self.offset, self._buffer, start, start + size)
        if after == self.offset and not self._follow:
            raise RuntimeError(f"nothing whole in a reply of {size} bytes at {self.offset}")
        self.records += after - self.offset
        self.payload += payload
        self.offset = self._first if after >= hw and not self._follow else after


def fetch(
    port: int,
    topic: str,
    partitions: int,
    batches: Sequence[Batch],
    *,
    max_bytes: int,
    connections: int,
    seconds: float,
    back: int | None = None,
    cpu: Callable[[], float] = no_meter,
    reader: type[Reader] = Reader,
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
        readers.append(reader(port, topic, partition, max_bytes, batches, first=first))
    deadline = time.perf_counter() + seconds
    return _pull(readers, lambda _: time.perf_counter() < deadline, cpu)


def drain(
    port: int,
    topic: str,
    partitions: int,
    batches: Sequence[Batch],
    *,
    max_bytes: int,
    groups: int,
    cpu: Callable[[], float] = no_meter,
) -> Amount:
    """`groups` readers of each partition read a preloaded topic once, from end to end."""
    readers = [
        Reader(port, topic, number, max_bytes, batches)
        for number in range(partitions)
        for _ in range(groups)
    ]
    return _pull(readers, lambda reader: reader.offset != 0, cpu)  # back to 0 at the end


def _pull(
    readers: list[Reader], goes_on: Callable[[Reader], bool], cpu: Callable[[], float]
) -> Amount:
    """All of them fetch, one request each in flight, until none goes on."""
    poll = select.epoll()
    by_fd = {reader.connection.fileno(): reader for reader in readers}

    def read() -> list[Moved]:
        for fd, reader in by_fd.items():
            poll.register(fd, select.EPOLLIN)
            reader.ask()
        open_ = len(readers)
        while open_:
            events = poll.poll(30)
            if not events:
                raise TimeoutError("the broker has not answered for 30 s")
            for fd, _ in events:
                if by_fd[fd].receive():
                    if goes_on(by_fd[fd]):
                        by_fd[fd].ask()
                    else:
                        open_ -= 1
        poll.close()
        return [(reader.records, reader.payload) for reader in readers]

    return measured(read, [reader.connection for reader in readers], cpu)
