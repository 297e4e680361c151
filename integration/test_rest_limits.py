"""A thousand consumer instances at a time, and clients that hold all connections."""

from __future__ import annotations

import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.harness import Broker, ZooKeeper
from integration.rest_proxy import RestProxy

BINARY_V1 = "application/vnd.kafka.binary.v1+json"
SMALLEST = {"auto.offset.reset": "smallest"}
INSTANCES = 1000
CONNECTIONS = 50


@pytest.fixture(scope="module")
def ours(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp("limits")
    broker = Broker("ours", directory, f"{zookeeper.connect}/rest-limits").start()
    broker.create_topic("t")
    yield broker
    broker.kill()


def test_a_thousand_instances_read(ours: Broker, tmp_path: Path) -> None:
    """Each is a member of a group of its own. The next one is refused, and others are served."""
    proxy = RestProxy(tmp_path, ours.zookeeper, {"fetch.wait.max.ms": 1000}).start()
    body = {"records": [{"value": b64encode(b"x").decode()}]}
    assert proxy.ask("POST", "/topics/t", body, BINARY_V1).status == 200
    uris = [
        proxy.ask("POST", f"/consumers/limits-{number}", SMALLEST).body["base_uri"]
        for number in range(INSTANCES)
    ]
    refused = proxy.ask("POST", "/consumers/limits", SMALLEST)
    assert (refused.status, refused.body["error_code"]) == (429, 429)

    def read(uri: str) -> int:
        """The messages that come, for at most 60 s."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = proxy.ask("GET", f"{uri}/topics/t")
            assert found.status == 200, found
            if found.body:
                return len(found.body)
        return 0

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(read, uris)) == [1] * INSTANCES
    begin = time.monotonic()
    assert proxy.ask("GET", "/topics").status == 200
    assert time.monotonic() - begin < 1
    assert proxy.ask("DELETE", uris[7]).status == 204
    assert proxy.ask("POST", "/consumers/limits", SMALLEST).status == 200
    assert proxy.stop() == 143
    assert " ERROR " not in proxy.log


def test_slow_clients_on_all_connections_are_ended(ours: Broker, tmp_path: Path) -> None:
    limits = {"connections.max": CONNECTIONS, "request.deadline.ms": 1000}
    proxy = RestProxy(tmp_path, ours.zookeeper, limits).start()
    head = b"POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), 30))
            for _ in range(CONNECTIONS)
        ]
        for each in slow:
            each.sendall(head)
        assert proxy.ask("GET", "/topics", timeout=20).body == ["t"]
        answers = [each.recv(1 << 16) for each in slow]
    assert all(each.startswith(b"HTTP/1.1 408 ") for each in answers)
    assert all(b'{"error_code": 408,' in each for each in answers)
    assert proxy.stop() == 143
