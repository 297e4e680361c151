"""A raw socket and the few 0.8.2.2 layouts the tests need, written out by hand.

On purpose independent of kafka08.protocol: a mistake there must not hide here. Knows no
metadata, no retries, no compression beyond making wrappers from bytes it is given.
"""

from __future__ import annotations

import gzip
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

PRODUCE, FETCH, OFFSETS, METADATA = range(4)
OFFSET_COMMIT, OFFSET_FETCH, CONSUMER_METADATA = 8, 9, 10
GZIP = 1
ENTRY = struct.Struct(">qiIbb")


class Entry(NamedTuple):
    offset: int
    codec: int
    key: bytes | None
    value: bytes | None


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def blob(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def entry(key: bytes | None, value: bytes | None, offset: int = 0, codec: int = 0) -> bytes:
    body = struct.pack(">bb", 0, codec) + blob(key) + blob(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def gzip_set(records: list[tuple[bytes | None, bytes | None]]) -> bytes:
    """One wrapper as the Scala producer makes it: inner 0..n-1, wrapper n-1."""
    inner = b"".join(entry(key, value, i) for i, (key, value) in enumerate(records))
    return entry(None, gzip.compress(inner, 1), len(records) - 1, GZIP)


def entries(data: bytes) -> Iterator[Entry]:
    """Whole entries, wrappers opened; a fragment at the end is dropped. Checks every CRC."""
    at = 0
    while at + ENTRY.size <= len(data):
        offset, size, crc, _magic, codec = ENTRY.unpack_from(data, at)
        end = at + 12 + size
        if end > len(data):
            return
        assert zlib.crc32(data[at + 16 : end]) == crc, f"bad crc at offset {offset}"
        key, after = _blob_at(data, at + 18)
        value, after = _blob_at(data, after)
        assert after == end
        at = end
        if codec & 7 == 0:
            yield Entry(offset, 0, key, value)
        elif codec & 7 == GZIP and value is not None:
            for inner in entries(gzip.decompress(value)):
                yield inner._replace(codec=GZIP)
        else:
            raise AssertionError(f"codec {codec} is not for these tests")


def _blob_at(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = struct.unpack_from(">i", data, at)
    at += 4
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def frame(
    key: int, body: bytes, correlation_id: int = 0, version: int = 0, client_id: str = "wire"
) -> bytes:
    data = struct.pack(">hhi", key, version, correlation_id) + string(client_id) + body
    return struct.pack(">i", len(data)) + data


def produce_frame(
    topic: str, partition: int, message_set: bytes, acks: int, correlation_id: int = 0
) -> bytes:
    body = struct.pack(">hii", acks, 10000, 1) + string(topic)
    body += struct.pack(">iii", 1, partition, len(message_set)) + message_set
    return frame(PRODUCE, body, correlation_id)


def fetch_frame(
    topic: str,
    partition: int,
    offset: int,
    max_bytes: int = 1 << 20,
    max_wait_ms: int = 100,
    min_bytes: int = 1,
    version: int = 0,
) -> bytes:
    """Version 0 or 4."""
    body = struct.pack(">iii", -1, max_wait_ms, min_bytes)
    body += struct.pack(">ib", max_bytes, 0) if version else b""
    body += struct.pack(">i", 1) + string(topic)
    body += struct.pack(">iiqi", 1, partition, offset, max_bytes)
    return frame(FETCH, body, version=version)


class WireError(Exception):
    """The broker answered with an error code (`.code`)."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}")
        self.code = code


class Wire:
    """One connection, one request at a time; OSError when it breaks."""

    def __init__(self, port: int, host: str = "127.0.0.1", timeout: float = 30) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def receive(self) -> bytes:
        """The next reply without size and correlation id."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)[4:]

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise ConnectionResetError("closed by the broker")
            parts += part
        return bytes(parts)

    def call(self, data: bytes) -> bytes:
        self.socket.sendall(data)
        return self.receive()

    def produce(self, topic: str, partition: int, message_set: bytes, acks: int = 1) -> int:
        """The base offset. WireError with the code when refused."""
        reply = self.call(produce_frame(topic, partition, message_set, acks))
        code, offset = struct.unpack(">hq", reply[-10:])
        if code:
            raise WireError(code)
        return int(offset)

    def fetch(
        self, topic: str, partition: int, offset: int, max_bytes: int = 1 << 20, wait_ms: int = 100
    ) -> tuple[int, bytes]:
        """High watermark and raw slice."""
        reply = self.call(fetch_frame(topic, partition, offset, max_bytes, wait_ms))
        at = 4 + 2 + len(topic) + 4
        _, code, hw, size = struct.unpack_from(">ihqi", reply, at)
        if code:
            raise WireError(code)
        return hw, reply[at + 18 : at + 18 + size]

    def offset(self, topic: str, partition: int, time_ms: int = -1) -> int:
        body = struct.pack(">ii", -1, 1) + string(topic)
        body += struct.pack(">iiqi", 1, partition, time_ms, 1)
        reply = self.call(frame(OFFSETS, body))
        at = 4 + 2 + len(topic) + 4
        _, code, count = struct.unpack_from(">ihi", reply, at)
        if code:
            raise WireError(code)
        assert count == 1
        return int(struct.unpack_from(">q", reply, at + 10)[0])

    def leader(self, topic: str, partition: int) -> int:
        """Leader id by Metadata for this topic alone; -1 when unknown. May create the topic."""
        reply = self.call(frame(METADATA, struct.pack(">i", 1) + string(topic)))
        (brokers,) = struct.unpack_from(">i", reply)
        at = 4
        for _ in range(brokers):
            (size,) = struct.unpack_from(">h", reply, at + 4)
            at += 6 + size + 4
        at += 4 + 2 + 2 + len(topic)
        (partitions,) = struct.unpack_from(">i", reply, at)
        at += 4
        for _ in range(partitions):
            _, number, leader, replicas = struct.unpack_from(">hiii", reply, at)
            at += 14 + 4 * replicas
            (isr,) = struct.unpack_from(">i", reply, at)
            at += 4 + 4 * isr
            if number == partition:
                return int(leader)
        return -1

    def read_all(self, topic: str, partition: int, start: int = 0) -> list[Entry]:
        """Everything from `start` to the high watermark; entries below `start` are filtered."""
        found: list[Entry] = []
        end = self.offset(topic, partition)
        while start < end:
            _, data = self.fetch(topic, partition, start)
            fresh = [item for item in entries(data) if item.offset >= start]
            assert fresh, f"nothing at {start} of {end}"
            found += fresh
            start = fresh[-1].offset + 1
        return found

    def commit(self, group: str, topic: str, partition: int, offset: int) -> int:
        """OffsetCommit v1 (kept in Kafka); the error code."""
        body = string(group) + struct.pack(">i", -1) + string("") + struct.pack(">i", 1)
        body += string(topic) + struct.pack(">iiqq", 1, partition, offset, -1) + string("meta")
        reply = self.call(frame(OFFSET_COMMIT, body, version=1))
        return int(struct.unpack(">h", reply[-2:])[0])

    def committed(self, group: str, topic: str, partition: int) -> tuple[int, int]:
        """OffsetFetch v1: (offset, error code)."""
        body = (
            string(group) + struct.pack(">i", 1) + string(topic) + struct.pack(">ii", 1, partition)
        )
        reply = self.call(frame(OFFSET_FETCH, body, version=1))
        at = 4 + 2 + len(topic) + 4 + 4
        return int(struct.unpack_from(">q", reply, at)[0]), int(struct.unpack(">h", reply[-2:])[0])

    def coordinator_error(self, group: str) -> int:
        reply = self.call(frame(CONSUMER_METADATA, string(group)))
        return int(struct.unpack_from(">h", reply)[0])


def wait_until(
    what: str, timeout: float, probe: Callable[[], object], interval: float = 0.05
) -> None:
    """Poll `probe()` until true; OSError and WireError count as not yet."""
    deadline = time.monotonic() + timeout
    last: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if probe():
                return
            last = None
        except (OSError, WireError) as error:
            last = error
        time.sleep(interval)
    raise TimeoutError(f"{what}: not within {timeout} s" + (f" ({last})" if last else ""))
