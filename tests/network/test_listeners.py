"""The sockets that a server listens on: addresses, and how many connections they take."""

from __future__ import annotations

import errno
import socket as stdlib_socket
import time
from typing import Any

import gevent
import pytest
from gevent import socket

from kafka08.errors import KafkaError
from kafka08.network.connection import Handle
from kafka08.network.connection_limits import Most
from kafka08.network.peer import Peer, current_peer
from kafka08.network.server import Listener, Server
from tests.network.socket_service import Connect, Service, SocketClient, Start, limits, until

# Families of addresses


def has_ipv6() -> bool:
    try:
        with stdlib_socket.socket(stdlib_socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@needs_ipv6
@pytest.mark.parametrize("host", [None, "", " "])
def test_both_families_without_a_host(
    start: Start, connect: Connect, service: Service, host: str | None
) -> None:
    server = start(host=host)
    assert connect(server, "127.0.0.1").call(b"four") == b"four"
    assert connect(server, "::1").call(b"six") == b"six"
    assert service.addresses == ["127.0.0.1", "::1"]


@needs_ipv6
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_ipv6_address_as_host(
    start: Start, connect: Connect, service: Service, host: str
) -> None:
    server = start(host=host)
    assert connect(server, "::1").call(b"six") == b"six"
    with pytest.raises(ConnectionRefusedError):
        connect(server, "127.0.0.1")


@pytest.mark.scenario("security-50")
@needs_ipv6
def test_limits_go_by_address_on_a_socket_for_both_families(start: Start, connect: Connect) -> None:
    server = start(host=None, limits=limits(of_addresses={"127.0.0.1": 1, "::1": 2, "10.1.1.1": 9}))
    four, six = connect(server, "127.0.0.1"), [connect(server, "::1") for _ in range(2)]
    assert [client.call(b"in") for client in (four, *six)] == [b"in"] * 3
    assert connect(server, "127.0.0.1").is_closed()
    assert connect(server, "::1").is_closed()


def test_ipv4_alone_where_the_machine_has_no_ipv6(
    monkeypatch: pytest.MonkeyPatch, start: Start, connect: Connect, service: Service
) -> None:
    real = socket.socket

    def without_ipv6(family: int, *args: Any) -> Any:
        if family == stdlib_socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, *args)

    monkeypatch.setattr(socket, "socket", without_ipv6)
    server = start(host=None)
    monkeypatch.undo()
    assert connect(server).call(b"four") == b"four"
    assert service.addresses == ["127.0.0.1"]


def test_a_port_taken_on_one_family_is_not_shared(start: Start) -> None:
    taken = start(host="127.0.0.1").ports[0]
    with pytest.raises(KafkaError, match=f"failed to bind to 0.0.0.0:{taken}"):
        Server([Listener(None, taken)], max_request_bytes=1)


def test_a_host_that_does_not_resolve_fails_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> None:
        raise stdlib_socket.gaierror(stdlib_socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(stdlib_socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(KafkaError, match="failed to bind to box:9092: Name or service not known"):
        Server([Listener("box", 9092)], max_request_bytes=1)


# Limits


@pytest.mark.scenario("security-50")
def test_connections_beyond_an_addresss_limit_are_closed_without_a_byte(
    start: Start, connect: Connect
) -> None:
    server = start(limits=limits(of_address=2))
    first, second = connect(server), connect(server)
    assert first.call(b"1") == b"1"
    assert second.call(b"2") == b"2"
    assert connect(server).is_closed()
    first.sock.close()
    until(lambda: server.connections == 1)
    assert connect(server).call(b"3") == b"3"


@pytest.mark.scenario("security-50")
def test_an_override_stands_for_its_host(start: Start, connect: Connect) -> None:
    server = start(limits=limits(of_address=0, of_addresses={"localhost": 1}))
    first = connect(server)
    assert first.call(b"1") == b"1"
    assert connect(server).is_closed()


def test_over_the_limit_of_all_the_next_waits(start: Start, connect: Connect) -> None:
    server = start(limits=limits(of_all=Most(2)))
    first, second = connect(server), connect(server)
    assert [first.call(b"1"), second.call(b"2")] == [b"1", b"2"]
    third = connect(server)
    third.send(b"3")
    gevent.sleep(0.15)
    assert server.connections == 2
    first.sock.close()
    assert third.reply() == b"3"


def test_connections_that_come_too_fast_are_accepted_later(start: Start, connect: Connect) -> None:
    server = start(limits=limits(of_all=Most(per_second=20), seconds=0.1))
    began = time.monotonic()
    clients = [connect(server) for _ in range(6)]
    assert [client.call(b"x") for client in clients] == [b"x"] * 6
    assert time.monotonic() - began > 0.1


def test_a_broker_takes_the_place_of_the_idlest_client(service: Service) -> None:
    given = limits(of_all=Most(2), exempt="INNER")
    listening = [Listener("127.0.0.1", 0), Listener("127.0.0.1", 0, "INNER")]
    server = Server(listening, max_request_bytes=1000, limits=given)
    server.start(service.handle)
    clients = [SocketClient(server.ports[0]), SocketClient(server.ports[0])]
    idle, busy = clients
    try:
        assert [idle.call(b"1"), busy.call(b"2")] == [b"1", b"2"]
        clients.append(SocketClient(server.ports[1]))
        assert clients[-1].call(b"3") == b"3"
        assert idle.is_closed()
        assert busy.call(b"4") == b"4"
    finally:
        for client in clients:
            client.sock.close()
        server.stop()


def test_a_taken_port_is_told_before_anything_starts(start: Start) -> None:
    server = start()
    with pytest.raises(KafkaError, match=f"failed to bind to 127.0.0.1:{server.ports[0]}"):
        Server([Listener("127.0.0.1", server.ports[0])], max_request_bytes=1000)


def test_listeners_share_the_limits_and_tell_themselves_apart(service: Service) -> None:
    seen: list[tuple[str, str, str]] = []

    def handle(frame: memoryview, address: str) -> list[Any] | None:
        peer = current_peer.get()
        assert peer is not None
        seen.append((peer.listener, peer.host, peer.principal))
        return service.handle(frame, address)

    def login(peer: Peer, handle: Handle) -> Handle:
        peer.admit("User:alice")
        return handle

    server = Server(
        [Listener("127.0.0.1", 0), Listener("127.0.0.1", 0, "INNER")],
        max_request_bytes=1000,
        limits=limits(of_address=2),
    )
    server.start(handle, {"INNER": login})
    clients = [SocketClient(port) for port in server.ports]
    try:
        for client in clients:
            assert client.call(b"x") == b"x"
        assert seen == [
            ("PLAINTEXT", "127.0.0.1", "User:ANONYMOUS"),
            ("INNER", "127.0.0.1", "User:alice"),
        ]
        clients.append(SocketClient(server.ports[1]))
        assert clients[-1].is_closed()
    finally:
        for client in clients:
            client.sock.close()
        server.stop()


def test_a_second_listener_that_cannot_be_bound_frees_the_first(start: Start) -> None:
    taken = start().ports[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(KafkaError, match=f"failed to bind to 127.0.0.1:{taken}"):
        Server([Listener("127.0.0.1", port), Listener("127.0.0.1", taken)], max_request_bytes=1)
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))
