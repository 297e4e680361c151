from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.segments.file_slice import SegmentFile
from kafka08.network.server import Listener, Server
from tests.network.socket_service import Service, SocketClient, Start


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def start(service: Service) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(**settings: Any) -> Server:
            settings = {"max_request_bytes": 1000, "idle_ms": 600_000, **settings}
            host = settings.pop("host", "127.0.0.1")
            server = Server([Listener(host, 0)], **settings)
            server.start(service.handle)
            stack.callback(server.stop)
            stack.callback(service.gate.set)
            return server

        yield start


@pytest.fixture
def connect() -> Iterator[Callable[..., SocketClient]]:
    with ExitStack() as stack:

        def connect(server: Server, host: str = "127.0.0.1") -> SocketClient:
            client = SocketClient(server.ports[0], host)
            stack.callback(client.sock.close)
            return client

        yield connect


@pytest.fixture
def stored(tmp_path: Path) -> SegmentFile:
    path = tmp_path / "stored"
    path.write_bytes(bytes(range(256)) * 16384)
    return SegmentFile.open(str(path))
