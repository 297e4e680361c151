"""States that a watchman does not let pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.protocol.schemas import NO_LEADER
from tests.simulation.watch import Watchman
from tests.simulation.world import SimulatedWorld
from tests.simulation.znode_tree import Znode
from zk import znodes
from zk.znodes import PartitionStateNode

FIRST = PartitionStateNode(leader=1, leader_epoch=3, isr=(1, 2), controller_epoch=1)


class Nodes:
    """Writes what a watchman looks at."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.watchman = Watchman(world)
        self.tree = world.sessions.ensemble.tree
        self._version = 0
        self.put(znodes.BROKER_TOPICS, b"", "t")
        self.put(znodes.topic_path("t"), b"")
        self.put(znodes.topic_partitions_path("t"), b"", "0")
        self.state(FIRST)

    def put(self, path: str, data: bytes, *children: str) -> None:
        self._version += 1
        names = dict.fromkeys(children)
        self.tree.nodes[path] = Znode(data, version=self._version, children=names)

    def state(self, state: PartitionStateNode) -> None:
        """The partition has this state now."""
        self.put(znodes.partition_state_path("t", 0), znodes.encode_partition_state(state))
        self.tree.zxid += 1
        self.watchman.look(None)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with SimulatedWorld(tmp_path, 1, count=3) as world:
        yield Nodes(world)


def test_a_member_of_the_isr_leads(nodes: Nodes) -> None:
    grown = FIRST._replace(isr=(1, 2, 3))
    nodes.state(grown)
    nodes.state(grown._replace(leader=NO_LEADER, leader_epoch=4))
    nodes.state(FIRST._replace(leader=3, leader_epoch=5, isr=(3,)))


@pytest.mark.parametrize(
    "state",
    [
        FIRST._replace(leader_epoch=2),
        FIRST._replace(leader=2),
        FIRST._replace(leader=3, leader_epoch=4),
        FIRST._replace(isr=()),
        FIRST._replace(isr=(1, 1)),
    ],
)
def test_a_wrong_state_is_found(nodes: Nodes, state: PartitionStateNode) -> None:
    with pytest.raises(AssertionError, match=r"t-0|\[t,0\]"):
        nodes.state(state)


def test_another_topic_of_the_name_begins_again(nodes: Nodes) -> None:
    nodes.tree.nodes[znodes.topic_path("t")].czxid = 7
    nodes.state(FIRST._replace(leader=2, leader_epoch=0))


def test_the_epoch_of_the_controller_rises(nodes: Nodes) -> None:
    for epoch in (1, 2):
        nodes.put(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch))
        nodes.state(FIRST)
    nodes.put(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(1))
    with pytest.raises(AssertionError, match="the controller's epoch goes back"):
        nodes.state(FIRST)
