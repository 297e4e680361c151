"""kafka08.console.browser."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker, TopicPartition
from kafka08.console.browser import Browser, BusyError
from kafka08.console.config import ConsoleConfig
from kafka08.errors import KafkaError
from kafka08.message.sets import encode_set
from kafka08.protocol import schemas
from kafka08.protocol.negotiation import NoApiVersionsError
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

TP = TopicPartition("t", 0)


class OneLog:
    def __init__(self, **settings: Any) -> None:
        self.runtime = FakeRuntime()
        self.cluster = FakeCluster([Broker(0, "b0", 9090)])
        self.cluster.create("t", 1)
        config = ConsoleConfig(zookeeper_connect="z", **settings)
        channel = self.cluster.channel
        client = ClusterClient([("b0", 9090)], runtime=self.runtime, channel=channel)
        self.browser = Browser(client, config, self.runtime, channel)

    def produce(self, *values: bytes) -> None:
        self.cluster.append("t", 0, *values)

    def at(self, *offsets: int) -> None:
        """A compacted log with messages at these offsets."""
        self.cluster.logs[TP] = [(n, encode_set([(None, b"m")], 0, n)) for n in offsets]


@pytest.mark.scenario("ops-49")
def test_backward_over_the_gaps_of_a_compacted_log() -> None:
    scene = OneLog()
    scene.at(0, 1, 500, 900, 999)
    look = scene.browser.backward(TP, None, 3)
    assert [message.offset for message in look.messages] == [500, 900, 999]
    look = scene.browser.backward(TP, look.first, 3)
    assert [message.offset for message in look.messages] == [0, 1]
    assert look.first == 0


def test_an_offset_outside_the_log_counts_as_its_nearest() -> None:
    scene = OneLog()
    scene.cluster.starts[TP] = 10
    scene.produce(b"a", b"b")
    assert [m.offset for m in scene.browser.forward(TP, 0, 5).messages] == [10, 11]
    assert scene.browser.forward(TP, 99, 5).messages == []
    assert scene.browser.backward(TP, 5, 5).messages == []


def test_an_empty_log() -> None:
    look = OneLog().browser.backward(TP, None, 5)
    assert (look.messages, look.start, look.end) == ([], 0, 0)


@pytest.mark.scenario("ops-49")
def test_the_bytes_of_a_look_are_bounded() -> None:
    scene = OneLog(browse_max_bytes=10_000)
    scene.produce(*[b"m" * 974] * 100)  # 1,000 bytes each
    look = scene.browser.forward(TP, 0, 50)
    assert len(look.messages) == 10
    assert look.bytes_read <= 10_000
    assert "console.browse.max.bytes" in look.limit
    assert look.next == 10


def test_the_time_of_a_look_is_bounded() -> None:
    scene = OneLog(browse_timeout_ms=1000)
    scene.produce(*[b"m" * 100_000] * 20)

    def slow(_: int, request: Any) -> None:
        if isinstance(request, schemas.FetchRequest):
            scene.runtime.clock.advance(0.6)

    scene.cluster.script = slow
    look = scene.browser.forward(TP, 0, 20, b"never")
    assert "console.browse.timeout.ms" in look.limit
    assert look.next < 20


def test_a_message_larger_than_the_first_fetch() -> None:
    scene = OneLog()
    scene.produce(b"m" * 2_000_000, b"next")
    look = scene.browser.forward(TP, 0, 5)
    assert [len(message.value or b"") for message in look.messages] == [2_000_000, 4]


def test_a_message_larger_than_the_limit_is_told() -> None:
    scene = OneLog(browse_max_bytes=100_000)
    scene.produce(b"m" * 2_000_000)
    look = scene.browser.forward(TP, 0, 5)
    assert (look.messages, look.next) == ([], 0)
    assert "console.browse.max.bytes" in look.limit


@pytest.mark.scenario("ops-50")
def test_connections_end_with_the_look() -> None:
    scene = OneLog()
    scene.produce(b"m")
    scene.browser.forward(TP, 0, 5)
    assert not any(channel.connected for channel in scene.cluster.channels)


def test_original_brokers_are_read_without_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = OneLog()
    scene.produce(b"m")
    make = scene.cluster.channel

    def channel(host: str, port: int, **options: Any) -> Any:
        made = make(host, port, **options)
        if options.get("api_versions"):
            monkeypatch.setattr(made, "connect", refuse)
        return made

    def refuse() -> None:
        raise NoApiVersionsError("closed")

    monkeypatch.setattr(scene.browser, "_channel", channel)
    assert len(scene.browser.forward(TP, 0, 5).messages) == 1


def test_only_so_many_looks_at_a_time() -> None:
    scene = OneLog(browse_concurrent=1)
    scene.produce(b"m")
    refused = []

    def meanwhile(_: int, request: Any) -> None:
        if isinstance(request, schemas.FetchRequest):
            with pytest.raises(BusyError, match=r"browse\.concurrent"):
                scene.browser.forward(TP, 0, 1)
            refused.append(request)

    scene.cluster.script = meanwhile
    scene.browser.forward(TP, 0, 1)
    assert refused
    scene.cluster.script = None
    assert scene.browser.forward(TP, 0, 1).messages


def test_one_message() -> None:
    scene = OneLog()
    scene.at(3, 7)
    found = scene.browser.one(TP, 7)
    assert found is not None
    assert found.offset == 7
    assert scene.browser.one(TP, 5) is None


def test_an_error_of_the_leader_is_raised() -> None:
    scene = OneLog()
    scene.cluster.leaders[TP] = -1
    with pytest.raises(KafkaError):
        scene.browser.forward(TP, 0, 1)
