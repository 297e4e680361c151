"""The simulated network: bytes late, in pieces and in order, and what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.simulation.network import WINDOW, Acceptor, SimulatedNetwork, SimulatedSocket
from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.scheduler import SECOND, Scheduler

PORT = 9092


class TwoHosts:
    """A server that serves each connection with ``serve``, and a client."""

    def __init__(self, seed: int, serve: Callable[[SimulatedSocket], object]) -> None:
        self.scheduler = Scheduler(seed)
        self.network = SimulatedNetwork(self.scheduler)
        self.client = SimulatedRuntime(self.scheduler, self.network, "client")
        self.server = SimulatedRuntime(self.scheduler, self.network, "server")
        self._serve = serve
        self.network.listen(PORT, Acceptor(self.server, self._accept))

    def _accept(self, sock: SimulatedSocket, address: str) -> None:
        self.server.spawn(f"serve {address}", self._serve, sock)

    def connect(self, timeout: float = 30.0) -> SimulatedSocket:
        sock = self.client.connect("server", PORT, timeout)
        assert isinstance(sock, SimulatedSocket)
        return sock

    def run(self, function: Callable[[], object]) -> None:
        """Run this as a task of the client to its end."""
        task = self.client.spawn("test", function)
        self.scheduler.run(lambda: task.has_ended, seconds=3600)


def read_all(sock: SimulatedSocket) -> bytes:
    data = b""
    while piece := sock.recv(1000):
        data += piece
    return data


def echo(sock: SimulatedSocket) -> None:
    while piece := sock.recv(1000):
        sock.sendall(piece)
    sock.close()


@pytest.mark.parametrize("seed", range(10))
def test_bytes_arrive_in_order_and_in_pieces(seed: int) -> None:
    hosts = TwoHosts(seed, echo)
    sent = bytes(range(256)) * 20

    def talk() -> None:
        sock = hosts.connect()
        for at in range(0, len(sent), 512):
            sock.sendall(sent[at : at + 512])
        received = b""
        while len(received) < len(sent):
            received += sock.recv(100)
        assert received == sent
        sock.close()

    hosts.run(talk)
    assert any("bytes" in line for line in hosts.scheduler.trace.last)


def test_what_was_sent_before_the_end_arrives() -> None:
    got: list[bytes] = []
    hosts = TwoHosts(1, lambda sock: got.append(read_all(sock)))

    def talk() -> None:
        sock = hosts.connect()
        sock.sendall(b"all of it")
        sock.close()
        with pytest.raises(OSError):
            sock.recv(1)

    hosts.run(talk)
    hosts.scheduler.run_for(1)
    assert got == [b"all of it"]


def test_nobody_listens_or_nobody_answers() -> None:
    hosts = TwoHosts(1, echo)

    def talk() -> None:
        with pytest.raises(ConnectionRefusedError):
            hosts.client.connect("server", PORT + 1, 1.0)
        hosts.network.partition("server", "client")
        before = hosts.scheduler.now
        with pytest.raises(TimeoutError):
            hosts.connect(2.0)
        assert hosts.scheduler.now - before >= 2 * SECOND
        hosts.scheduler.after(5 * SECOND, hosts.network.heal_all)
        hosts.connect(30.0)

    hosts.run(talk)


def test_one_way_of_a_connection_may_be_down() -> None:
    heard: list[bytes] = []

    def serve(sock: SimulatedSocket) -> None:
        heard.append(sock.recv(1))
        sock.sendall(b"answer")

    hosts = TwoHosts(1, serve)

    def talk() -> None:
        sock = hosts.connect(5.0)
        hosts.network.partition("server", "client")
        sock.sendall(b"question")
        with pytest.raises(TimeoutError):
            sock.recv(100)
        assert heard == [b"q"]
        hosts.network.heal("server", "client")
        assert sock.recv(1) == b"a"

    hosts.run(talk)


def test_bytes_keep_their_order_over_a_break() -> None:
    for seed in range(20):
        got: list[bytes] = []
        hosts = TwoHosts(seed, lambda sock, got=got: got.append(read_all(sock)))  # type: ignore[misc]

        def talk(hosts: TwoHosts = hosts) -> None:
            sock = hosts.connect()
            for number in range(50):
                sock.sendall(b"%02d" % number)
                if number == 10:
                    hosts.network.partition("client", "server")
                if number == 30:
                    hosts.client.sleep(0.001)
                    hosts.network.heal("client", "server")
            sock.close()

        hosts.run(talk)
        hosts.scheduler.run_for(1)
        assert got == [b"".join(b"%02d" % number for number in range(50))]


def test_a_cut_comes_in_the_middle_of_what_is_under_way() -> None:
    lengths: set[int] = set()
    for seed in range(90):
        got = bytearray()

        def serve(sock: SimulatedSocket, got: bytearray = got) -> None:
            with pytest.raises(ConnectionResetError):
                while piece := sock.recv(1000):
                    got.extend(piece)

        hosts = TwoHosts(seed, serve)

        def talk(hosts: TwoHosts = hosts) -> None:
            sock = hosts.connect()
            sock.sendall(bytes(100))
            hosts.client.sleep(0.001)
            hosts.network.cut_one()
            with pytest.raises(OSError):
                sock.recv(1)

        hosts.run(talk)
        hosts.scheduler.run_for(1)
        lengths.add(len(got))
    assert min(lengths) == 0 and max(lengths) == 100 and len(lengths) > 4


def test_all_connections_of_a_host_are_cut() -> None:
    def serve(sock: SimulatedSocket) -> None:
        with suppress(ConnectionResetError):
            echo(sock)

    hosts = TwoHosts(1, serve)

    def talk() -> None:
        first, second = hosts.connect(), hosts.connect()
        hosts.network.cut_all("elsewhere")
        first.sendall(b"1")
        assert first.recv(1) == b"1"
        hosts.network.cut_all(hosts.server.name)
        for sock in (first, second):
            with pytest.raises(OSError):
                sock.recv(1)
        third = hosts.connect()
        third.sendall(b"3")
        assert third.recv(1) == b"3"

    hosts.run(talk)


def test_a_slow_reader_makes_the_sender_wait() -> None:
    reads: list[int] = []

    def serve(sock: SimulatedSocket) -> None:
        hosts.server.sleep(100)
        reads.append(len(read_all(sock)))

    hosts = TwoHosts(1, serve)

    def talk() -> None:
        sock = hosts.connect(1000.0)
        sock.sendall(bytes(WINDOW))
        assert hosts.scheduler.now < SECOND
        sock.sendall(b"one more")
        assert hosts.scheduler.now >= 100 * SECOND
        sock.close()

    hosts.run(talk)
    hosts.scheduler.run_for(1)
    assert reads == [WINDOW + 8]


@pytest.mark.parametrize("silently", [False, True])
def test_the_death_of_a_process_resets_its_connections(silently: bool) -> None:
    hosts = TwoHosts(1, echo)
    answers: list[type[BaseException]] = []

    def talk() -> None:
        sock = hosts.connect(10.0)
        hosts.client.sleep(1)
        hosts.server.kill()
        hosts.network.died(hosts.server, silently=silently)
        try:
            sock.recv(1)
        except OSError as error:
            answers.append(type(error))
        with pytest.raises(TimeoutError if silently else ConnectionRefusedError):
            hosts.connect()

    hosts.run(talk)
    assert answers == [TimeoutError if silently else ConnectionResetError]


def test_a_request_that_waits_hears_of_its_peer() -> None:
    ends: list[str] = []

    def serve(sock: SimulatedSocket) -> None:
        sock.incoming.on_end = lambda: ends.append("end")
        hosts.server.sleep(5)

    hosts = TwoHosts(1, serve)

    def talk() -> None:
        sock = hosts.connect()
        hosts.client.sleep(1)
        sock.close()
        hosts.client.sleep(1)

    hosts.run(talk)
    assert ends == ["end"]


def test_a_machine_that_is_off_says_nothing() -> None:
    hosts = TwoHosts(1, echo)

    def talk() -> None:
        sock = hosts.connect(5.0)
        sock.sendall(b"before")
        assert sock.recv(100)
        hosts.server.kill()
        hosts.network.died(hosts.server, silently=True)
        with pytest.raises(TimeoutError):
            sock.recv(100)
        before = hosts.scheduler.now
        with pytest.raises(TimeoutError):
            hosts.connect(5.0)
        assert hosts.scheduler.now - before >= 5 * SECOND

    hosts.run(talk)


def test_who_waits_on_a_connection_to_a_machine_that_is_off_sees_it_closed() -> None:
    hosts = TwoHosts(1, echo)

    def talk() -> None:
        sock = hosts.connect(60.0)
        hosts.server.kill()
        hosts.network.died(hosts.server, silently=True)

        def read() -> None:
            with pytest.raises(OSError, match="Bad file descriptor"):
                sock.recv(100)

        task = hosts.client.spawn("read", read)
        hosts.client.sleep(1.0)
        sock.close()
        assert task.join(1.0)

    hosts.run(talk)


def test_arrivals_are_counted() -> None:
    hosts = TwoHosts(1, echo)
    seen: list[int] = []
    hosts.network.arrivals.after(1, lambda: seen.append(hosts.scheduler.now))

    def talk() -> None:
        sock = hosts.connect()
        sock.sendall(b"1")
        assert sock.recv(1) == b"1"
        assert len(seen) == 1

    hosts.run(talk)


def test_markers_can_be_held_before_they_arrive() -> None:
    hosts = TwoHosts(1, echo)
    network, markers, other = hosts.network, b"\0\0\0\x08\0\x1b\0\1", b"\0\0\0\x08\0\x1a\0\1"
    network.markers.after(1, lambda: network.partition("client", "server"))

    def talk() -> None:
        sock = hosts.connect(timeout=2.0)
        sock.sendall(other)
        assert sock.recv(8)
        assert network.marker_way is None
        sock.sendall(markers)
        assert network.marker_way == ("client", "server")
        with pytest.raises(TimeoutError):
            sock.recv(8)
        network.heal("client", "server")
        assert sock.recv(8)

    hosts.run(talk)


def test_nothing_is_planned_after_faults() -> None:
    hosts = TwoHosts(1, echo)
    hosts.network.arrivals.after(1, lambda: pytest.fail("a fault after the last one"))
    hosts.network.markers.after(1, lambda: pytest.fail("a fault after the last one"))
    hosts.network.heal_all()

    def talk() -> None:
        sock = hosts.connect()
        sock.sendall(b"\0\0\0\x08\0\x1b\0\1")
        assert sock.recv(8)

    hosts.run(talk)
