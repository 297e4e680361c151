"""Senders: in order, one at a time, again and again until halted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import Broker
from kafka08.controller import channels
from kafka08.controller.batch import Outgoing
from kafka08.controller.channels import ControllerChannelManager
from kafka08.errors import ProtocolError
from kafka08.protocol import schemas
from kafka08.runtime import ThreadRuntime

BROKER = Broker(5, "host", 9092)


def outgoing(epoch: int, client_id: str = "c", broker_id: int = 5) -> Outgoing:
    return Outgoing(broker_id, schemas.UpdateMetadataRequest(1, epoch, [], []), client_id)


class Scripted:
    """A connection that does what the script says, a step per call, and then answers."""

    def __init__(self, *script: Exception | None) -> None:
        self.client_id: str | None = None
        self.connected = False
        self.script = list(script)
        self.calls: list[tuple[str | None, int]] = []
        self.connects = 0
        self.hold: threading.Event | None = None
        self.entered = threading.Event()

    def connect(self) -> None:
        self.connects += 1
        self.connected = True
        self._act()

    def call(self, request: Any) -> Any:
        assert self.connected
        self.calls.append((self.client_id, request.controller_epoch))
        self.entered.set()
        if self.hold is not None:
            assert self.hold.wait(10)
        self._act()
        return schemas.UpdateMetadataResponse(0)

    def _act(self) -> None:
        error = self.script.pop(0) if self.script else None
        if error is not None:
            raise error

    def close(self) -> None:
        self.connected = False
        if self.hold is not None:
            self.hold.set()


class ChannelRig:
    def __init__(self, connection: Scripted) -> None:
        self.connection = connection
        self.answers: list[int] = []
        self._changed = threading.Condition()
        self.manager = ControllerChannelManager(
            ThreadRuntime(), 1, lambda broker: connection, self._answered
        )

    def _answered(self, outgoing: Outgoing, response: Any) -> None:
        assert response == schemas.UpdateMetadataResponse(0)
        with self._changed:
            self.answers.append(outgoing.request.controller_epoch)
            self._changed.notify_all()

    def wait_for(self, what: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(what, 10)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "RETRY_SECONDS", 0)


def test_requests_go_out_in_order_with_their_client_ids() -> None:
    rig = ChannelRig(Scripted())
    rig.manager.add_broker(BROKER)
    rig.manager.send([outgoing(1), outgoing(2, ""), outgoing(3)])
    rig.wait_for(lambda: len(rig.answers) == 3)
    assert rig.answers == [1, 2, 3]
    assert rig.connection.calls == [("c", 1), ("", 2), ("c", 3)]
    assert rig.connection.connects == 1
    rig.manager.halt()
    rig.manager.join(10)


def test_a_failed_request_is_sent_again_on_a_new_connection() -> None:
    refused = ConnectionRefusedError()
    rig = ChannelRig(
        Scripted(refused, refused, None, TimeoutError(), None, ProtocolError("?"), None)
    )
    rig.manager.add_broker(BROKER)
    rig.manager.send([outgoing(1), outgoing(2)])
    rig.wait_for(lambda: len(rig.answers) == 2)
    assert rig.connection.calls == [("c", 1), ("c", 1), ("c", 1), ("c", 2)]
    assert rig.connection.connects == 5
    rig.manager.halt()
    rig.manager.join(10)


def test_a_request_that_cannot_be_encoded_does_not_hold_up_the_next() -> None:
    rig = ChannelRig(Scripted(None, ValueError("no such int32")))
    rig.manager.add_broker(BROKER)
    rig.manager.send([outgoing(1), outgoing(2)])
    rig.wait_for(lambda: rig.answers == [2])
    rig.manager.halt()
    rig.manager.join(10)


def test_removal_ends_the_task_and_drops_the_queue() -> None:
    connection = Scripted()
    connection.hold = threading.Event()
    rig = ChannelRig(connection)
    rig.manager.add_broker(BROKER)
    rig.manager.send([outgoing(1), outgoing(2)])
    assert connection.entered.wait(10)
    before = threading.active_count()
    rig.manager.remove_broker(5)
    rig.manager.join(10)
    assert threading.active_count() == before - 1
    assert [epoch for _, epoch in connection.calls] == [1]
    assert not connection.connected


def test_a_halt_while_connecting_sends_nothing() -> None:
    rig = ChannelRig(Scripted())
    connect = rig.connection.connect
    halted = threading.Event()

    def halted_meanwhile() -> None:
        connect()
        rig.manager.halt()
        # The halt may close a connection that is still being opened: it opens after all.
        rig.connection.connected = True
        halted.set()

    rig.connection.connect = halted_meanwhile  # type: ignore[method-assign]
    rig.manager.add_broker(BROKER)
    rig.manager.send([outgoing(1)])
    assert halted.wait(10)
    rig.manager.join(10)
    assert rig.connection.calls == []


def test_requests_to_unknown_brokers_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    rig = ChannelRig(Scripted())
    rig.manager.send([outgoing(1, broker_id=6)])
    assert (
        "Not sending request UpdateMetadataRequest to broker 6, since it is offline" in caplog.text
    )


def test_a_broker_is_added_once() -> None:
    rig = ChannelRig(Scripted())
    before = threading.active_count()
    rig.manager.add_broker(BROKER)
    rig.manager.add_broker(BROKER)
    assert threading.active_count() == before + 1
    rig.manager.halt()
    rig.manager.join(10)
