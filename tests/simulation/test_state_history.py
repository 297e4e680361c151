"""Writes to the states of partitions that no correct broker makes are found."""

from __future__ import annotations

import pytest

from tests.simulation.state_history import StateHistory
from tests.simulation.znode_tree import MakeOp, Tree, TreeOp, Txn
from zk import znodes
from zk.client import DeleteOp, SetOp
from zk.znodes import PartitionStateNode

PATH = znodes.partition_state_path("t", 0)
FIRST = PartitionStateNode(1, 0, 3, (1, 2))


class States:
    """Writes of the state of one partition, with controller epoch 3."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._tree = Tree()
        self._history = StateHistory(self.notes.append)
        parents = [PATH.rsplit("/", count)[0] for count in range(5, 0, -1)]
        self._commit(*(MakeOp(path) for path in parents))
        self._commit(MakeOp(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(3)))

    def _commit(self, *ops: TreeOp) -> None:
        txn = Txn(self._tree.zxid + 1, 0, ops)
        self._tree.apply(txn)
        self._history.committed(self._tree, txn)

    def make(self, state: PartitionStateNode = FIRST) -> None:
        self._commit(MakeOp(PATH, znodes.encode_partition_state(state)))

    def set(self, state: PartitionStateNode) -> None:
        self._commit(SetOp(PATH, znodes.encode_partition_state(state)))

    def delete(self) -> None:
        self._commit(DeleteOp(PATH))


def test_elections_and_changes_of_isrs_are_noted() -> None:
    states = States()
    states.make()
    states.set(FIRST._replace(isr=(1, 2, 3)))
    states.set(PartitionStateNode(2, 1, 3, (2, 3)))
    states.set(PartitionStateNode(-1, 2, 3, (2,)))
    assert len(states.notes) == 4
    assert all("[t,0]" in line for line in states.notes)


def test_a_partition_that_was_deleted_begins_again() -> None:
    states = States()
    states.make(FIRST._replace(leader_epoch=7))
    states.delete()
    states.make()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (FIRST._replace(isr=()), "nobody is in sync"),
        (FIRST._replace(leader=2), "has two leaders"),
        (FIRST._replace(controller_epoch=2), "has two leaders"),
        (FIRST._replace(leader_epoch=2), "jump"),
        (PartitionStateNode(2, 1, 2, (2,)), "not of the controller epoch 3"),
        (PartitionStateNode(2, 1, 3, (1,)), "not in the isr"),
        (PartitionStateNode(3, 1, 3, (3,)), "from outside the isr"),
        (PartitionStateNode(2, 1, 3, (2, 3)), "adds to the isr"),
    ],
)
def test_what_no_correct_broker_writes_is_found(state: PartitionStateNode, message: str) -> None:
    states = States()
    states.make()
    with pytest.raises(AssertionError, match=message):
        states.set(state)


def test_only_the_controller_makes_states() -> None:
    with pytest.raises(AssertionError, match="not of the controller epoch 3"):
        States().make(FIRST._replace(controller_epoch=4))
