"""Large requests that do not come to an end: how much memory they get, and who has to go."""

from __future__ import annotations

import struct
from functools import partial
from types import SimpleNamespace

import gevent
import pytest
from gevent import socket

from kafka08.network import memory as memory_module
from kafka08.network.memory import UNBOUNDED, EvictedError, RequestMemory
from kafka08.network.server import Server
from kafka08.protocol.framing import LARGEST_BUFFER
from tests.fakes.runtime import FakeClock
from tests.network.socket_service import Service, SocketClient, Start, framed, until

LARGE = 4 * LARGEST_BUFFER
LIMIT = 10 * LARGEST_BUFFER


class Holder:
    def __init__(self, name: str = "") -> None:
        self.address = name
        self.serving = False
        self.is_shut = False

    def shutdown(self) -> None:
        self.is_shut = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Each look at it takes a moment."""
    clock = FakeClock()

    def monotonic() -> float:
        clock.advance(0.01)
        return clock.now

    monkeypatch.setattr(memory_module, "time", SimpleNamespace(monotonic=monotonic))
    return clock


def test_room_is_given_and_taken_back(clock: FakeClock) -> None:
    memory, one, other = RequestMemory(100), Holder(), Holder()
    memory.hold(one, 40)
    memory.hold(one, 60)
    memory.hold(other, 40)
    assert memory.used == 100
    memory.release(one)
    memory.release(one)
    memory.hold(other, 100)
    assert memory.used == 100
    memory.release(other)
    assert memory.used == 0


def test_a_single_request_always_has_room(clock: FakeClock) -> None:
    memory, one = RequestMemory(100), Holder()
    memory.hold(one, 90)
    memory.hold(one, 200)
    assert memory.used == 200


def test_without_a_bound_nobody_waits(clock: FakeClock) -> None:
    memory = RequestMemory(UNBOUNDED)
    for _ in range(10):
        memory.hold(Holder(), 1 << 40)


def test_who_has_held_the_most_for_the_longest_goes(clock: FakeClock) -> None:
    memory = RequestMemory(100)
    small, idle, late, serving = Holder("small"), Holder("idle"), Holder("late"), Holder("serving")
    memory.hold(serving, 30)
    serving.serving = True
    memory.hold(small, 10)
    memory.hold(idle, 30)
    clock.advance(5)
    memory.hold(late, 30)
    memory.hold(Holder(), 20)
    assert [each.is_shut for each in (small, idle, late, serving)] == [False, True, False, False]
    assert memory.used == 90


def test_who_asks_may_be_the_one_to_go(clock: FakeClock) -> None:
    memory, idle, other = RequestMemory(100), Holder(), Holder()
    memory.hold(idle, 50)
    clock.advance(60)
    memory.hold(other, 50)
    with pytest.raises(EvictedError):
        memory.hold(idle, 60)
    assert memory.used == 50
    assert not other.is_shut


def test_the_wait_for_room_is_not_held_against_a_connection(clock: FakeClock) -> None:
    memory, sender, idle = RequestMemory(100), Holder("sender"), Holder("idle")
    serving = Holder("serving")
    serving.serving = True
    memory.hold(idle, 20)
    clock.advance(0.5)
    memory.hold(sender, 30)
    memory.hold(serving, 50)
    waiting = gevent.spawn(memory.hold, sender, 45)
    gevent.sleep(0)
    clock.advance(60)
    memory.release(serving)
    waiting.join(5)
    assert waiting.successful()
    memory.hold(Holder(), 40)
    assert idle.is_shut
    assert not sender.is_shut


@pytest.mark.scenario("security-51")
def test_where_all_wait_one_of_them_goes(clock: FakeClock) -> None:
    memory, one, other = RequestMemory(100), Holder("one"), Holder("other")
    memory.hold(one, 60)
    memory.hold(other, 40)
    tasks = [gevent.spawn(memory.hold, each, 80) for each in (one, other)]
    gevent.joinall(tasks, 5)
    assert sorted(task.successful() for task in tasks) == [False, True]
    assert one.is_shut != other.is_shut


@pytest.mark.scenario("security-51")
def test_where_all_wait_the_one_that_needs_the_most_goes(clock: FakeClock) -> None:
    """The one that needs the least is whole at the end, however long it has held the most."""
    memory, ahead, behind = RequestMemory(100), Holder("ahead"), Holder("behind")
    memory.hold(ahead, 60, 90)
    clock.advance(5)
    memory.hold(behind, 40, 90)
    tasks = [gevent.spawn(memory.hold, each, 80, 90) for each in (behind, ahead)]
    gevent.joinall(tasks, 5)
    assert behind.is_shut
    assert not ahead.is_shut
    assert [task.successful() for task in tasks] == [False, True]
    memory.hold(ahead, 90, 90)
    assert memory.used == 90


@pytest.mark.scenario("security-51")
def test_room_goes_to_the_request_that_needs_the_least(clock: FakeClock) -> None:
    memory, served = RequestMemory(100), Holder("served")
    memory.hold(served, 90)
    served.serving = True
    got: list[str] = []

    def ask(name: str, size: int, needed: int) -> None:
        memory.hold(Holder(name), size, needed)
        got.append(name)

    asked = [("large", 20, 80), ("early", 20, 40), ("late", 20, 40), ("small", 30, 30)]
    tasks = [gevent.spawn(ask, *each) for each in asked]
    gevent.sleep(0)
    memory.release(served)
    gevent.joinall(tasks, 5)
    assert got == ["small", "early", "late", "large"]


def test_newcomers_do_not_take_room_before_those_that_need_less(clock: FakeClock) -> None:
    memory, ahead, served = RequestMemory(100), Holder("ahead"), Holder("served")
    memory.hold(ahead, 50, 80)
    memory.hold(served, 40)
    served.serving = True
    first = gevent.spawn(memory.hold, ahead, 80, 80)
    gevent.sleep(0)
    newcomer = gevent.spawn(memory.hold, Holder("newcomer"), 10, 80)
    gevent.sleep(0)
    assert not newcomer.ready()
    memory.release(served)
    gevent.joinall([first, newcomer], 5)
    assert first.successful() and newcomer.successful()
    assert memory.used == 90


def test_a_wait_that_is_killed_leaves_the_queue(clock: FakeClock) -> None:
    memory, served = RequestMemory(100), Holder("served")
    memory.hold(served, 90)
    served.serving = True
    first = gevent.spawn(memory.hold, Holder("first"), 20, 20)
    second = gevent.spawn(memory.hold, Holder("second"), 20, 30)
    gevent.sleep(0)
    first.kill()
    memory.release(served)
    second.join(5)
    assert second.successful()
    assert memory.used == 20


def test_young_requests_are_waited_for(clock: FakeClock) -> None:
    """A burst of large requests that do come in costs nobody the connection."""
    memory, one = RequestMemory(100), Holder()
    memory.hold(one, 90)
    waiting = gevent.spawn(memory.hold, Holder(), 50)
    gevent.sleep(0)
    assert not waiting.ready()
    memory.release(one)
    waiting.join(5)
    assert waiting.successful()
    assert not one.is_shut
    assert memory.used == 50


# The server


@pytest.fixture
def start(start: Start) -> Start:
    return partial(start, max_request_bytes=1 << 30, queued_max_bytes=LIMIT)


def begin(server: Server, size: int, sent: int) -> socket.socket:
    """A connection that sends a part of a frame, as far as it is taken."""
    sock = socket.create_connection(("127.0.0.1", server.ports[0]), 5)
    data = struct.pack(">i", size) + bytes(sent)
    gevent.spawn(_send_quietly, sock, data)
    return sock


def _send_quietly(sock: socket.socket, data: bytes) -> None:
    try:
        sock.sendall(data)
    except OSError:
        pass


@pytest.mark.scenario("security-51")
def test_unfinished_requests_are_read_only_so_far(start: Start) -> None:
    server = start()
    socks = [begin(server, 2 * LARGE, 2 * LARGE - 1) for _ in range(8)]
    until(lambda: server.memory.used > LIMIT - LARGE)
    for _ in range(1000):
        gevent.sleep(0)
        assert server.memory.used <= LIMIT
    for sock in socks:
        sock.close()
    until(lambda: server.connections == 0)
    assert server.memory.used == 0


def sends_large(server: Server) -> bool:
    """Whether a new client's large request is answered."""
    client, large = SocketClient(server.ports[0]), bytes(LARGE)
    try:
        client.sock.sendall(framed(large))
        return client.reply() == large
    except (EOFError, ConnectionError):
        return False
    finally:
        client.sock.close()


@pytest.mark.scenario("security-51")
def test_others_are_served_meanwhile(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short requests at once; a large one as soon as an unfinished one had to make room."""
    monkeypatch.setattr(memory_module, "PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(memory_module, "GRACE_SECONDS", 0.0)
    server = start()
    socks = [begin(server, 2 * LARGE, 2 * LARGE - 1) for _ in range(3)]
    until(lambda: server.memory.used > LARGE)
    client = SocketClient(server.ports[0])
    assert client.call(b"short") == b"short"
    # One of the four has to make room. On a slow machine it may be the one that goes on sending.
    assert any(sends_large(server) for _ in range(3))
    assert client.call(b"short") == b"short"
    for sock in socks:
        sock.close()
    client.sock.close()


@pytest.mark.scenario("security-51")
def test_a_served_request_gives_its_room_back(start: Start, service: Service) -> None:
    server = start()
    client = SocketClient(server.ports[0])
    large = bytes(LARGE)
    gevent.spawn(client.sock.sendall, framed(large))
    assert client.reply() == large
    assert client.call(b"short") == b"short"
    until(lambda: server.memory.used == 0)
    client.sock.close()
