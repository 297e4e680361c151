"""TLS over real sockets: handshakes, refusals, large and many messages, new certificates."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import socket as stdlib_socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import gevent
import gevent.ssl
import pytest

from kafka08.errors import ConfigError
from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.network import half_open
from kafka08.network.peer import current_peer
from kafka08.network.server import Listener, Server
from kafka08.network.tls import SecureConnector, Tls, client_context, server_context
from kafka08.runtime import GeventRuntime, Runtime, ThreadRuntime
from kafka08.security.names import mapping
from kafka08.settings.tls import SslSettings

TLS = Path(__file__).parents[1] / "golden" / "tls"
TRUSTED = {"ssl_truststore_location": str(TLS / "ca.pem")}
PATIENCE = 10.0


def settings(name: str | None = "server", **changes: Any) -> SslSettings:
    given = {} if name is None else {"ssl_keystore_location": str(TLS / f"{name}.pem")}
    return SslSettings(**{**given, **TRUSTED, **changes})


class TlsWorld:
    """A server that echoes; the frame "who" is answered with the principal, "file" with a file."""

    def __init__(self, slice_: FileSlice | None = None) -> None:
        self.slice = slice_
        self.served = 0

    def handle(self, frame: memoryview, address: str) -> list[Any] | None:
        self.served += 1
        body = bytes(frame)
        if body == b"who":
            peer = current_peer.get()
            assert peer is not None
            body = peer.principal.encode()
        if body == b"file" and self.slice is not None:
            return [struct.pack(">i", len(self.slice)), self.slice]
        return [struct.pack(">i", len(body)), body]

    def server(
        self,
        given: SslSettings | None = None,
        client_auth: str = "none",
    ) -> Server:
        tls = Tls(given or settings(), partial(server_context, client_auth=client_auth))
        return self.start(tls)

    def start(self, tls: Tls) -> Server:
        name_of = mapping("RULE:^CN=(.*?),.*$/$1/,DEFAULT")
        listeners = [
            Listener("127.0.0.1", 0),
            Listener("127.0.0.1", 0, "SSL", tls=tls, name_of=name_of),
        ]
        server = Server(listeners, max_request_bytes=4 << 20)
        server.start(self.handle)
        return server


Start = Callable[..., Server]


@pytest.fixture
def world() -> TlsWorld:
    return TlsWorld()


@pytest.fixture
def start(world: TlsWorld) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(*args: Any, **changes: Any) -> Server:
            server = world.server(*args, **changes)
            stack.callback(server.stop)
            return server

        yield start


def connect(server: Server, given: SslSettings | None = None, host: str = "127.0.0.1") -> Any:
    tls = Tls(given or settings(None), client_context)
    return SecureConnector(GeventRuntime(), tls).connect(host, server.ports[1], PATIENCE)


def read(sock: Any, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise EOFError(bytes(data[:100]))
        data += piece
    return bytes(data)


def reply(sock: Any) -> bytes:
    return read(sock, struct.unpack(">i", read(sock, 4))[0])


def call(sock: Any, body: bytes) -> bytes:
    sock.sendall(struct.pack(">i", len(body)) + body)
    return reply(sock)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_client_without_a_certificate_is_anonymous(start: Start, version: str) -> None:
    with connect(start(), settings(None, ssl_enabled_protocols=(version,))) as sock:
        assert sock.version() == version
        assert call(sock, b"x") == b"x"
        assert call(sock, b"who") == b"User:ANONYMOUS"
        assert sock.compression() is None


@pytest.mark.scenario("security-8")
@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_the_certificate_of_a_client_says_who_it_is(start: Start, client_auth: str) -> None:
    with connect(start(client_auth=client_auth), settings("client")) as sock:
        assert call(sock, b"who") == b"User:alice"


def test_a_client_may_go_without_where_it_is_only_asked_for(start: Start) -> None:
    with connect(start(client_auth="requested")) as sock:
        assert call(sock, b"who") == b"User:ANONYMOUS"


@pytest.mark.scenario("security-12")
def test_bytes_of_many_records_and_many_requests_in_one(start: Start) -> None:
    body = os.urandom(1 << 20)
    with connect(start()) as sock:
        assert call(sock, body) == body
        many = [b"%d" % number for number in range(2000)]
        sock.sendall(b"".join(struct.pack(">i", len(each)) + each for each in many))
        assert [reply(sock) for _ in many] == many
        for byte in struct.pack(">i", 2) + b"ab":
            sock.sendall(bytes([byte]))
        assert reply(sock) == b"ab"


@pytest.mark.scenario("security-11")
def test_slow_readers_get_files_whole(start: Start, world: TlsWorld, tmp_path: Path) -> None:
    data = os.urandom(8 << 20)
    (tmp_path / "f").write_bytes(data)
    file = SegmentFile.open(str(tmp_path / "f"))
    world.slice = FileSlice(file, 0, len(data))
    with connect(start()) as sock:
        frame = struct.pack(">i", 4) + b"file"
        sock.sendall(frame * 2 + struct.pack(">i", 1) + b"x")
        gevent.sleep(0.1)  # until the socket's buffers are full
        for _ in range(2):
            assert hashlib.sha256(reply(sock)).digest() == hashlib.sha256(data).digest()
        assert reply(sock) == b"x"


def refused(server: Server, given: SslSettings) -> str:
    """Why a client fails: at its handshake, or with TLS 1.3 when it reads."""
    with pytest.raises(OSError) as raised, connect(server, given) as sock:
        call(sock, b"x")
    return str(raised.value)


@pytest.mark.scenario("security-8")
@pytest.mark.parametrize(
    ("client_auth", "client"),
    [("required", None), ("required", "stranger"), ("requested", "stranger")],
)
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_clients_with_no_or_a_wrong_certificate_are_not_served(
    start: Start, world: TlsWorld, caplog: pytest.LogCaptureFixture,
    client_auth: str, client: str | None, version: str,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO)
    given = settings(client, ssl_enabled_protocols=(version,))
    server = start(client_auth=client_auth)
    assert refused(server, given)
    with gevent.Timeout(PATIENCE):
        while server.connections:
            gevent.sleep(0)
    assert world.served == 0
    lines = [each for each in caplog.messages if "Failed authentication" in each]
    assert len(lines) == 1 and lines[0].startswith("Failed authentication with /127.0.0.1 (SSL")


@pytest.mark.scenario("security-8")
def test_a_revoked_client_is_not_served(
    start: Start, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    given = settings(ssl_truststore_location=str(TLS / "ca-with-crl.pem"))
    server = start(given, client_auth="required")
    assert refused(server, settings("revoked"))
    with gevent.Timeout(PATIENCE):
        while server.connections:
            gevent.sleep(0)
    told = "Failed authentication with /127.0.0.1 (SSL handshake failed: certificate revoked)"
    assert told in caplog.messages
    with connect(server, settings("client")) as sock:
        assert call(sock, b"who") == b"User:alice"


@pytest.mark.scenario("security-7")
@pytest.mark.parametrize(
    ("server", "changes", "why"),
    [
        ("elsewhere", {}, "certificate refused: .*127.0.0.1"),
        ("expired", {}, "certificate refused: certificate has expired"),
        ("stranger", {}, "certificate refused: unable to get local issuer certificate"),
    ],
)
def test_a_client_refuses_wrong_servers(
    start: Start, server: str, changes: dict[str, Any], why: str
) -> None:
    running = start(settings(server))
    with pytest.raises(OSError, match=rf"^TLS handshake with 127.0.0.1:\d+ failed: {why}"):
        connect(running, settings(None, **changes))


def test_host_names_are_not_looked_at_if_told_so(start: Start) -> None:
    given = settings(None, ssl_endpoint_identification_algorithm="")
    with connect(start(settings("elsewhere")), given) as sock:
        assert call(sock, b"x") == b"x"


def test_threads_connect_too(start: Start) -> None:
    server, runtime = start(), GeventRuntime()
    tls = Tls(settings(None), client_context)

    def ask() -> bytes:
        threads: Runtime = ThreadRuntime()
        with SecureConnector(threads, tls).connect("127.0.0.1", server.ports[1], PATIENCE) as sock:
            return call(sock, b"x")

    assert runtime.blocking(ask) == b"x"
    runtime.close()


def old(server: Server, **options: Any) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers(options.get("ciphers", "ALL:@SECLEVEL=0"))
    if "version" in options:
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = options["version"]
    sock = gevent.socket.create_connection(("127.0.0.1", server.ports[1]), PATIENCE)
    with gevent.ssl.SSLSocket(sock=sock, _context=context) as secure:
        call(secure, b"x")


@pytest.mark.scenario("security-16")
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_and_null_ciphers_are_refused(start: Start, world: TlsWorld) -> None:
    server = start()
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        with pytest.raises(OSError):
            old(server, version=version)
    with pytest.raises(OSError):
        old(server, ciphers="NULL:@SECLEVEL=0", version=ssl.TLSVersion.TLSv1_2)
    assert world.served == 0


@pytest.mark.scenario("security-16")
def test_renegotiation_is_off() -> None:
    context = server_context(settings())
    assert context.options & ssl.OP_NO_RENEGOTIATION and context.options & ssl.OP_NO_COMPRESSION


@pytest.mark.scenario("security-13")
@pytest.mark.parametrize("data", [b"\0\0\0\x0a\0\3\0\0\0\0\0\1\0\0", b"GET / HTTP/1.0\r\n\r\n"])
def test_bytes_that_are_not_tls_end_the_connection(
    start: Start, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    caplog.set_level(logging.DEBUG)
    server = start()
    with gevent.socket.create_connection(("127.0.0.1", server.ports[1]), PATIENCE) as sock:
        sock.sendall(data)
        with gevent.Timeout(PATIENCE), pytest.raises((EOFError, OSError)):
            read(sock, 1000)
    about = [each for each in caplog.records if each.name == "kafka.network.Processor"]
    assert [each.levelname for each in about] == ["DEBUG"]


@pytest.mark.scenario("security-13")
def test_a_hello_on_the_plain_port_ends_the_connection(start: Start, world: TlsWorld) -> None:
    server = start()
    sock = gevent.socket.create_connection(("127.0.0.1", server.ports[0]), PATIENCE)
    context = client_context(settings(None))
    with pytest.raises(OSError):
        gevent.ssl.SSLSocket(sock=sock, server_hostname="127.0.0.1", _context=context)
    assert world.served == 0


@pytest.mark.scenario("security-14")
def test_half_open_handshakes_end_and_others_are_served(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_open.HalfOpen.__init__, "__defaults__", (0.5, 20, 2000))
    server = start()
    address = "127.0.0.1", server.ports[1]
    begun = [stdlib_socket.create_connection(address) for _ in range(60)]
    with connect(server) as sock:
        assert call(sock, b"x") == b"x"
        assert server.connections <= 21
        with gevent.Timeout(PATIENCE):
            while server.connections > 1:
                gevent.sleep(0.05)
        assert call(sock, b"x") == b"x", "a connection that is open stays"
    for each in begun:
        each.close()


def test_peers_that_go_without_a_word_leave_nothing(start: Start) -> None:
    server = start()
    sock = connect(server)
    assert call(sock, b"x") == b"x"
    sock.close()
    with gevent.Timeout(PATIENCE):
        while server.connections:
            gevent.sleep(0)


# Certificates


@pytest.mark.scenario("security-7", "security-15")
def test_changed_files_are_taken_into_use_if_they_are_good(
    world: TlsWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "server.pem"
    shutil.copy(TLS / "server.pem", path)
    path.chmod(0o600)
    tls = Tls(settings(ssl_keystore_location=str(path)), server_context)
    server = world.start(tls)

    def subject() -> Any:
        with connect(server) as sock:
            assert call(sock, b"x") == b"x"
            return sock.getpeercert()["subject"]

    def write(data: bytes) -> None:
        path.write_bytes(data)
        tls.reload()
        tls.reload()

    try:
        before, standing = subject(), connect(server)
        good = (TLS / "renewed.pem").read_bytes()
        key, certificate = good.split(b"-----BEGIN CERTIFICATE", 1)
        server_key = (TLS / "server.pem").read_bytes().split(b"-----BEGIN CERTIFICATE", 1)[0]
        other_key = server_key + b"-----BEGIN CERTIFICATE" + certificate
        for bad in (good[:300], key, other_key, (TLS / "expired.pem").read_bytes(), b""):
            caplog.clear()
            write(bad)
            assert [each.levelname for each in caplog.records] == ["ERROR"]
            assert str(path) in caplog.text or "ended on 2021-01-01" in caplog.text
            assert subject() == before
        path.unlink()
        tls.reload()
        assert subject() == before
        ends = tls.expires
        write(good)
        assert subject() == ((("commonName", "renewed"),),)
        assert ends is not None and tls.expires is not None and tls.expires != ends
        assert call(standing, b"x") == b"x"
        standing.close()
    finally:
        server.stop()


@pytest.mark.scenario("security-54")
def test_key_files_that_others_can_read_draw_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "server.pem"
    shutil.copy(TLS / "server.pem", path)
    path.chmod(0o644)
    Tls(settings(ssl_keystore_location=str(path)), server_context)
    assert f"Others than the owner can read {path}" in caplog.text


def test_when_a_certificate_ends() -> None:
    """A start with one that has ended goes on, as that of the original."""
    assert str(Tls(settings("expired"), server_context).expires) == "2021-01-01 00:00:00+00:00"
    assert Tls(settings(None), client_context).expires is None


def test_keys_with_a_password() -> None:
    server_context(settings("locked", ssl_key_password="secret"))
    for password in (None, "wrong"):
        with pytest.raises(ConfigError, match=r"^ssl.keystore.location: .*ssl.key.password") as e:
            server_context(settings("locked", ssl_key_password=password))
        assert "wrong" not in str(e.value)


def test_keys_in_the_settings_themselves() -> None:
    text = (TLS / "server.pem").read_text()
    at = text.index("-----BEGIN CERTIFICATE")
    trusted = (TLS / "ca.pem").read_text()
    for change in (str, lambda each: " ".join(each.split("\n"))):
        given = SslSettings(
            ssl_keystore_key=change(text[:at]),
            ssl_keystore_certificate_chain=change(text[at:]),
            ssl_truststore_certificates=change(trusted),
        )
        server_context(given, "required")


def test_pkcs12(start: Start) -> None:
    given = SslSettings(
        ssl_keystore_location=str(TLS / "client.p12"),
        ssl_keystore_password="secret",
        ssl_truststore_location=str(TLS / "ca.p12"),
        ssl_truststore_password="secret",
    )
    with connect(start(client_auth="required"), given) as sock:
        assert call(sock, b"who") == b"User:alice"
    with pytest.raises(ConfigError, match=r"^ssl.keystore.location: .*, or ssl.keystore.password"):
        client_context(
            SslSettings(
                ssl_keystore_location=given.ssl_keystore_location, ssl_keystore_password="x"
            )
        )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"ssl_keystore_location": "/nowhere"}, "ssl.keystore.location: cannot read /nowhere: No"),
        ({"ssl_keystore_location": None}, "ssl.keystore.location is not set, and a listener"),
        ({"ssl_truststore_location": None}, "ssl.client.auth is required, and ssl.truststore.loc"),
        ({"ssl_truststore_location": str(TLS / "make.sh")}, "ssl.truststore.location: "),
        ({"ssl_keystore_type": "JKS"}, "ssl.keystore.location: .* is JKS, .*keytool -importkeys"),
        ({"ssl_enabled_protocols": ("TLSv1.1",)}, "ssl.enabled.protocols has value TLSv1.1, and"),
        ({"ssl_enabled_protocols": ()}, "ssl.enabled.protocols has value"),
        ({"ssl_cipher_suites": "TLS_RSA"}, "ssl.cipher.suites has value TLS_RSA, which has no"),
    ],
)
def test_wrong_settings_are_named(changes: dict[str, Any], text: str) -> None:
    if changes.get("ssl_truststore_location", "").__class__ is str and "make" in str(changes):
        changes = {**changes, "ssl_truststore_type": "PEM"}
    with pytest.raises(ConfigError, match=f"^{text}"):
        server_context(settings(**changes), "required")


def test_a_file_of_java_is_told_how_to_convert(tmp_path: Path) -> None:
    path = tmp_path / "server.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(ConfigError, match=re.escape(f"-srckeystore {path}")):
        server_context(settings(ssl_keystore_location=str(path)))
