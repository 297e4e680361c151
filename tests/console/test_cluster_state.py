"""kafka08.console.cluster_state."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.cluster_state import PartitionView
from tests.console.scene import ConsoleScene
from zk import znodes
from zk.znodes import BrokerRegistration, ControllerNode

TP = TopicPartition("t", 0)


def test_assignment_leader_and_isr_come_together() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1, 2], leader=1)
    scene.observer.look()
    state = scene.observer.state
    assert state is not None
    assert state.topics["t"].partitions == {0: PartitionView((1, 2), 1, (0,))}
    assert (state.controller, state.epoch, state.told) == (1, 3, True)
    assert [broker.is_ours for broker in state.live] == [True, False]
    assert (state.topics["t"].under_replicated, state.topics["t"].offline) == (1, 0)


def test_moves_and_deletions_are_seen() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.server.put(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({TP: (2,)}))
    scene.server.put(znodes.delete_topic_path("t"))
    scene.observer.look()
    state = scene.observer.state
    assert state is not None
    assert state.moves == {TP: (2,)}
    assert state.topics["t"].is_deleting


@pytest.mark.parametrize(
    "path",
    [
        znodes.topic_path("t"),
        znodes.CONTROLLER,
        znodes.CONTROLLER_EPOCH,
        znodes.REASSIGN_PARTITIONS,
        znodes.PREFERRED_REPLICA_ELECTION,
        znodes.broker_path(2),
        znodes.offline_replicas_path(1),
    ],
)
def test_a_node_that_cannot_be_read_does_not_hide_the_rest(path: str) -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.topic("u", [1])
    scene.server.put(path, b"\xff{")
    scene.observer.look()
    assert scene.observer.error == ""
    assert scene.observer.state is not None
    assert scene.observer.state.topics["u"].partitions


def test_the_broker_that_is_asked_what_0_8_2_2_does_not_know() -> None:
    scene = ConsoleScene()

    def asked() -> int | None:
        scene.observer.look()
        assert scene.observer.state is not None
        return scene.observer.state.asked

    assert asked() == 1
    scene.server.put(znodes.CONTROLLER, znodes.encode_controller(ControllerNode(2, "5")))
    assert asked() == 1
    third = BrokerRegistration("b3", 9093, -1, "1400000000000", 2)
    scene.server.put(znodes.broker_path(3), znodes.encode_broker(third))
    assert asked() == 1
    scene.server.put(znodes.CONTROLLER, znodes.encode_controller(ControllerNode(3, "5")))
    assert asked() == 3
    for broker_id in (1, 3):
        scene.server.remove(znodes.broker_path(broker_id))
    assert asked() is None
