"""Outside faults: no ZooKeeper, a broker id in use, a full disk, many or unresponsive clients.

Both kinds where 0.8.2.2 does the same; `ours` alone where the original gives up (full disk).
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness import Broker, Process, ZooKeeper, free_port, zookeeper_text
from integration.wire import (
    Wire,
    WireError,
    entries,
    entry,
    fetch_frame,
    produce_frame,
    wait_until,
)

FATAL = "FATAL Fatal error during KafkaServerStartable startup. Prepare to shutdown"
IDLE_CONNECTIONS = 5000
MIB = 1 << 20
Launch = Callable[[Process], None]


def test_no_zookeeper_at_start(kind: str, tmp_path: Path, launch: Launch) -> None:
    props = {"zookeeper.connection.timeout.ms": 1500}
    broker = Broker(kind, tmp_path, f"127.0.0.1:{free_port()}", props=props)
    launch(broker)
    broker.spawn()
    assert broker.exit_code(30) == 1
    assert FATAL in broker.log


def test_a_second_broker_on_the_same_log_dir(
    kind: str, broker: Broker, zookeeper: ZooKeeper, tmp_path: Path, launch: Launch
) -> None:
    chroot = f"{zookeeper.connect}/twin-{kind}"
    twin = Broker(kind, tmp_path, chroot, broker_id=7, log_dir=broker.log_dir)
    launch(twin)
    twin.spawn()
    assert twin.exit_code(30) == 1
    assert FATAL in twin.log
    assert "Failed to acquire lock on file .lock in" in twin.log
    assert broker.alive


def test_a_second_broker_with_the_same_id(
    kind: str, broker: Broker, tmp_path: Path, launch: Launch
) -> None:
    twin = Broker(kind, tmp_path, broker.zookeeper)
    launch(twin)
    twin.spawn()
    assert twin.exit_code(60) == 1
    assert FATAL in twin.log
    assert "already registered on the path /brokers/ids/0" in twin.log
    assert broker.alive
    assert zookeeper_text(broker.zookeeper, "/brokers/ids/0") is not None


def test_a_taken_port(
    kind: str, broker: Broker, zookeeper: ZooKeeper, tmp_path: Path, launch: Launch
) -> None:
    other = Broker(kind, tmp_path, f"{zookeeper.connect}/port-{kind}", port=broker.port)
    launch(other)
    other.spawn()
    assert other.exit_code(30) == 1
    assert FATAL in other.log


def test_zookeeper_goes_away_and_comes_back(kind: str, tmp_path: Path, launch: Launch) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    launch(zookeeper)
    zookeeper.start()
    broker = Broker(kind, tmp_path / "broker", zookeeper.connect)
    launch(broker)
    broker.start()
    broker.create_topic("before")
    with broker.wire() as wire:
        assert wire.produce("before", 0, entry(None, b"one")) == 0
        zookeeper.kill()
        for number in range(1, 20):
            assert wire.produce("before", 0, entry(None, b"more")) == number
            time.sleep(0.2)
        zookeeper.start()
        wait_until("registration", 60, lambda: _registered(broker))
        broker.create_topic("after")
        assert wire.produce("after", 0, entry(None, b"one")) == 0
        assert len(wire.read_all("before", 0)) == 20
    assert broker.stop() == 143


def _registered(broker: Broker) -> bool:
    paths = ("/brokers/ids/0", "/controller")
    return all(zookeeper_text(broker.zookeeper, path) is not None for path in paths)


def test_an_expired_session_registers_again(
    kind: str, zookeeper: ZooKeeper, tmp_path: Path, launch: Launch
) -> None:
    chroot = f"{zookeeper.connect}/expired-{kind}"
    broker = Broker(kind, tmp_path, chroot)
    launch(broker)
    broker.start()
    broker.create_topic("t")
    broker.pause()
    wait_until("expiry", 30, lambda: zookeeper_text(chroot, "/brokers/ids/0") is None)
    broker.resume()
    wait_until("registration", 60, lambda: _registered(broker))
    with broker.wire() as wire:
        wait_until("leader", 30, lambda: wire.produce("t", 0, entry(None, b"x")) >= 0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=False)


def test_a_full_disk_refuses_and_loses_nothing(
    zookeeper: ZooKeeper, small_disk: Path, tmp_path: Path, launch: Launch
) -> None:
    """0.8.2.2 halts on an I/O error; here the partition answers with an error."""
    props = {"log.index.size.max.bytes": 1024 * 1024}
    broker = Broker(
        "ours", tmp_path, f"{zookeeper.connect}/disk", props=props, log_dir=small_disk / "data"
    )
    launch(broker)
    broker.start()
    broker.create_topic("full")
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(12 * MIB))
    acknowledged: list[tuple[int, bytes]] = []
    with broker.wire() as wire:
        with pytest.raises(WireError):
            _fill(wire, acknowledged, 400)
        assert acknowledged
        assert broker.alive
        assert _values(wire)[: len(acknowledged)] == [value for _, value in acknowledged]
        ballast.unlink()
        _fill(wire, acknowledged, 10)
        _check(wire, acknowledged)
    broker.kill()
    broker.start()
    broker.wait_for_leader("full")
    with broker.wire() as wire:
        _check(wire, acknowledged)


def _fill(wire: Wire, acknowledged: list[tuple[int, bytes]], count: int) -> None:
    for _ in range(count):
        value = b"%d-" % len(acknowledged) + os.urandom(100_000)
        acknowledged.append((wire.produce("full", 0, entry(None, value)), value))


def _values(wire: Wire) -> list[bytes | None]:
    return [e.value for e in wire.read_all("full", 0)]


def _check(wire: Wire, acknowledged: list[tuple[int, bytes]]) -> None:
    found = wire.read_all("full", 0)
    assert [e.offset for e in found] == list(range(len(found)))
    for offset, value in acknowledged:
        assert found[offset].value == value, f"acknowledged offset {offset}"


@pytest.mark.slow
def test_thousands_of_idle_connections(broker: Broker) -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < IDLE_CONNECTIONS + 500:
        pytest.skip(f"the hard limit of open files is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    broker.create_topic("crowd")
    before = broker.memory()
    with contextlib.ExitStack() as stack:
        for number in range(IDLE_CONNECTIONS):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port)))
            if number % 2:
                idle.sendall(b"\0")  # half a frame
        with broker.wire() as wire:
            begin = time.monotonic()
            for number in range(100):
                assert wire.produce("crowd", 0, entry(None, b"x")) == number
            took = time.monotonic() - begin
        grown = broker.memory() - before
    assert took < 10
    assert grown < 200 * MIB, f"{grown / IDLE_CONNECTIONS / 1024:.0f} KiB per connection"
    with broker.wire() as wire:
        assert len(wire.read_all("crowd", 0)) == 100


def test_a_client_that_never_reads(broker: Broker) -> None:
    """Ten clients ask for far more than fits their sockets and read nothing; others are served."""
    broker.create_topic("unread")
    with broker.wire() as other:
        for _ in range(64):
            other.produce("unread", 0, entry(None, os.urandom(MIB // 2)))
        other.fetch("unread", 0, 0)
        before = broker.memory()
        with contextlib.ExitStack() as stack:
            ask = fetch_frame("unread", 0, 0, max_bytes=32 * MIB)
            for _ in range(10):
                idle = stack.enter_context(broker.wire())
                idle.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                idle.socket.settimeout(1)
                with contextlib.suppress(TimeoutError):
                    idle.socket.sendall(ask * 1000)
            for number in range(64, 164):
                assert other.produce("unread", 0, entry(None, b"x")) == number
            _, data = other.fetch("unread", 0, 64)
            grown = broker.memory() - before
    assert len(list(entries(data))) == 100
    assert grown < 200 * MIB
    assert broker.alive


def test_a_producer_that_never_reads(broker: Broker) -> None:
    """Replies pile up until the broker stops reading; nothing else suffers."""
    broker.create_topic("deaf")
    before = broker.memory()
    with broker.wire(2) as deaf, broker.wire() as other:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = produce_frame("deaf", 0, entry(None, b"x"), 1)
        with contextlib.suppress(TimeoutError):
            for _ in range(200):
                deaf.socket.sendall(ask * 1000)
        assert other.produce("deaf", 0, entry(None, b"y")) > 0
        assert broker.memory() - before < 200 * MIB


def test_a_frame_too_large_closes_at_once(broker: Broker) -> None:
    with broker.wire(5) as wire, pytest.raises(ConnectionError):
        wire.socket.sendall((104857601).to_bytes(4, "big"))
        wire.receive()


@pytest.mark.parametrize("kind", ["ours"], indirect=True)
def test_many_half_frames_cost_little(broker: Broker) -> None:
    """A size word of 100 MB alone must not reserve 100 MB, as it does in 0.8.2.2."""
    before = broker.memory()
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            wire = stack.enter_context(broker.wire())
            wire.socket.sendall((100_000_000).to_bytes(4, "big") + b"\0\0\0\0")
        with broker.wire() as other:
            assert other.coordinator_error("x") in (0, 15)
        grown = broker.memory() - before
    assert grown < 200 * MIB
