"""A client logs in at a ServerLogin, byte by byte, and believes no stranger."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.network.client_login import LoginError, SaslConnector
from kafka08.network.login import LoginFailed, ServerLogin
from kafka08.runtime import Socket
from kafka08.security.mechanisms import Side
from kafka08.security.plain import PlainClient
from kafka08.security.scram import ScramClient, ScramServer, credential_of
from tests.network.test_login import SHA_256, VERSIONS, Connection
from tests.security.test_scram import CLIENT_NONCE


class LoginSocket(Socket):
    """The client's end of a connection to a ServerLogin."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answers = b""
        self.closed = False

    def sendall(self, data: bytes) -> None:
        try:
            self._answers += self._connection.send(data[4:])
        except LoginFailed as error:
            self._answers += b"".join(error.reply)

    def recv(self, size: int) -> bytes:
        """At most 3 bytes at a time."""
        taken = min(size, 3)
        data, self._answers = self._answers[:taken], self._answers[taken:]
        return data

    def close(self) -> None:
        self.closed = True


class Network:
    def __init__(self, sock: Any) -> None:
        self.sock = sock
        self.connected: list[tuple[str, int, float]] = []

    def connect(self, host: str, port: int, timeout: float) -> Any:
        self.connected.append((host, port, timeout))
        return self.sock


def through(connection: Connection, mechanism: str, side: Side) -> None:
    sock = LoginSocket(connection)
    network = Network(sock)
    connector = SaslConnector(network, mechanism, lambda: side)
    try:
        assert connector.connect("h", 9093, 5.0) is sock
        assert not sock.closed
    except LoginError:
        assert sock.closed
        raise
    assert network.connected == [("h", 9093, 5.0)]


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.mark.parametrize(
    ("mechanism", "make", "principal"),
    [
        ("PLAIN", lambda: PlainClient("alice", "alice-secret"), "User:alice"),
        (SHA_256, lambda: ScramClient(SHA_256, "carol", "pencil", CLIENT_NONCE), "User:carol"),
    ],
)
def test_both_sides(
    connection: Connection, mechanism: str, make: Callable[[], Side], principal: str
) -> None:
    through(connection, mechanism, make())
    assert connection.peer.principal == principal


@pytest.mark.parametrize(
    ("mechanism", "side", "error"),
    [
        ("PLAIN", PlainClient("alice", "x"), "Authentication failed: Invalid username or password"),
        (SHA_256, ScramClient(SHA_256, "carol", "x", "n"), "due to invalid credentials with SASL"),
        (
            "SCRAM-SHA-512",
            ScramClient("SCRAM-SHA-512", "carol", "x", "n"),
            "sasl.mechanism is SCRAM-SHA-512, and the broker offers PLAIN, SCRAM-SHA-256",
        ),
    ],
)
def test_a_client_is_told_why(
    connection: Connection, mechanism: str, side: Side, error: str
) -> None:
    with pytest.raises(LoginError, match=error):
        through(connection, mechanism, side)


@pytest.mark.scenario("security-20")
def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    connection = Connection()
    wrong = credential_of(SHA_256, "other", b"salt", 4096)
    right = credential_of(SHA_256, "pencil", b"salt", 4096)
    mixed = right._replace(server_key=wrong.server_key)
    connection.login = ServerLogin(
        connection.peer,
        connection._serve,
        {SHA_256: lambda: ScramServer(SHA_256, lambda user: mixed, "s")},
        lambda: VERSIONS,
    )
    with pytest.raises(LoginError, match="does not know the password"):
        through(connection, SHA_256, ScramClient(SHA_256, "carol", "pencil", "c"))


@pytest.mark.parametrize(
    "answer",
    [b"", b"\0\0\0", b"HTTP/1.1 400 Bad Request", struct.pack(">i", 600_000), bytes(8)],
)
def test_a_peer_that_is_not_a_broker(answer: bytes) -> None:
    class Stranger(LoginSocket):
        def sendall(self, data: bytes) -> None:
            self._answers = answer

    sock = Stranger(Connection())
    connector = SaslConnector(Network(sock), "PLAIN", lambda: PlainClient("a", "b"))
    with pytest.raises(LoginError, match="login at h:1 with PLAIN"):
        connector.connect("h", 1, 5.0)
    assert sock.closed


def test_a_connection_that_fails_is_closed() -> None:
    class Broken(LoginSocket):
        def sendall(self, data: bytes) -> None:
            raise TimeoutError

    sock = Broken(Connection())
    with pytest.raises(TimeoutError):
        SaslConnector(Network(sock), "PLAIN", lambda: PlainClient("a", "b")).connect("h", 1, 5.0)
    assert sock.closed
