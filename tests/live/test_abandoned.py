"""Clients that ask a real broker to wait, and leave."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kafka08.protocol.requests import encode_request
from kafka08.protocol.schemas import FetchPartition, FetchRequest, FetchTopic
from tests.live.broker import LiveBroker

CLIENTS = 200


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    broker = LiveBroker(tmp_path_factory.mktemp("live") / "broker")
    try:
        broker.create_topic("t")
        yield broker
    finally:
        broker.kill()


def test_the_descriptors_of_long_polls_come_back(broker: LiveBroker) -> None:
    wanted = [FetchTopic("t", [FetchPartition(0, 0, 1000)])]
    frame = b"".join(encode_request(FetchRequest(-1, 2**31 - 1, 1, wanted), 1, "live"))
    before = len(broker.open_files())
    clients = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(CLIENTS)]
    for client in clients:
        client.sendall(frame)
    broker.until(lambda: len(broker.open_files()) == before + CLIENTS)
    for client in clients:
        client.close()
    broker.until(lambda: len(broker.open_files()) <= before)
    assert broker.produce("t", b"still here") == 0
