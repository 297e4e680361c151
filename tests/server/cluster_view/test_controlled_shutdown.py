"""Asking the controller to move leaderships, as often as allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol.schemas import ControlledShutdownRequest, ControlledShutdownResponse
from kafka08.server.cluster_view import controlled_shutdown as module
from tests.server.support import ME, PEER, Rig
from zk import znodes
from zk.errors import ZkConnectionError
from zk.znodes import ControllerNode

DONE = ControlledShutdownResponse(0, [])
LEFT = ControlledShutdownResponse(0, [("t", 0)])  # type: ignore[list-item]
REFUSED = ControlledShutdownResponse(-1, [])


class Controller:
    """Stands for the channel to it; ``answers`` are given, or raised, in turn."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[tuple[str, int, Any]] = []

    def __call__(self, host: str, port: int, **settings: Any) -> Controller:
        self.address = (host, port)
        assert settings["timeout_ms"] == 30_000
        return self

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def call(self, request: Any) -> Any:
        self.asked.append((*self.address, request))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Controller:
    controller = Controller()
    monkeypatch.setattr(module, "Channel", controller)
    return controller


@pytest.fixture
def asking(rig: Rig, controller: Controller) -> Callable[..., bool]:
    rig.register(PEER)
    rig.zk.create(znodes.CONTROLLER, znodes.encode_controller(ControllerNode(PEER, "")))

    def ask(*answers: Any) -> bool:
        controller.answers = list(answers)
        zk: Any = rig.zk
        return module.controlled_shutdown(
            rig.config, lambda broker_id: rig.runtime, zk, rig.runtime.sleep
        )

    return ask


def test_success_at_once(rig: Rig, controller: Controller, asking: Callable[..., bool]) -> None:
    before = rig.clock.now
    assert asking(DONE)
    assert controller.asked == [(f"host{PEER}", 9090 + PEER, ControlledShutdownRequest(ME))]
    assert rig.clock.now == before


@pytest.mark.parametrize(
    "first", [LEFT, REFUSED, ConnectionRefusedError(), TimeoutError(), ProtocolError()]
)
def test_another_try_after_five_seconds(rig: Rig, asking: Callable[..., bool], first: Any) -> None:
    before = rig.clock.now
    assert asking(first, DONE)
    assert rig.clock.now == before + 5


def test_three_tries_and_no_more(
    rig: Rig, controller: Controller, asking: Callable[..., bool]
) -> None:
    before = rig.clock.now
    assert not asking(LEFT, REFUSED, LEFT, DONE)
    assert len(controller.asked) == 3
    assert rig.clock.now == before + 10


def test_without_zookeeper_nobody_is_asked(
    rig: Rig, controller: Controller, asking: Callable[..., bool]
) -> None:
    rig.zk.connected = False
    assert not asking(DONE)
    rig.zk.connected = True
    rig.zk.fails[znodes.CONTROLLER] = ZkConnectionError()
    assert not asking(DONE)
    assert controller.asked == []


@pytest.mark.parametrize("path", [znodes.CONTROLLER, znodes.broker_path(PEER)])
def test_without_a_controller_it_is_tried_again(
    rig: Rig, controller: Controller, asking: Callable[..., bool], path: str
) -> None:
    rig.zk.delete(path)
    assert not asking(DONE)
    assert controller.asked == []
