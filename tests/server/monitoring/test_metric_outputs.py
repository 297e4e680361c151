from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import gevent.socket
import pytest

from kafka08.network.http import HttpServer
from kafka08.server.monitoring.monitoring import Monitoring

pytest.importorskip("prometheus_client")

StartMonitoring = Callable[..., Monitoring]


def get(port: int, path: str, host: str = "localhost") -> bytes:
    with gevent.socket.create_connection(("127.0.0.1", port), 10) as sock:
        request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        sock.sendall(request.encode())
        return b"".join(iter(partial(sock.recv, 1 << 16), b""))


@pytest.mark.scenario("ops-20", "ops-55")
def test_a_broker_that_starts_serves_already(
    start_monitoring: StartMonitoring, caplog: Any, unused_port: int
) -> None:
    start_monitoring(http_port=unused_port, advertised_host_name="b1.example")
    assert json.loads(get(unused_port, "/health/live").split(b"\r\n\r\n")[1]) == {"status": "live"}
    assert b" 503 " in get(unused_port, "/health/ready").split(b"\r\n")[0]
    answer = get(unused_port, "/metrics", "b1.example")
    assert b"\nkafka_server_kafkaserver_brokerstate 1.0\n" in answer
    assert b"\nkafka_network_socketserver_networkprocessoravgidle_percent 1.0\n" in answer
    assert b" 421 " in get(unused_port, "/metrics", "evil.example").split(b"\r\n")[0]
    assert [each for each in caplog.records if each.levelno > logging.INFO] == []


def test_the_names_of_the_beans_on_request(
    start_monitoring: StartMonitoring, unused_port: int
) -> None:
    start_monitoring(http_port=unused_port, metrics_bean_names=True)
    answer = get(unused_port, "/metrics")
    assert b"\nkafka_network_socketserver_networkprocessoravgidle_percent 1.0\n" in answer
    assert b"\nkafka_network_socketserver_networkprocessoravgidlepercent 1.0\n" in answer


@pytest.mark.scenario("ops-14")
def test_a_taken_port_is_an_error_and_the_broker_goes_on(
    start_monitoring: StartMonitoring, caplog: Any
) -> None:
    with gevent.socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        start_monitoring(http_port=port)
    assert caplog.messages == [
        "The broker continues without its metrics over HTTP: http.port: cannot listen on "
        f"127.0.0.1:{port}: Address already in use."
    ]


@pytest.mark.scenario("ops-55")
def test_an_address_for_all_gets_a_warning(start_monitoring: StartMonitoring, caplog: Any) -> None:
    start_monitoring(http_port=0, http_host="0.0.0.0")
    assert caplog.messages[0] == (
        "http.host=0.0.0.0: everybody who reaches this address can read the metrics"
    )


@pytest.fixture
def unused_port() -> int:
    """A port that was free a moment ago."""
    with gevent.socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def test_it_stops(start_monitoring: StartMonitoring, unused_port: int) -> None:
    monitoring = start_monitoring(http_port=unused_port)
    monitoring.stop()
    server = HttpServer("127.0.0.1", unused_port, lambda environ, start: [], name="again")
    server.stop()
