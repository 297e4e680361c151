"""The states of partitions as ZooKeeper has had them: who led, in which epoch, with which isr.

Looks at each transaction, and raises AssertionError at a write that no correct broker makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.simulation.znode_tree import MakeOp, Tree, Txn
from zk import znodes
from zk.client import DeleteOp, SetOp
from zk.znodes import PartitionStateNode

_PATH = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_NO_LEADER = -1


class StateHistory:
    """``note`` is given a line for each change."""

    def __init__(self, note: Callable[[str], object] = lambda line: None) -> None:
        self._states: dict[str, PartitionStateNode] = {}
        self._note = note

    def committed(self, tree: Tree, txn: Txn) -> None:
        """``tree`` has applied ``txn``."""
        for op in txn.ops:
            found = _PATH.fullmatch(op.path)
            if found is None:
                continue
            if isinstance(op, DeleteOp):
                self._states.pop(op.path, None)
            elif isinstance(op, MakeOp | SetOp):
                state = znodes.decode_partition_state(op.path, op.data)
                self._note(f"[{found[1]},{found[2]}] has {state}")
                before = self._states.get(op.path)
                self._states[op.path] = state
                _check_controller(tree, before, state)
                if before is not None:
                    _check(before, state)


def _check_controller(
    tree: Tree, before: PartitionStateNode | None, state: PartitionStateNode
) -> None:
    """Only the controller of the time makes a state or raises its leader epoch."""
    if before is not None and before.leader_epoch == state.leader_epoch:
        return
    stored = tree.nodes.get(znodes.CONTROLLER_EPOCH)
    if stored is not None:
        epoch = znodes.decode_int32(znodes.CONTROLLER_EPOCH, stored.data)
        assert state.controller_epoch == epoch, f"{state} is not of the controller epoch {epoch}"


def _check(before: PartitionStateNode, state: PartitionStateNode) -> None:
    change = f"{before} became {state}"
    assert state.isr, f"nobody is in sync: {change}"
    assert state.leader in (_NO_LEADER, *state.isr), f"the leader is not in the isr: {change}"
    if state.leader_epoch == before.leader_epoch:
        same = before[:3] == state[:3]
        assert same, f"a leader epoch has two leaders: {change}"
        return
    assert state.leader_epoch == before.leader_epoch + 1, f"leader epochs jump: {change}"
    # A leader without a successor stays in the isr, which elects again when a member is back.
    assert state.leader in (_NO_LEADER, *before.isr), f"elected from outside the isr: {change}"
    assert set(state.isr) <= set(before.isr), f"an election adds to the isr: {change}"
