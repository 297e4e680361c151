from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY

from kafka08.errors import KafkaError
from kafka08.metrics.clients import ClientCollector
from tools.mirror.channel import DataChannel
from tools.mirror.page import serve


@pytest.fixture
def clients() -> Iterator[ClientCollector]:
    made = ClientCollector(DataChannel())
    yield made
    REGISTRY.unregister(made)


def asked(port: int, host: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics", headers={"Host": host})
    answer = connection.getresponse()
    status, text = answer.status, answer.read().decode()
    connection.close()
    return status, text


def test_metrics_are_served_beside_those_of_the_process(clients: ClientCollector) -> None:
    port = serve(0, clients, "metrics.port")
    status, text = asked(port, "localhost")
    assert status == 200
    assert "kafka_tools_datachannel_mirrormaker_datachannel_waitontake_percent 1.0" in text
    assert "process_resident_memory_bytes" in text
    assert asked(port, "evil.example")[0] == 421
    with pytest.raises(KafkaError, match=rf"metrics.port: cannot listen on 127.0.0.1:{port}"):
        serve(port, clients, "metrics.port")
