"""kazoo's sockets: cheap waiting, and TLS over real ones."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gevent.socket
import pytest

from kafka08.network.tls import client_context, server_context
from kafka08.runtime import GeventRuntime, Runtime, TaskHandle, ThreadRuntime
from kafka08.settings.tls import SslSettings
from zk.handlers import handler

TLS = Path(__file__).parents[1] / "golden" / "tls"
TRUSTED = SslSettings(ssl_truststore_location=str(TLS / "ca.pem"))


def test_what_is_ready_costs_no_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    from kazoo.handlers.gevent import SequentialGeventHandler

    greenlets = handler(gevent=True)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert greenlets.select([ours, theirs], [], [], 0.001) == ([], [], [])
        theirs.send(b"x")
        monkeypatch.setattr(SequentialGeventHandler, "select", None)
        assert greenlets.select([ours, theirs], [], [], 0.001) == ([ours], [], [])


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port where 127.0.0.1 answers and 127.0.0.2 does not. The host ``zk`` has both, in the other
    order."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        real = socket.getaddrinfo

        def resolve(host: str, *words: Any, **options: Any) -> list[tuple[Any, ...]]:
            if host == "elsewhere":
                raise socket.gaierror(socket.EAI_NONAME, "no such host")
            hosts = ("127.0.0.2", "127.0.0.1") if host == "zk" else (host,)
            return [each for one in hosts for each in real(one, *words, **options)]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        monkeypatch.setattr(gevent.socket, "getaddrinfo", resolve)
        yield port


@pytest.mark.parametrize("greenlets", [False, True])
def test_another_address_of_the_host_answers(greenlets: bool, answering: int) -> None:
    made = handler(greenlets)
    with made.create_connection(("127.0.0.2", answering), hostname="zk", timeout=10) as sock:
        assert sock.getpeername() == ("127.0.0.1", answering)


@pytest.mark.parametrize("greenlets", [False, True])
@pytest.mark.parametrize("host", ["", "elsewhere"])
def test_no_other_address_is_known(greenlets: bool, host: str, answering: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        handler(greenlets).create_connection(("127.0.0.2", answering), hostname=host, timeout=10)


@pytest.fixture
def begun() -> Iterator[Callable[[Runtime, str], int]]:
    """Starts a server with a certificate, which sends two bytes in one record; returns its port."""
    with ExitStack() as stack:

        def begin(runtime: Runtime, certificate: str) -> int:
            location = str(TLS / f"{certificate}.pem")
            context = server_context(SslSettings(ssl_keystore_location=location))
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            task: list[TaskHandle] = []
            stack.callback(lambda: task[0].join(10))

            def serve() -> None:
                peer, _ = listening.accept()
                with peer:
                    peer.settimeout(10)
                    try:
                        with context.wrap_socket(peer, server_side=True) as secured:
                            secured.sendall(b"ab")
                            secured.recv(1)
                    except OSError:
                        pass

            task.append(ThreadRuntime().spawn("server", serve))
            return int(listening.getsockname()[1])

        yield begin


def context() -> ssl.SSLContext:
    return client_context(TRUSTED)


@pytest.mark.parametrize("greenlets", [False, True])
def test_decrypted_bytes_are_ready(greenlets: bool, begun: Callable[[Runtime, str], int]) -> None:
    runtime = GeventRuntime() if greenlets else ThreadRuntime()
    port = begun(runtime, "server")
    made = handler(greenlets, context)
    sock: Any = made.create_connection(("127.0.0.1", port), hostname="localhost", timeout=10)
    with sock:
        assert made.select([sock], [], [], 10)[0] == [sock]
        assert sock.recv(1) == b"a"
        # No bytes are left on the network, but one is decrypted.
        assert made.select([sock], [], [], 10)[0] == [sock]
        assert sock.recv(1) == b"b"
        assert made.select([sock], [], [], 0.01)[0] == []
    runtime.close()


@pytest.mark.parametrize("greenlets", [False, True])
@pytest.mark.parametrize(
    ("certificate", "why"),
    [("expired", "certificate has expired"), ("elsewhere", "not valid for 'localhost'")],
)
def test_servers_are_checked(
    certificate: str, why: str, greenlets: bool, begun: Callable[[Runtime, str], int]
) -> None:
    runtime = GeventRuntime() if greenlets else ThreadRuntime()
    port = begun(runtime, certificate)
    with pytest.raises(OSError, match=f"TLS handshake with localhost:{port} failed: .*{why}") as no:
        handler(greenlets, context).create_connection(
            ("127.0.0.1", port), hostname="localhost", timeout=10
        )
    assert no.value.strerror is not None  # which kazoo logs
    runtime.close()


def test_a_greenlets_socket_does_not_block_others(
    begun: Callable[[Runtime, str], int],
) -> None:
    port = begun(ThreadRuntime(), "server")
    made = handler(True, context)
    sock = made.create_connection(("127.0.0.1", port), hostname="localhost", timeout=10)
    with sock:
        assert isinstance(sock, gevent.socket.socket)
