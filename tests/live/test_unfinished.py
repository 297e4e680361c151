"""Large requests that never end, to a real broker: its memory, and what others notice."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.live.broker import LiveBroker

SIZE = 8 << 20
CLIENTS = 20
LIMIT = 32 << 20


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    broker = LiveBroker(
        tmp_path_factory.mktemp("live") / "broker",
        socket_request_max_bytes=2 * SIZE,
        queued_max_request_bytes=LIMIT,
        message_max_bytes=4 << 20,
        replica_fetch_max_bytes=5 << 20,
    )
    try:
        broker.create_topic("t")
        yield broker
        assert broker.stop() == 128 + 15
        assert "Traceback" not in broker.told()
    finally:
        broker.kill()


def send_most(sock: socket.socket) -> None:
    """All of a frame but its last byte, as far as the broker takes it."""
    try:
        sock.sendall(struct.pack(">i", SIZE) + bytes(SIZE - 1))
    except OSError:
        pass  # it had to make room


def produce_large(broker: LiveBroker, value: bytes) -> int:
    """Its offset. Like any request that arrives slowly it may have to make room; then it is sent
    again, as producers do."""
    for _ in range(3):
        with suppress(OSError):
            return broker.produce("t", value)
    return broker.produce("t", value)


@pytest.mark.scenario("security-51")
def test_memory_is_bounded_and_others_are_served(broker: LiveBroker) -> None:
    before = broker.memory()
    address = "127.0.0.1", broker.port
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.create_connection(address)) for _ in range(CLIENTS)]
        senders = [threading.Thread(target=send_most, args=[sock]) for sock in socks]
        for sender in senders:
            sender.start()
        try:
            broker.until(lambda: broker.memory() - before > LIMIT // 2)
            large = bytes(3 << 20)
            for _ in range(5):
                offset = broker.produce("t", b"short")
                assert broker.fetch("t", offset) == [(offset, b"short")]
                assert produce_large(broker, large) == offset + 1
                assert broker.memory() - before < 2 * LIMIT + (20 << 20)
        finally:
            for sock in socks:
                with suppress(OSError):  # gone already, to make room
                    sock.shutdown(socket.SHUT_RDWR)
            for sender in senders:
                sender.join()
    broker.until(lambda: broker.produce("t", b"still here") > 0)
