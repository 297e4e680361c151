"""kafka08.console.cluster_state."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.cluster_state import PartitionView
from tests.console.scene import ConsoleScene
from zk import znodes

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
