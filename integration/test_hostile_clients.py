"""Hostile clients while a good one is served: handshakes, renegotiation, denied requests.

Each test prints how long the good client waited and how much memory the broker took.
"""

from __future__ import annotations

import contextlib
import resource
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from integration.certificates import Authority
from integration.harness import Broker, Tools, ZooKeeper, free_port
from integration.test_acls import PROPS, From, Rules
from integration.tls_wire import TlsWire
from integration.wire import Wire, WireError, entry, produce_frame, wait_until

WAIT_S = 120
# A good client's request takes milliseconds. While thousands connect it waits in the kernel's queue
# too, whose retries take seconds where the processor is busy.
PATIENCE_S = 20
FLOODERS = 20
FLOOD_S = 10
GOOD, BAD = "127.0.0.1", "127.0.0.2"


class Guarded:
    """A broker with TLS and rules: ``good`` is for one address."""

    def __init__(self, directory: Path, connect: str, tools: Tools) -> None:
        self.authority = Authority(directory / "authority")
        self.tls_port, port = free_port(), free_port()
        rules = Rules(connect, tools)
        rules.allow("--cluster", "--operation", "ClusterAction", "--allow-host", GOOD)
        rules.allow("--topic", "good", "--operation", "All", "--allow-host", GOOD)
        self.broker = Broker(
            "ours",
            directory / "broker",
            connect,
            port=port,
            props={
                **PROPS,
                "listeners": f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{self.tls_port}",
                "ssl.keystore.location": self.authority.issue("broker"),
            },
        )

    def good(self, port: int | None = None) -> float:
        """A good client connects, writes and reads; the seconds that it took."""
        began = time.monotonic()
        with self._connection(port) as wire:
            wire.produce("good", 0, entry(None, b"x"))
            wire.fetch("good", 0, 0)
        return time.monotonic() - began

    def _connection(self, port: int | None) -> Wire:
        if port == self.tls_port:
            return TlsWire(port, self.authority.path)
        return self.broker.wire()


@pytest.fixture(scope="module")
def guarded(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory, our_tools: Tools
) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("hostile")
    found = Guarded(directory, f"{zookeeper.connect}/hostile", our_tools)
    found.broker.start()
    found.broker.create_topic("good")
    yield found
    found.broker.kill()


class Worst:
    """A good client in a thread; ``seconds`` is the longest time that it took, ``done`` how often
    it was served."""

    def __init__(self, act: Callable[[], float]) -> None:
        self.seconds = 0.0
        self.done = 0
        self.error: Exception | None = None
        self._act = act
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            try:
                self.seconds = max(self.seconds, self._act())
            except (OSError, WireError) as error:
                self.error = error
                return
            self.done += 1

    def __enter__(self) -> Worst:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._thread.join(WAIT_S)


@pytest.mark.scenario("security-16")
def test_16_renegotiation_is_refused(guarded: Guarded) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl on PATH")
    child = subprocess.Popen(
        [program, "s_client", "-tls1_2", "-connect", f"127.0.0.1:{guarded.tls_port}",
            "-CAfile", str(guarded.authority.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    seen = b""
    try:
        while b"Extended master secret" not in seen:
            line = child.stdout.readline()
            assert line, seen.decode()
            seen += line
        assert b"Secure Renegotiation IS supported" in seen
        child.stdin.write(b"R\n")
        child.stdin.flush()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(20)
        child.stdin.close()
        rest = child.stdout.read() if child.poll() is not None else b""
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert b"RENEGOTIATING" in rest
    assert b"no renegotiation" in rest
    assert rest.count(b"Verify return code") == 0
    assert guarded.good(guarded.tls_port) < PATIENCE_S


@pytest.mark.scenario("security-14")
@pytest.mark.slow
def test_ten_thousand_half_open_handshakes(guarded: Guarded) -> None:
    """200 each from 50 addresses, all at once: they end in time, and others are served."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 12_000:
        pytest.skip(f"{hard} descriptors are too few for 10,000 connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    broker, port = guarded.broker, guarded.tls_port
    guarded.good(port)
    before = broker.memory()
    begun: list[socket.socket] = []
    try:
        with Worst(lambda: guarded.good(port)) as over_tls, Worst(guarded.good) as plain:
            for host in range(50):
                for _ in range(200):
                    address = (f"127.0.1.{host + 1}", 0)
                    sock = socket.create_connection((GOOD, port), 60, address)
                    sock.sendall(b"\x16\x03\x01")
                    begun.append(sock)
            during = broker.memory()
            began = time.monotonic()
            closed = sum(map(_is_closed, begun))
            seconds = time.monotonic() - began
        print(
            f"{len(begun)} half-open handshakes: {closed} closed {seconds:.1f} s after the last, "
            f"{(during - before) / 1e6:+.0f} MB of memory, a good client over TLS waited "
            f"{over_tls.seconds:.2f} s at most of {over_tls.done} times, on the plain port "
            f"{plain.seconds:.2f} s of {plain.done}"
        )
    finally:
        for each in begun:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert closed == len(begun) == 10_000
    assert (over_tls.error, plain.error) == (None, None)
    assert over_tls.done and plain.done
    assert max(over_tls.seconds, plain.seconds) < PATIENCE_S
    assert during - before < 500 << 20
    wait_until("memory for others", 60, lambda: guarded.good(port) < PATIENCE_S)


def _is_closed(sock: socket.socket) -> bool:
    sock.settimeout(60)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.slow
def test_a_flood_of_denied_requests(guarded: Guarded) -> None:
    """Names of topics are ever new, so that nothing that is remembered helps."""
    broker = guarded.broker
    guarded.good()
    before, stop = broker.memory(), threading.Event()
    counts = [0] * FLOODERS

    def flood(number: int) -> None:
        with From(broker.port, BAD) as wire:
            while not stop.is_set():
                with contextlib.suppress(WireError):
                    wire.produce(f"bad-{number}-{counts[number]}", 0, entry(None, b"x"))
                counts[number] += 1

    threads = [threading.Thread(target=flood, args=[n], daemon=True) for n in range(FLOODERS)]
    with Worst(guarded.good) as good:
        for thread in threads:
            thread.start()
        time.sleep(FLOOD_S)
        stop.set()
        for thread in threads:
            thread.join(WAIT_S)
    grown = broker.memory() - before
    path = broker.directory / "kafka-authorizer.log"
    lines = path.read_text().splitlines()
    print(
        f"{sum(counts)} denied requests in {FLOOD_S} s: a good client waited {good.seconds:.2f} s "
        f"at most of {good.done} times, {grown / 1e6:+.0f} MB of memory, {len(lines)} lines in "
        "the audit log"
    )
    assert sum(counts) > 1000
    assert good.error is None
    assert good.done
    assert good.seconds < PATIENCE_S
    assert grown < 64 << 20
    assert 1 <= len([line for line in lines if "Topic:LITERAL:bad-" in line]) <= 2000


LARGE, BOUND = 40 << 20, 64 << 20
FEW = {
    "queued.max.request.bytes": BOUND,
    "socket.request.max.bytes": LARGE + 1000,
    "auto.create.topics.enable": "false",
    "zookeeper.session.timeout.ms": 30000,
    "zookeeper.connection.timeout.ms": 60000,
}


@pytest.mark.scenario("security-51")
@pytest.mark.slow
def test_51_large_requests_take_the_memory_that_is_set(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """20 clients never finish requests of 40 MB; then 4 at once finish theirs."""
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/large", props=FEW).start()
    frame = produce_frame("nowhere", 0, bytes(LARGE), 1)

    def fetch() -> None:
        with broker.wire() as wire:
            wire.fetch("good", 0, 0)

    try:
        broker.create_topic("good")
        with broker.wire() as wire:
            wire.produce("good", 0, entry(None, b"x"))
        before = broker.memory()
        with ThreadPoolExecutor(20) as pool:
            unfinished = [Wire(broker.port, timeout=5) for _ in range(20)]
            sent = [pool.submit(_send_quietly, each, frame[:-1]) for each in unfinished]
            most = _most_memory(broker, sent, fetch)
            for each in unfinished:
                each.close()
            answers = [pool.submit(_until_answered, broker, frame) for _ in range(4)]
            more = max(most, _most_memory(broker, answers)) - before
        tries = sum(each.result() for each in answers)
    finally:
        broker.kill()
    print(f"24 requests of 40 MB: {more / 1e6:+.0f} MB at most, {tries} tries for 4 answers")
    # Buffers that grow are there twice for a moment.
    assert more < 2 * BOUND + (20 << 20)


@pytest.mark.scenario("security-51")
@pytest.mark.slow
def test_51_twenty_large_requests_at_once_are_all_answered(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """They need 13 times the memory that is set. Those that have to make room try again."""
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/twenty", props=FEW).start()
    frame = produce_frame("nowhere", 0, bytes(LARGE), 1)
    try:
        broker.wire().close()
        before, began = broker.memory(), time.monotonic()
        with ThreadPoolExecutor(20) as pool:
            answers = [pool.submit(_until_answered, broker, frame) for _ in range(20)]
            more = _most_memory(broker, answers) - before
        tries = sum(each.result() for each in answers)
    finally:
        broker.kill()
    seconds = time.monotonic() - began
    print(f"20 requests of 40 MB: {more / 1e6:+.0f} MB at most, {tries} tries in {seconds:.0f} s")
    # Buffers that grow are there twice for a moment, and malloc keeps some of those that are gone.
    assert more < 3 * BOUND + (20 << 20)


def _most_memory(
    broker: Broker, running: Sequence[Future[Any]], meanwhile: Callable[[], None] | None = None
) -> int:
    """The largest resident size of the broker, in bytes, until all of ``running`` are done."""
    most = broker.memory()
    while not all(each.done() for each in running):
        if meanwhile is not None:
            meanwhile()
        most = max(most, broker.memory())
        time.sleep(0.01)
    return most


def _send_quietly(wire: Wire, data: bytes) -> None:
    with contextlib.suppress(OSError):
        wire.socket.sendall(data)


def _until_answered(broker: Broker, frame: bytes) -> int:
    """Send a request to a topic that does not exist, again if the connection had to make room; how
    often it was sent."""
    tries, until = 1, time.monotonic() + WAIT_S
    while True:
        try:
            with Wire(broker.port, timeout=WAIT_S) as wire:
                answer = wire.call(frame)
        except OSError:
            assert time.monotonic() < until
            tries += 1
            continue
        assert answer[-10:-8] == b"\0\3"
        return tries


@pytest.mark.scenario("security-53")
def test_names_of_any_length_make_short_lines(guarded: Guarded) -> None:
    """A client id of 32 kB with line breaks, in a request that fails, and in a refused one."""
    hostile = "x\r\n\x1b[2J\u2028" + "y" * 30_000
    encoded = hostile.encode()
    broker = guarded.broker
    name = len(encoded).to_bytes(2, "big") + encoded
    head = b"\0\x03\0\0\0\0\0\1" + name
    with Wire(broker.port) as wire:  # Metadata of a topic with that name, from a client of that id
        body = head + (1).to_bytes(4, "big") + name
        wire.call(len(body).to_bytes(4, "big") + body)
    with contextlib.suppress(OSError), Wire(broker.port) as wire:
        body = b"\0\x63\0\0\0\0\0\1" + name  # an API that is not known
        wire.call(len(body).to_bytes(4, "big") + body)
    with contextlib.suppress(OSError), Wire(broker.port) as wire:
        body = head + b"\0\0\0\x7f" + name  # fewer topics than it says
        wire.call(len(body).to_bytes(4, "big") + body)
    audit = (broker.directory / "kafka-authorizer.log").read_text()
    assert max(map(len, [*broker.log.splitlines(), *audit.splitlines()])) < 1500
    assert "\x1b" not in broker.log + audit
