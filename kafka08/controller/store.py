"""The controller's reads and writes in ZooKeeper.

Every write is a transaction that also checks /controller_epoch. So a controller that has been
replaced without noticing cannot write and gets StaleControllerEpochError (0.8.2.2 fences state
nodes only). Reads with an event arm a watch first. A malformed node is logged and treated as
absent. Many nodes are read and written at a time. Does not make the controller's decisions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from kafka08.common import Broker, TopicPartition
from kafka08.controller.context import (
    ControllerContext,
    LeaderAndIsr,
    LiveBroker,
    PartitionAndReplica,
)
from zk import election, znodes
from zk.client import CreateOp, DeleteOp, Op, SetOp, ZkClient
from zk.errors import BadVersionError, NoAuthError, NodeExistsError, NoNodeError, NotEmptyError
from zk.watches import WatchSet
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.controller.KafkaController")

# Writes per transaction: a request must stay below 1 MiB.
WRITES = 100

T = TypeVar("T")


class ControllerStore:
    """The controller's nodes. ``watches`` posts the events that reads are given."""

    def __init__(self, zk: ZkClient, watches: WatchSet, context: ControllerContext) -> None:
        self._zk = zk
        self._watches = watches
        self._context = context

    # Reading

    def brokers(self, event: Hashable) -> dict[int, LiveBroker]:
        """Registered brokers by id."""
        names = self._watches.children(znodes.BROKER_IDS, event) or []
        ids = sorted(int(name) for name in names if name.isdecimal())
        paths = [znodes.broker_path(broker_id) for broker_id in ids]
        brokers = {}
        for broker_id, path, found in zip(ids, paths, self._zk.get_all(paths), strict=True):
            if found is None:
                continue
            data, stat = found
            node = _decoded(znodes.decode_broker, path, data)
            if node is not None:
                broker = Broker(broker_id, node.host, node.port)
                brokers[broker_id] = LiveBroker(broker, stat.czxid, node.formats)
        return brokers

    def offline_replicas(
        self, event: Hashable
    ) -> tuple[set[PartitionAndReplica], set[PartitionAndReplica]]:
        """The replicas that live brokers cannot serve, and those they cannot write."""
        failed: set[PartitionAndReplica] = set()
        full: set[PartitionAndReplica] = set()
        for name in self._watches.children(znodes.OFFLINE_REPLICAS, event) or ():
            if not name.isdecimal():
                continue
            path = znodes.offline_replicas_path(int(name))
            node = self._watches.data(path, event)
            listed = node and _decoded(znodes.decode_offline_replicas, path, node[0])
            if listed:
                failed.update(PartitionAndReplica(*each, int(name)) for each in listed.failed)
                full.update(PartitionAndReplica(*each, int(name)) for each in listed.full)
        return failed, full

    def topics(self, event: Hashable) -> set[str]:
        return set(self._watches.children(znodes.BROKER_TOPICS, event) or ())

    def assignments(
        self, topics: Collection[str], event_of: Callable[[str], Hashable]
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """AR of every partition of ``topics``; each topic is watched with its own event."""
        events = {znodes.topic_path(topic): event_of(topic) for topic in topics}
        nodes = self._watches.data_of_all(events)
        return {
            TopicPartition(topic, partition): replicas
            for topic, path, found in zip(topics, events, nodes, strict=True)
            if found is not None
            for partition, replicas in (_decoded(znodes.decode_topic, path, found[0]) or {}).items()
            if replicas
        }

    def forget_topic(self, topic: str) -> None:
        """Stop watching the node of a topic."""
        self._watches.forget(znodes.topic_path(topic))

    def states(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, LeaderAndIsr]:
        """The state nodes that exist."""
        return {tp: state for tp, (state, _) in self.written_states(partitions).items()}

    def written_states(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, tuple[LeaderAndIsr, int]]:
        """The state nodes that exist, each with the zxid of its last write."""
        paths = [znodes.partition_state_path(*partition) for partition in partitions]
        states = {}
        for partition, path, found in zip(partitions, paths, self._zk.get_all(paths), strict=True):
            if found is not None:
                data, stat = found
                state = _state(path, data, stat.version)
                if state is not None:
                    states[partition] = state, stat.mzxid
        return states

    def watched_state(self, partition: TopicPartition, event: Hashable) -> LeaderAndIsr | None:
        path = znodes.partition_state_path(*partition)
        found = self._watches.data(path, event)
        return None if found is None else _state(path, *found)

    def forget_state(self, partition: TopicPartition) -> None:
        """Stop watching a state node."""
        self._watches.forget(znodes.partition_state_path(*partition))

    def reassignments(self, event: Hashable) -> dict[TopicPartition, tuple[int, ...]]:
        path = znodes.REASSIGN_PARTITIONS
        found = self._watches.data(path, event)
        return {} if found is None else _decoded(znodes.decode_reassignment, path, found[0]) or {}

    def take_isr_changes(self, event: Hashable) -> set[TopicPartition]:
        """The partitions whose leaders have announced changed isrs.

        The announcements are deleted before this returns, so states read afterwards are the
        announced ones or newer.
        """
        changed: set[TopicPartition] = set()
        for name in self._watches.children(znodes.ISR_CHANGES, event) or ():
            path = f"{znodes.ISR_CHANGES}/{name}"
            while found := self._zk.get_if_exists(path):
                data, stat = found
                changed.update(_decoded(znodes.decode_partitions, path, data) or ())
                try:
                    self._fenced([DeleteOp(path, stat.version)])
                except BadVersionError:
                    logger.debug("%s was added to while it was being read", path)
                except (NoNodeError, NotEmptyError):
                    break
        return changed

    def preferred_elections(self, event: Hashable) -> list[TopicPartition] | None:
        """The requested partitions; None if the node does not exist."""
        path = znodes.PREFERRED_REPLICA_ELECTION
        found = self._watches.data(path, event)
        if found is None:
            return None
        return _decoded(znodes.decode_partitions, path, found[0]) or []

    def topics_to_delete(self, event: Hashable) -> set[str]:
        return set(self._watches.children(znodes.DELETE_TOPICS, event) or ())

    def topic_config(self, topic: str) -> dict[str, str]:
        """The overrides of a topic."""
        path = znodes.topic_config_path(topic)
        found = self._zk.get_if_exists(path)
        return {} if found is None else _decoded(znodes.decode_topic_config, path, found[0]) or {}

    # State nodes

    def write_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> tuple[dict[TopicPartition, LeaderAndIsr], dict[TopicPartition, LeaderAndIsr]]:
        """Set each state if its node still has version ``zk_version - 1``.

        Returns the states as written, with their new versions, and for the others the states that
        were written by another process meanwhile. A partition in neither has no (readable) node.
        """
        written: dict[TopicPartition, LeaderAndIsr] = {}
        changed: dict[TopicPartition, LeaderAndIsr] = {}
        for chunk in _chunks(list(states.items()), WRITES):
            left = dict(chunk)
            while left:
                try:
                    stats = self._fenced([_set_state(*item) for item in left.items()])
                except (BadVersionError, NoNodeError):
                    left = self._still_due(left, written, changed)
                    continue
                for (partition, state), stat in zip(left.items(), stats, strict=True):
                    written[partition] = state._replace(zk_version=stat.version)
                break
        return written, changed

    def _still_due(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        written: dict[TopicPartition, LeaderAndIsr],
        changed: dict[TopicPartition, LeaderAndIsr],
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """After a refused transaction: those of ``states`` whose nodes have not changed.

        The others are added to ``written``, if an earlier try had succeeded, or to ``changed``.
        """
        due: dict[TopicPartition, LeaderAndIsr] = {}
        for partition, stored in self.states(list(states)).items():
            state = states[partition]
            if stored.zk_version == state.zk_version - 1:
                due[partition] = state
            elif stored[:-1] == state[:-1]:
                written[partition] = stored
            else:
                changed[partition] = stored
        return due

    def create_states(
        self, states: Mapping[TopicPartition, LeaderAndIsr]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Create state nodes and their parents; returns those that were created, by partition."""
        created: dict[TopicPartition, LeaderAndIsr] = {}
        for topic in dict.fromkeys(partition.topic for partition in states):
            try:
                self._zk.create(znodes.topic_partitions_path(topic))
            except (NodeExistsError, NoNodeError):
                pass
        for chunk in _chunks(list(states.items()), WRITES // 2):
            try:
                self._fenced([op for item in chunk for op in (_parent(item[0]), _create(*item))])
                created.update(chunk)
            except (NodeExistsError, NoNodeError):
                created.update(item for item in chunk if self._create_state(*item))
        return created

    def _create_state(self, partition: TopicPartition, state: LeaderAndIsr) -> bool:
        try:
            self._fenced([_parent(partition)])
        except NodeExistsError:
            pass
        except NoNodeError:
            return False
        try:
            self._fenced([_create(partition, state)])
        except (NodeExistsError, NoNodeError):
            stored = self.states([partition]).get(partition)
            return stored is not None and stored[:-1] == state[:-1]  # an earlier try had succeeded
        return True

    # Topics

    def write_assignment(
        self, partition: TopicPartition, replicas: Sequence[int]
    ) -> tuple[int, ...]:
        """Replace the replicas of one partition and return the old ones.

        The same transaction notes the removed replicas for deletion, and removes the notes of
        added ones. Raises NoNodeError if the topic does not exist, and MalformedNodeError.
        """
        path = znodes.topic_path(partition.topic)
        while True:
            data, stat = self._zk.get(path)
            assigned = znodes.decode_topic(path, data)
            before = assigned.get(partition.partition, ())
            assigned[partition.partition] = tuple(replicas)
            notes = self._notes(partition, set(before), set(replicas))
            try:
                self._fenced([SetOp(path, znodes.encode_topic(assigned), stat.version), *notes])
                return before
            except (BadVersionError, NodeExistsError):
                logger.debug("%s changed while it was being updated", path)

    def _notes(self, partition: TopicPartition, before: set[int], after: set[int]) -> list[Op]:
        """The operations that update the notes of replicas to delete when an assignment changes."""
        notes: list[Op] = []
        if before - after:
            self._zk.ensure_path(znodes.DELETE_REPLICAS)
        for broker_id in sorted(before ^ after):
            path = znodes.delete_replica_path(*partition, broker_id)
            noted = self._zk.exists(path) is not None
            if broker_id in before and not noted:
                notes.append(CreateOp(path))
            elif broker_id in after and noted:
                notes.append(DeleteOp(path))
        return notes

    def replicas_to_delete(self) -> set[PartitionAndReplica]:
        """Replicas that were removed from assignments and that brokers have not deleted yet."""
        found: set[PartitionAndReplica] = set()
        for name in self._zk.children_if_exists(znodes.DELETE_REPLICAS):
            try:
                partition, broker_id = znodes.replica_to_delete(name)
            except MalformedNodeError as error:
                logger.error("Ignoring %s", error)
                continue
            found.add(PartitionAndReplica(*partition, broker_id))
        return found

    def forget_replicas_to_delete(self, replicas: Iterable[PartitionAndReplica]) -> None:
        """Remove the notes of replicas that have been deleted or are assigned again."""
        for replica in replicas:
            try:
                self._fenced([DeleteOp(znodes.delete_replica_path(*replica))])
            except NoNodeError:
                logger.debug("%s was not noted as to be deleted", replica)

    def still_assigned(
        self, replicas: Collection[PartitionAndReplica]
    ) -> dict[PartitionAndReplica, bool]:
        """Whether the topics, as stored now, list ``replicas``.

        Replicas whose partition is not listed, or whose topic cannot be read, are left out. A
        deleted topic lists no replicas.
        """
        topics = sorted({replica.topic for replica in replicas})
        paths = [znodes.topic_path(topic) for topic in topics]
        assigned: dict[TopicPartition, tuple[int, ...]] = {}
        gone: set[str] = set()
        for topic, path, found in zip(topics, paths, self._zk.get_all(paths), strict=True):
            if found is None:
                gone.add(topic)
                continue
            for partition, ids in (_decoded(znodes.decode_topic, path, found[0]) or {}).items():
                assigned[TopicPartition(topic, partition)] = ids
        return {
            replica: replica.replica in assigned.get(replica.topic_partition, ())
            for replica in replicas
            if replica.topic in gone or assigned.get(replica.topic_partition)
        }

    def delete_topic(self, topic: str) -> None:
        """Delete the offsets that groups have in ZooKeeper for a topic, the topic's nodes and its
        configuration, and last the request to delete it."""
        # Before the topic: a controller that takes over half-way finds the topic and begins again,
        # and no other process can have created the name again.
        self._delete_offsets(topic)
        self._delete_tree(znodes.topic_path(topic), znodes.topic_config_path(topic))
        self._delete_tree(znodes.delete_topic_path(topic))

    def _delete_offsets(self, topic: str) -> None:
        """Delete what groups have committed to ZooKeeper for a topic."""
        groups = self._zk.children_if_exists(znodes.CONSUMERS)
        paths = [znodes.consumer_topic_offsets_path(group, topic) for group in groups]
        for path, found in zip(paths, self._zk.get_all(paths), strict=True):
            if found is None:
                continue
            try:
                self._delete_tree(path)
                logger.info("Deleted %s", path)
            except NoAuthError as error:
                logger.warning("Could not delete %s: %s", path, error)

    def delete_topic_request(self, topic: str) -> None:
        """Delete the request to delete a topic that does not exist."""
        self._delete_tree(znodes.delete_topic_path(topic))

    def _delete_tree(self, path: str, leaf: str | None = None) -> None:
        """Delete a node and its descendants, children first; repeats while nodes are added. A node
        ``leaf`` goes in the same transaction as the node itself."""
        while True:
            paths = self._tree(path)
            if leaf is not None:
                paths[-1:-1] = self._tree(leaf)
            try:
                for chunk in _chunks(paths, WRITES):
                    self._fenced([DeleteOp(node) for node in chunk])
                return
            except (NotEmptyError, NoNodeError):
                logger.debug("%s changed while it was being deleted", path)

    def _tree(self, path: str) -> list[str]:
        """A node and its descendants, deepest nodes first; empty if it does not exist."""
        level = [] if self._zk.exists(path) is None else [path]
        found: list[str] = []
        while level:
            found = [*level, *found]
            below = zip(level, self._zk.children_of_all(level), strict=True)
            level = [f"{parent}/{name}" for parent, names in below for name in names]
        return found

    # Administrative requests

    def finish_reassignments(self, partitions: Collection[TopicPartition]) -> None:
        """Remove ``partitions`` from the reassignment node; delete the node when it is empty."""
        path = znodes.REASSIGN_PARTITIONS
        while True:
            found = self._zk.get_if_exists(path)
            if found is None:
                return
            data, stat = found
            listed = _decoded(znodes.decode_reassignment, path, data)
            if listed is None:
                return
            left = {tp: replicas for tp, replicas in listed.items() if tp not in partitions}
            if left and len(left) == len(listed):
                return
            op: Op = DeleteOp(path, stat.version)
            if left:
                op = SetOp(path, znodes.encode_reassignment(left), stat.version)
            try:
                self._fenced([op])
                return
            except (BadVersionError, NoNodeError):
                logger.debug("%s changed while it was being updated", path)

    def delete_preferred_elections(self) -> None:
        try:
            self._fenced([DeleteOp(znodes.PREFERRED_REPLICA_ELECTION)])
        except NoNodeError:
            logger.debug("%s was gone already", znodes.PREFERRED_REPLICA_ELECTION)

    def _fenced(self, ops: Sequence[Op]) -> list[Any]:
        return election.fenced(self._zk, self._context.fence, ops)


def _chunks(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _decoded(decode: Callable[[str, bytes], T], path: str, data: bytes) -> T | None:
    """The parsed payload; None if it is malformed."""
    try:
        return decode(path, data)
    except MalformedNodeError as error:
        logger.error("Ignoring %s: %s", path, error)
        return None


def _state(path: str, data: bytes, version: int) -> LeaderAndIsr | None:
    node = _decoded(znodes.decode_partition_state, path, data)
    if node is None:
        return None
    return LeaderAndIsr(node.leader, node.leader_epoch, node.isr, node.controller_epoch, version)


def _encoded(state: LeaderAndIsr) -> bytes:
    return znodes.encode_partition_state(
        znodes.PartitionStateNode(
            state.leader, state.leader_epoch, state.controller_epoch, state.isr
        )
    )


def _set_state(partition: TopicPartition, state: LeaderAndIsr) -> SetOp:
    path = znodes.partition_state_path(*partition)
    return SetOp(path, _encoded(state), state.zk_version - 1)


def _parent(partition: TopicPartition) -> CreateOp:
    return CreateOp(znodes.partition_path(*partition))


def _create(partition: TopicPartition, state: LeaderAndIsr) -> CreateOp:
    return CreateOp(znodes.partition_state_path(*partition), _encoded(state))
