"""Checks of a simulated cluster when faults have ended."""

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.log.log import Log
from kafka08.message.sets import iter_messages
from tests.simulation.world import SimulatedWorld
from zk import znodes

_READ_BYTES = 1 << 20


def assignment(world: SimulatedWorld, topic: str) -> dict[int, tuple[int, ...]]:
    """The replicas by partition."""
    path = znodes.topic_path(topic)
    return znodes.decode_topic(path, world.sessions.data(path) or b"")


def is_at_rest(world: SimulatedWorld, topic: str) -> bool:
    """Whether each partition has a leader that is there, and all its replicas in the isr."""
    for partition, replicas in assignment(world, topic).items():
        path = znodes.partition_state_path(topic, partition)
        data = world.sessions.data(path)
        if data is None:
            return False
        state = znodes.decode_partition_state(path, data)
        leader = world.brokers.get(state.leader)
        if leader is None or not leader.has_started or set(state.isr) != set(replicas):
            return False
    return True


def content(log: Log) -> bytes:
    """All entries of a log."""
    data, offset = bytearray(), log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, _READ_BYTES).read()
        data += piece
        offset = max(message.offset for message in iter_messages(piece)) + 1
    return bytes(data)


def is_replicated(world: SimulatedWorld, topic: str) -> bool:
    """Whether the replicas of each partition have the same log, which must be so soon after the
    last append. Raises AssertionError if logs that end at the same offset differ."""
    for partition, replicas in assignment(world, topic).items():
        key = TopicPartition(topic, partition)
        logs = [world.brokers[each].log_manager.logs[key] for each in replicas]
        if len({log.log_end_offset for log in logs}) > 1:
            return False
        found = [content(log) for log in logs]
        assert all(each == found[0] for each in found), f"the replicas of {key} differ"
    return True
