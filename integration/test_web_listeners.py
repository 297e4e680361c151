"""The HTTP listeners of brokers, proxy and console: TLS and logins, malformed requests."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from integration.certificates import Authority
from integration.console import Console
from integration.harness import Broker, Process, ZooKeeper, free_port
from integration.rest_proxy import RestProxy
from integration.wire import entry, wait_until
from kafka08.security.users import ROLES, line_for

REQUESTS = 10_000
ANSWER_S = 60
MEMORY_BYTES = 64 << 20
SLOW = 20


@pytest.fixture(scope="module")
def broker(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    connect = f"{zookeeper.connect}/listeners"
    props = {"http.port": free_port(), "zookeeper.session.timeout.ms": 30000}
    found = Broker("ours", tmp_path_factory.mktemp("listeners"), connect, props=props)
    found.start().create_topic("t")
    yield found
    found.kill()


def password(role: str) -> str:
    return f"secret of the {role}"


@pytest.mark.scenario("ops-58")
@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on PATH")
@pytest.mark.parametrize("kind", ["console", "rest"])
def test_tls_and_logins_by_curl(
    kind: str, broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    authority = Authority(tmp_path / "authority")
    users = tmp_path / "users"
    users.write_text("".join(f"{line_for(role, role, password(role))}\n" for role in ROLES))
    keys = {"ssl.keystore.location": authority.issue("web")}
    process: Console | RestProxy
    if kind == "console":
        process = Console(
            broker.zookeeper,
            tmp_path / "console",
            **{"http.tls": "true", "console.users.file": users, "console.read.only": "false"},
            **keys,
        ).begin()
    else:
        port = free_port()
        own = {"listeners": f"https://127.0.0.1:{port}", "authentication.users.file": users}
        process = RestProxy(tmp_path / "rest", broker.zookeeper, {**own, **keys})
        process.port = port
        process.start()
    launch(process)

    refusals: list[str] = []

    def curl(path: str, *words: str, user: str = "", tls: tuple[str, ...] = ()) -> int:
        """The status; -1 if there was no answer over TLS. The password is not an argument."""
        secret = f'user = "{user}"\n' if user else ""
        done = subprocess.run(
            [
                *(
                    "curl",
                    "--silent",
                    "--show-error",
                    "--output",
                    str(tmp_path / "answer"),
                    "--config",
                    "-",
                ),
                *("--write-out", "%{http_code}", "--max-time", str(ANSWER_S), *tls, *words),
                f"https://127.0.0.1:{process.port}{path}",
            ],
            input=secret,
            capture_output=True,
            text=True,
            timeout=ANSWER_S + 30,
            check=False,
        )
        refusals.append(done.stderr)
        return int(done.stdout) if done.returncode == 0 else -1

    trusted = ("--cacert", str(authority.path))
    path = "/topics"
    if kind == "console":
        look = "/health/ready"
        wait_until("the first look", ANSWER_S, lambda: curl(look, tls=trusted) == 200)
    assert curl(path) == -1  # the certificate's authority is not known
    # curl itself offers no TLS 1.1 at the usual level.
    old = ("--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0")
    assert curl(path, tls=(*trusted, *old)) == -1
    assert "alert protocol version" in refusals[-1]
    for version in ("1.2", "1.3"):
        tls = (*trusted, f"--tlsv{version}", "--tls-max", version)
        assert curl(path, tls=tls) == 401
        assert curl(path, user=f"reader:{password('reader')}", tls=tls) == 200
    assert curl(path, user=f"reader:{password('admin')}", tls=trusted) == 401
    change = (
        ("/topics/t/send", "--data", "token=none&partition=0&value=x")
        if kind == "console"
        else (
            "/topics/t",
            *("-H", "Content-Type: application/vnd.kafka.binary.v1+json"),
            *("--data", '{"records":[{"value":"eA=="}]}'),
        )
    )
    reader, operator = (f"{role}:{password(role)}" for role in ROLES[:2])
    assert curl(*change, user=reader, tls=trusted) == 403
    # The console also wants the token of one of its pages.
    wanted = 403 if kind == "console" else 200
    assert curl(*change, user=operator, tls=trusted) == wanted
    if kind == "console":
        assert curl("/topics/t/send", user=reader, tls=trusted) == 403
        assert curl("/topics/t/send", user=operator, tls=trusted) == 200
    plain = subprocess.run(
        ["curl", "--silent", "--max-time", str(ANSWER_S), f"http://127.0.0.1:{process.port}{path}"],
        capture_output=True,
        timeout=ANSWER_S + 30,
        check=False,
    )
    assert b"HTTP" not in plain.stdout
    assert b"<html" not in plain.stdout
    command = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
    for role in ROLES:
        assert password(role) not in process.log
        assert password(role) not in command


# Each with what may be answered. "" stands for a connection that is closed without an answer; a
# broker takes no bodies, so it says 413.
BAD = (
    (b"GET\r\n\r\n", {"", "400"}),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n", {"", "400"}),
    (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", {"", "400", "505"}),
    (b"G\x00T / HTTP/1.1\r\nHost: localhost\r\n\r\n", {"", "400", "404", "405", "501"}),
    (b"GET / HTTP/1.1\r\n\r\n", {"400", "421"}),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", {"", "400"}),
    (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", {"", "400", "414"}),
    (
        b"GET / HTTP/1.1\r\nHost: localhost\r\n"
        + b"".join(b"X-%d: %s\r\n" % (number, b"y" * 200) for number in range(200))
        + b"\r\n",
        {"", "400", "431"},
    ),
    (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", {"", "400"}),
    (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", {"", "400"}),
    (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999\r\n\r\n",
        {"", "400", "413"},
    ),
    (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n",
        {"", "400", "413"},
    ),
    (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"ffffffffffffffff\r\nx\r\n0\r\n\r\n",
        {"", "400", "413"},
    ),
    (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Length: 3\r\n\r\n0\r\n\r\n",
        {"", "400", "413"},
    ),
    (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nshort", {"", "400", "413"}),
    (b"GET /%ff%00%2e%2e/ HTTP/1.1\r\nHost: localhost\r\n\r\n", {"400", "404"}),
    (b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", {"400", "403", "421"}),
    (b"\r\n\r\n\r\n", {"", "400"}),
)


def answered(port: int, request: bytes) -> str:
    """The status of the first answer. No more is sent after the request."""
    with socket.create_connection(("127.0.0.1", port), ANSWER_S) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            line = connection.makefile("rb").readline(100)
        except OSError as error:
            assert not isinstance(error, TimeoutError), request[:80]
            return ""
    if not line:
        return ""
    protocol, status = line.split()[:2]
    assert protocol in (b"HTTP/1.1", b"HTTP/1.0"), line
    return status.decode()


@pytest.mark.scenario("ops-60")
@pytest.mark.parametrize("kind", ["broker", "rest", "console"])
def test_malformed_requests(
    kind: str, broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """After the first tenth the process does not grow, and brokers go on."""
    process: Process
    if kind == "broker":
        process, port = broker, int(_setting(broker, "http.port"))
    elif kind == "rest":
        process = RestProxy(tmp_path, broker.zookeeper)
        launch(process)
        port = process.start().port
    else:
        process = Console(broker.zookeeper, tmp_path)
        launch(process)
        port = process.begin().port
    good = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    # The console has nothing to tell before its first look at the cluster.
    wait_until("the first answer", ANSWER_S, lambda: answered(port, good) == "200")
    memory = 0
    with ExitStack() as stack:
        slow = [_slow(stack, port) for _ in range(SLOW)]
        for number in range(REQUESTS):
            request, allowed = BAD[number % len(BAD)]
            found = answered(port, request)
            assert found in allowed, (request[:120], found)
            if number % (REQUESTS // 10) == 0:
                assert answered(port, good) == "200"
                with broker.wire() as wire:
                    wire.produce("t", 0, entry(None, b"goes on"))
            if number == REQUESTS // 10:
                memory = process.memory()
        for connection in slow:
            # They end by the deadline, with an answer or without one.
            with suppress(ConnectionError):
                while connection.recv(4096):
                    pass
    assert process.alive
    assert process.memory() - memory < MEMORY_BYTES
    assert "Traceback" not in process.log


def _slow(stack: ExitStack, port: int) -> socket.socket:
    """A connection whose request does not end."""
    found = stack.enter_context(socket.create_connection(("127.0.0.1", port), ANSWER_S))
    found.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nslow")
    return found


def _setting(broker: Broker, key: str) -> str:
    lines = dict(line.split("=", 1) for line in broker.config.read_text().splitlines())
    return lines[key]
