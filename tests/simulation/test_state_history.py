"""Writes of states and of the controller's epoch that no correct broker makes are found."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from tests.simulation.state_history import StateHistory
from tests.simulation.znode_tree import MakeOp, Tree, TreeOp, Txn
from zk import znodes
from zk.client import DeleteOp, SetOp
from zk.znodes import PartitionStateNode

NAME = TopicPartition("t", 0)
PATH = znodes.partition_state_path(*NAME)
FIRST = PartitionStateNode(1, 0, 3, (1, 2))


class States:
    """Writes of the state of one partition, with controller epoch 3."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._tree = Tree()
        self.history = StateHistory(self.notes.append)
        parents = [PATH.rsplit("/", count)[0] for count in range(5, 0, -1)]
        self._commit(*(MakeOp(path) for path in parents))
        self._commit(MakeOp(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(3)))

    def _commit(self, *ops: TreeOp) -> None:
        txn = Txn(self._tree.zxid + 1, 0, ops)
        self._tree.apply(txn)
        self.history.committed(txn)

    def make(self, state: PartitionStateNode = FIRST) -> None:
        self._commit(MakeOp(PATH, znodes.encode_partition_state(state)))

    def set(self, state: PartitionStateNode) -> None:
        self._commit(SetOp(PATH, znodes.encode_partition_state(state)))

    def delete(self) -> None:
        self._commit(DeleteOp(PATH))

    def control(self, epoch: int) -> None:
        self._commit(SetOp(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch)))

    def ask_to_delete(self) -> None:
        path = znodes.DELETE_TOPICS
        self._commit(MakeOp(path.rpartition("/")[0]), MakeOp(path), MakeOp(f"{path}/t"))


def test_elections_and_changes_of_isrs_are_noted() -> None:
    states = States()
    states.make()
    states.set(FIRST._replace(isr=(1, 2, 3)))
    states.set(PartitionStateNode(2, 1, 3, (2, 3)))
    states.set(PartitionStateNode(-1, 2, 3, (2,)))
    assert len(states.notes) == 4
    assert all("[t,0]" in line for line in states.notes)


def test_the_states_of_now_and_those_that_changed_are_known() -> None:
    states = States()
    states.make()
    states.set(FIRST._replace(isr=(1, 2, 3)))
    assert states.history.states == {NAME: FIRST._replace(isr=(1, 2, 3))}
    assert list(states.history.changed) == [NAME]
    states.delete()
    assert not states.history.states


def test_a_partition_that_was_deleted_begins_again() -> None:
    states = States()
    states.make(FIRST._replace(leader_epoch=7))
    states.delete()
    states.make()
    assert not states.history.given_up


def test_another_topic_of_the_name_begins_again() -> None:
    states = States()
    states.make()
    states.ask_to_delete()
    assert states.history.given_up == {"t"}
    states.delete()
    states.make(FIRST._replace(leader=2, leader_epoch=0))
    assert states.history.given_up == {"t"}


def test_a_member_of_the_isr_leads() -> None:
    states = States()
    grown = FIRST._replace(isr=(1, 2, 3))
    states.make(grown)
    states.set(grown._replace(leader=-1, leader_epoch=1))
    states.set(FIRST._replace(leader=3, leader_epoch=2, isr=(3,)))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (FIRST._replace(isr=()), "nobody is in sync"),
        (FIRST._replace(isr=(1, 1)), "twice in the isr"),
        (FIRST._replace(leader=2), "has two leaders"),
        (FIRST._replace(leader_epoch=-1), "jump"),
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
    with pytest.raises(AssertionError, match=message) as found:
        states.set(state)
    assert "[t,0]" in str(found.value)


def test_only_the_controller_makes_states() -> None:
    with pytest.raises(AssertionError, match="not of the controller epoch 3"):
        States().make(FIRST._replace(controller_epoch=4))


@pytest.mark.parametrize("epoch", [2, 3])
def test_the_epoch_of_the_controller_rises(epoch: int) -> None:
    states = States()
    states.control(4)
    states.make(FIRST._replace(controller_epoch=4))
    with pytest.raises(AssertionError, match="the controller's epoch goes back"):
        states.control(epoch)
