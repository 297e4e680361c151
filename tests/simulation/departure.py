"""A broker that never comes back: its replicas are moved to the others, as an operator does it."""

from __future__ import annotations

from kafka08 import admin
from kafka08.common import TopicPartition
from tests.simulation import checks
from tests.simulation.broker import SimulatedBroker
from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.world import SimulatedWorld
from zk.errors import ZkError

_PAUSE_SECONDS = 1.0


def moves(world: SimulatedWorld, broker: SimulatedBroker) -> dict[TopicPartition, list[int]]:
    """New replicas for each partition of the broker: the others that it has, and another broker in
    its place if there is one."""
    staying = [each.id for each in world.staying]
    found = {}
    for name, replicas in checks.assignments(world).items():
        if broker.id in replicas:
            kept = [each for each in replicas if each != broker.id]
            others = [each for each in staying if each not in kept]
            found[name] = [*kept, *others[: len(replicas) - len(kept)]]
    return found


def move_away(world: SimulatedWorld, runtime: SimulatedRuntime, broker: SimulatedBroker) -> None:
    """Run by a task of ``runtime``: returns when no partition has the broker as a replica."""
    session = world.sessions.connect(runtime)
    while left := moves(world, broker):
        try:
            admin.start_reassignment(session, left)
        except ZkError:  # one is under way
            runtime.sleep(_PAUSE_SECONDS)
    session.close()
