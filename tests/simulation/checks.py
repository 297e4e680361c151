"""Checks of a simulated cluster: what replicas have in common, when it is at rest, and what is left
that nobody owns."""

from __future__ import annotations

import gc
import os
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from kafka08.common import TopicPartition
from kafka08.groups.records import GroupPartition
from kafka08.log.directory import parse_log_name
from kafka08.log.log import Log
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.server.transactions.states import IDLE
from tests.simulation import relay_load, transactional
from tests.simulation.broker import SimulatedBroker
from tests.simulation.list_ledger import SOURCES
from tests.simulation.log_transactions import Aborted, LogTransactions
from tests.simulation.world import SimulatedWorld
from zk import znodes

_READ_BYTES = 1 << 20
_DESCRIPTORS = "/proc/self/fd"

_decode_topic = lru_cache(64)(znodes.decode_topic)  # asked for after every step


def topics(world: SimulatedWorld) -> list[str]:
    """All that exist, as ZooKeeper has them now."""
    return world.sessions.children(znodes.BROKER_TOPICS)


def assignment(world: SimulatedWorld, topic: str) -> Mapping[int, tuple[int, ...]]:
    """The replicas by partition."""
    path = znodes.topic_path(topic)
    return _decode_topic(path, world.sessions.data(path) or b"")


def assignments(world: SimulatedWorld) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of all partitions."""
    return {
        TopicPartition(topic, partition): replicas
        for topic in topics(world)
        for partition, replicas in assignment(world, topic).items()
    }


def is_at_rest(world: SimulatedWorld, topic: str) -> bool:
    """Whether each partition has a leader that is there, and all its replicas in the isr, but for
    those that never come back."""
    for partition, replicas in assignment(world, topic).items():
        state = world.sessions.history.states.get(TopicPartition(topic, partition))
        if state is None:
            return False
        leader = world.brokers.get(state.leader)
        staying = {each for each in replicas if not world.brokers[each].is_gone}
        if leader is None or not leader.has_started or set(state.isr) != staying:
            return False
    return True


# Logs


def entries(log: Log) -> dict[int, bytes]:
    """All entries of a log by their last offsets."""
    found: dict[int, bytes] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, _READ_BYTES).read()
        # A compacted log may have been cut where all that came before is superseded.
        is_over = not any(each.size for each in log.segments if each.base_offset >= offset)
        if not piece and is_over and log.config.compact:
            break
        assert piece, f"{log.name} has nothing at {offset}, and ends at {log.log_end_offset}"
        for entry in iter_entries(piece):
            found[entry.offset] = piece[entry.position : entry.stop]
            offset = entry.offset + 1
    return found


def is_replicated(world: SimulatedWorld) -> bool:
    """Whether the replicas of each partition have the same log, which must be so soon after the
    last append. Raises AssertionError if logs that end at the same offset differ."""
    replicas: dict[TopicPartition, list[Log]] = {}
    for key, ids in assignments(world).items():
        hosts = [world.brokers[each] for each in ids if not world.brokers[each].is_gone]
        there = [each.log_manager.logs.get(key) for each in hosts]
        replicas[key] = [log for log in there if log is not None]
        if len(replicas[key]) < len(there):
            return False
    # To read all of them takes long, and this is asked until it is true.
    if any(len({log.log_end_offset for log in logs}) > 1 for logs in replicas.values()):
        return False
    for key, logs in replicas.items():
        start = max(log.log_start_offset for log in logs)
        kept = _newest if logs[0].config.compact else entries
        found = [{at: what for at, what in kept(log).items() if at >= start} for log in logs]
        assert all(each == found[0] for each in found), f"the replicas of {key} differ"
    return True


def _contents(log: Log) -> Mapping[int, object]:
    """The contents in which two replicas are equal at each offset. Those of a compacted log have
    entries of their own with the same messages."""
    return _messages(log) if log.config.compact else entries(log)


def _messages(
    log: Log, without: Collection[int] = ()
) -> dict[int, tuple[bytes | None, bytes | None]]:
    """The key and value of each message of a log by its offset, without these entries."""
    return {
        message.offset: (message.key, message.value)
        for at, entry in entries(log).items()
        if at not in without
        for message in iter_messages(entry)
    }


def _newest(log: Log) -> dict[int, object]:
    """The last message of each key of a compacted log, and those without a key. One that deletes
    its key may be gone, and so may one of an aborted transaction."""
    messages = _messages(log, LogTransactions(entries(log).values()).dropped)
    newest = {key: at for at, (key, _) in messages.items()}
    return {
        at: (key, value)
        for at, (key, value) in messages.items()
        if value is not None and (key is None or newest[key] == at)
    }


def undeleted(world: SimulatedWorld, topic: str, starts: Mapping[int, int]) -> Iterator[str]:
    """A line for each replica that has records which were deleted: those below ``starts``, by
    partition. All brokers must have started."""
    for (name, partition), replicas in assignments(world).items():
        for number in replicas if name == topic else ():
            log = world.brokers[number].log_manager.logs.get(TopicPartition(topic, partition))
            if log is not None and log.first_offset < starts.get(partition, 0):
                yield f"{topic}-{partition} on broker {number} begins at {log.first_offset}"


def check_agreement(world: SimulatedWorld) -> None:
    """Each two replicas that are there have the same below their high watermarks. Raises
    AssertionError."""
    for key in assignments(world):
        known: dict[int, object] = {}
        for broker in world.brokers.values():
            for at, data in _committed(broker, key).items():
                other = known.setdefault(at, data)
                assert data == other, f"{key}: {broker.host} has another entry at {at}"


def _committed(broker: SimulatedBroker, key: TopicPartition) -> dict[int, object]:
    """The contents below the high watermark that a broker knows."""
    replicas = None if broker.runtime.is_dead else broker.replicas
    partition = None if replicas is None else replicas.partitions.get(key)
    if partition is None or partition.log is None:
        return {}
    until = partition.high_watermark
    return {at: what for at, what in _contents(partition.log).items() if at < until}


# Transactions


def check_transactions(world: SimulatedWorld) -> None:
    """Each replica knows of transactions what its batches say. Compaction takes the index of those
    that are aborted away with their messages. Raises AssertionError."""
    for broker in world.staying:
        for key, log in broker.log_manager.logs.items():
            found, where = LogTransactions(entries(log).values()), f"{key} on {broker.host}"
            known = log.producers.states.open
            assert known == found.open, f"{where} has open {known}: {found.open}"
            if not log.config.compact:
                start, end = log.log_start_offset, log.log_end_offset
                told = [Aborted(*each[:3]) for each in log.aborted.between(start, end)]
                listed = [each for each in told if each.first >= start and each.last < end]
                assert listed == found.aborted, f"{where} has aborted {listed}: {found.aborted}"


def open_transactions(world: SimulatedWorld) -> set[tuple[TopicPartition, int, int]]:
    """The partition, producer and first offset of each transaction for which readers wait."""
    return {
        (key, *transaction)
        for broker in world.staying
        for key, log in broker.log_manager.logs.items()
        for transaction in log.producers.states.open.items()
    }


def _transactions(broker: SimulatedBroker) -> Iterator[str]:
    """Those that have not ended, as their coordinator has them, and where readers wait for one."""
    rooms = broker.rooms
    assert rooms is not None
    for _, entry in rooms.transactions.coordinator.store.all():
        if entry.pending or entry.current.state not in IDLE:
            yield f"the transaction {entry.current} on {broker.host}"
    for key, partition in rooms.storage.replicas.partitions.items():
        if partition.is_leader and partition.last_stable_offset < partition.high_watermark:
            yield f"{key} on {broker.host} is stable up to {partition.last_stable_offset} alone"
    for number in range(SOURCES):
        copied = GroupPartition(relay_load.GROUP, transactional.TOPIC, number)
        if rooms.groups.offsets.is_unstable(copied):
            yield f"a pending offset of {copied} on {broker.host}"


# Remains


def leftovers(world: SimulatedWorld) -> list[str]:
    """A line for each thing that is left of clients that have stopped, of requests, and of the
    controller's tasks, in a cluster whose brokers have all started. None of them may stay."""
    found = [*_nodes(world), *_deleted_files(world)]
    found += [f"unrest in {each}" for each in topics(world) if not is_at_rest(world, each)]
    for broker in world.staying:
        found += [*_requests(broker, [each.host for each in world.brokers.values()])]
        found += _transactions(broker)
    return found


def unfinished(world: SimulatedWorld) -> Iterator[str]:
    """A line for each task of the controller that has not ended. Replicas on brokers that never
    come back cannot be deleted."""
    sessions, staying = world.sessions, {each.id for each in world.staying}
    for path in (znodes.DELETE_TOPICS, znodes.ISR_CHANGES):
        for name in sessions.children(path):
            yield f"the node {path}/{name}"
    for name in sessions.children(znodes.DELETE_REPLICAS):
        if znodes.replica_to_delete(name)[1] in staying:
            yield f"the node {znodes.DELETE_REPLICAS}/{name}"
    for path in (znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_REPLICA_ELECTION):
        if sessions.data(path) is not None:
            yield f"the node {path}"


def _nodes(world: SimulatedWorld) -> Iterator[str]:
    yield from unfinished(world)
    sessions = world.sessions
    there = sorted(map(int, sessions.children(znodes.BROKER_IDS)))
    if there != [each.id for each in world.staying]:
        yield f"the registrations {there}"
    data = sessions.data(znodes.CONTROLLER)
    if data is None or znodes.decode_controller(znodes.CONTROLLER, data).broker_id not in there:
        yield "no live controller"


def _requests(broker: SimulatedBroker, hosts: Collection[str]) -> Iterator[str]:
    """The connections of clients, and requests that wait."""
    for task in broker.runtime.process.tasks.values():
        what, _, peer = task.name.partition(" ")
        if what == "serve" and peer.rpartition(":")[0] not in hosts:
            yield f"the task {task}, which waits for {task.waits_for}"
    rooms = broker.rooms
    assert rooms is not None, f"{broker.host} has no rooms"
    replicas = rooms.storage.replicas
    for purgatory in (replicas.produce_purgatory, replicas.fetch_purgatory):
        if len(purgatory):
            yield f"{len(purgatory)} requests that wait on {broker.host}"
    for group in rooms.groups.coordinator.groups.values():
        for member in group.members.values():
            if member.join is not None or member.sync is not None:
                yield f"a request of {member.id} on {broker.host}"


def strays(world: SimulatedWorld) -> Iterator[str]:
    """A line for each directory of a partition that its broker does not have, and for each that is
    missing."""
    for broker in world.staying:
        yield from _directories(world, broker)


def _directories(world: SimulatedWorld, broker: SimulatedBroker) -> Iterator[str]:
    there = {
        name
        for data in broker.config.log_dirs
        for name in os.listdir(data)
        if os.path.isdir(os.path.join(data, name)) and parse_log_name(name) is not None
    }
    due = {
        f"{key.topic}-{key.partition}"
        for key, replicas in assignments(world).items()
        if broker.id in replicas
    }
    for name in sorted(there ^ due):
        yield f"{'no' if name in due else 'the'} directory {name} on {broker.host}"


def _deleted_files(world: SimulatedWorld) -> list[str]:
    """Files of its disks that are open and deleted. Those of dead processes close with the objects
    that these have left."""
    found = _open_and_deleted(world.directory)
    if found:
        gc.collect()
        found = _open_and_deleted(world.directory)
    return found


def _open_and_deleted(directory: Path) -> list[str]:
    found = []
    for number in os.listdir(_DESCRIPTORS):
        try:
            target = os.readlink(os.path.join(_DESCRIPTORS, number))
        except OSError:  # that of the listing itself
            continue
        if target.startswith(f"{directory}/") and target.endswith("(deleted)"):
            found.append(f"a descriptor of {target}")
    return found
