"""Producing and fetching over TLS: a thread for each connection, which blocks.

OpenSSL works outside the interpreter's lock, so the threads encrypt at the same time. The
generator's share of the processors is larger than without TLS, and is in the rows.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration.bench.load import Amount, Moved, Ring, measured, no_meter, requests_in
from integration.bench.reading import Reader
from integration.bench.records import Batch

RECEIVE_BYTES = 1 << 16
PARTITIONS = 6
TIMEOUT_S = 60


class Ends:
    """``ports``: the TLS ports of brokers by kind, whose certificates are of one authority."""

    def __init__(self, authority: Path, ports: Mapping[str, int]) -> None:
        self.ports = ports
        self._context = ssl.create_default_context(cafile=str(authority))

    def _connect(self, port: int) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._context.wrap_socket(plain, server_hostname="127.0.0.1")

    def send_rings(
        self,
        port: int,
        rings_: Sequence[Ring],
        *,
        reply_size: int,
        in_flight: int,
        seconds: float,
        max_bytes: int,
        cpu: Callable[[], float] = no_meter,
    ) -> Amount:
        """As load.send_rings."""
        limit = max(1, requests_in(rings_, max_bytes) // len(rings_))
        open_ = [self._connect(port) for _ in rings_]

        def push(sock: ssl.SSLSocket, ring: Ring) -> Moved:
            sent = replied = 0
            while True:
                if sent < limit and time.perf_counter() < deadline:
                    number, data = ring.take(sent, in_flight - (sent - replied // reply_size))
                    sock.sendall(data)
                    sent += number
                if replied == sent * reply_size:
                    return ring.totals(sent)
                got = len(sock.recv(RECEIVE_BYTES))
                if not got:
                    raise ConnectionResetError("closed by the broker")
                replied += got

        deadline = time.perf_counter() + seconds
        work = _in_threads(push, list(zip(open_, rings_, strict=True)))
        return measured(work, open_, cpu)

    def fetch(
        self,
        port: int,
        make: Callable[..., Reader],
        batches: Sequence[Batch],
        *,
        max_bytes: int,
        connections: int,
        seconds: float,
        cpu: Callable[[], float] = no_meter,
    ) -> Amount:
        """As reading.fetch. ``make``: a reader of (partition, bytes, batches) over a plain port,
        whose connection is replaced."""
        readers = [make(number % PARTITIONS, max_bytes, batches) for number in range(connections)]
        for reader in readers:
            reader.connection.close()
            reader.connection = self._connect(port)

        def pull(reader: Reader) -> Moved:
            while time.perf_counter() < deadline:
                reader.ask()
                while not reader.receive():
                    pass
            return reader.records, reader.payload

        deadline = time.perf_counter() + seconds
        work = _in_threads(pull, [(reader,) for reader in readers])
        return measured(work, [reader.connection for reader in readers], cpu)


def _in_threads(
    work: Callable[..., Moved], each: Sequence[tuple[object, ...]]
) -> Callable[[], list[Moved]]:
    """`work` on each, in a thread of its own."""

    def run() -> list[Moved]:
        with ThreadPoolExecutor(len(each)) as pool:
            return [future.result() for future in [pool.submit(work, *one) for one in each]]

    return run
