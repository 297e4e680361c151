"""The states of partitions and controllers in ZooKeeper: who led, in which epoch, with which isr.

Looks at each transaction, and raises AssertionError at a write that no correct broker makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kafka08.common import TopicPartition
from tests.simulation.znode_tree import MakeOp, Txn
from zk import znodes
from zk.client import DeleteOp, SetOp
from zk.znodes import PartitionStateNode

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_NO_LEADER = -1


class StateHistory:
    """``states``: those that there are now. ``changed``: the partitions whose states were written
    since somebody emptied it. ``given_up``: the topics that somebody has asked to delete.
    ``note`` is given a line for each change of a state."""

    def __init__(self, note: Callable[[str], object] = lambda line: None) -> None:
        self.states: dict[TopicPartition, PartitionStateNode] = {}
        self.changed: dict[TopicPartition, None] = {}
        self.given_up: set[str] = set()
        self._controller_epoch: int | None = None
        self._note = note

    def committed(self, txn: Txn) -> None:
        """The ensemble has decided on ``txn``."""
        for op in txn.ops:
            if isinstance(op, DeleteOp):
                self._deleted(op.path)
            elif isinstance(op, MakeOp | SetOp):
                self._written(op.path, op.data, isinstance(op, MakeOp))

    def _deleted(self, path: str) -> None:
        found = _STATE.fullmatch(path)
        if found is not None:
            self.states.pop(TopicPartition(found[1], int(found[2])), None)

    def _written(self, path: str, data: bytes, is_new: bool) -> None:
        if path == znodes.CONTROLLER_EPOCH:
            self._controlled(znodes.decode_int32(path, data))
        elif found := _STATE.fullmatch(path):
            name = TopicPartition(found[1], int(found[2]))
            self._changed(name, znodes.decode_partition_state(path, data))
        elif is_new and path.startswith(f"{znodes.DELETE_TOPICS}/"):
            self.given_up.add(path.rpartition("/")[2])

    def _controlled(self, epoch: int) -> None:
        before = self._controller_epoch
        assert before is None or epoch > before, f"the controller's epoch goes back to {epoch}"
        self._controller_epoch = epoch

    def _changed(self, name: TopicPartition, state: PartitionStateNode) -> None:
        what = f"[{name.topic},{name.partition}]"
        self._note(f"{what} has {state}")
        before = self.states.get(name)
        self.states[name] = state
        self.changed[name] = None
        assert state.isr, f"{what}: nobody is in sync: {state}"
        assert len(set(state.isr)) == len(state.isr), f"{what}: twice in the isr: {state}"
        if before is None or before.leader_epoch != state.leader_epoch:
            self._check_controller(what, state)
        if before is not None:
            _check(before, state, f"{what}: {before} became {state}")

    def _check_controller(self, what: str, state: PartitionStateNode) -> None:
        """Only the controller of the time makes a state or raises its leader epoch."""
        epoch = self._controller_epoch
        assert epoch in (None, state.controller_epoch), (
            f"{what}: {state} is not of the controller epoch {epoch}"
        )


def _check(before: PartitionStateNode, state: PartitionStateNode, change: str) -> None:
    assert state.leader in (_NO_LEADER, *state.isr), f"the leader is not in the isr: {change}"
    if state.leader_epoch == before.leader_epoch:
        same = before[:3] == state[:3]
        assert same, f"a leader epoch has two leaders: {change}"
        return
    assert state.leader_epoch == before.leader_epoch + 1, f"leader epochs jump: {change}"
    # A leader without a successor stays in the isr, which elects again when a member is back.
    assert state.leader in (_NO_LEADER, *before.isr), f"elected from outside the isr: {change}"
    assert set(state.isr) <= set(before.isr), f"an election adds to the isr: {change}"
