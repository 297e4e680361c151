from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import gevent.socket
import pytest

from kafka08.config import BrokerConfig
from kafka08.network.http import HttpServer
from kafka08.runtime import GeventRuntime
from kafka08.server.monitoring import Monitoring
from tests.server.support import broker_config

pytest.importorskip("prometheus_client")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, config: BrokerConfig) -> Monitoring:
    runtime = GeventRuntime(2)
    stack.callback(runtime.close)
    monitoring = Monitoring(config, runtime)
    stack.callback(monitoring.stop)
    monitoring.start()
    return monitoring


def free_port(stack: ExitStack) -> int:
    sock = stack.enter_context(gevent.socket.create_server(("127.0.0.1", 0)))
    port: int = sock.getsockname()[1]
    return port


def get(port: int, path: str, host: str = "localhost") -> bytes:
    with gevent.socket.create_connection(("127.0.0.1", port), 10) as sock:
        request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        sock.sendall(request.encode())
        return b"".join(iter(partial(sock.recv, 1 << 16), b""))


def test_a_broker_that_starts_serves_already(
    stack: ExitStack, tmp_path: Path, caplog: Any, unused_port: int
) -> None:
    start(stack, broker_config(tmp_path, http_port=unused_port, advertised_host_name="b1.example"))
    assert json.loads(get(unused_port, "/health/live").split(b"\r\n\r\n")[1]) == {"status": "live"}
    assert b" 503 " in get(unused_port, "/health/ready").split(b"\r\n")[0]
    answer = get(unused_port, "/metrics", "b1.example")
    assert b"\nkafka_server_kafkaserver_brokerstate 1.0\n" in answer
    assert b"\nkafka_network_socketserver_networkprocessoravgidle_percent 1.0\n" in answer
    assert b" 421 " in get(unused_port, "/metrics", "evil.example").split(b"\r\n")[0]
    assert [each for each in caplog.records if each.levelno > logging.INFO] == []


def test_a_taken_port_is_an_error_and_the_broker_goes_on(
    stack: ExitStack, tmp_path: Path, caplog: Any
) -> None:
    port = free_port(stack)
    start(stack, broker_config(tmp_path, http_port=port))
    assert caplog.messages == [
        "The broker goes on without its metrics over HTTP: http.port: cannot listen on "
        f"127.0.0.1:{port}: Address already in use."
    ]


def test_an_address_for_all_gets_a_warning(stack: ExitStack, tmp_path: Path, caplog: Any) -> None:
    start(stack, broker_config(tmp_path, http_port=0, http_host="0.0.0.0"))
    assert caplog.messages[0] == (
        "http.host=0.0.0.0: everybody who reaches this address can read the metrics"
    )


@pytest.fixture
def unused_port() -> int:
    """A port that was free a moment ago."""
    with gevent.socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def test_it_stops(stack: ExitStack, tmp_path: Path, unused_port: int) -> None:
    monitoring = start(stack, broker_config(tmp_path, http_port=unused_port))
    monitoring.stop()
    server = HttpServer("127.0.0.1", unused_port, lambda environ, start: [], name="again")
    server.stop()
