"""A group's nodes in ZooKeeper: its members, their topics and partitions, and the owners.

Mirrors kafka.consumer.TopicCount, AssignmentContext and the node handling of
ZookeeperConsumerConnector. Reads arm watches first. The connector decides how to act on an event,
and when.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kafka08.common import PLAINTEXT, Broker, TopicPartition
from kafka08.consumer.assignors import Assignment, thread_ids
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.errors import PartitionOwnedError
from kafka08.consumer.filters import filter_for
from kafka08.errors import KafkaError
from kafka08.runtime import Event, GeventRuntime, Runtime
from kafka08.zookeeper import access_of
from zk import registry, znodes
from zk.client import ZkClient
from zk.errors import NodeExistsError
from zk.watches import WatchSet
from zk.znodes import STATIC, ConsumerRegistration, MalformedNodeError

MAX_STREAMS = 100_000
"""Limit of one member over all its topics: every member creates a name for each stream."""

logger = logging.getLogger("kafka.consumer.ZookeeperConsumerConnector")


def zookeeper_session(config: ConsumerConfig, runtime: Runtime) -> ZkClient:
    """A client that is connected. Raises ConfigError, ZkConnectionError."""
    logger.info("Connecting to zookeeper instance at %s", config.zookeeper_connect)
    return ZkClient(
        config.zookeeper_connect,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
        gevent=isinstance(runtime, GeventRuntime),
        access=access_of(config),
    ).start()


class GroupView(NamedTuple):
    """The data from which an assignment is computed.

    ``consumers``: topic -> thread ids of all members; ``partitions``: topic -> ids; ``members``:
    consumer id -> raw registration.
    """

    consumers: dict[str, list[str]]
    partitions: dict[str, list[int]]
    members: dict[str, bytes]


def topics_of(
    registration: ConsumerRegistration, topics: Iterable[str], *, exclude_internal: bool
) -> dict[str, int]:
    """Topic -> number of streams of a registration; filters are expanded against ``topics``.

    Raises ConfigError for a regex that cannot be evaluated, KafkaError for too many streams.
    """
    if registration.pattern == STATIC or not registration.subscription:
        return _bounded(registration.subscription)
    ((regex, streams),) = list(registration.subscription.items())[:1]
    selected = filter_for(registration.pattern, regex).select(
        topics, exclude_internal=exclude_internal
    )
    return _bounded(dict.fromkeys(selected, streams))


def _bounded(subscribed: dict[str, int]) -> dict[str, int]:
    streams = sum(max(count, 0) for count in subscribed.values())
    if streams > MAX_STREAMS:
        raise KafkaError(f"{streams} streams are more than the {MAX_STREAMS} of one member")
    return subscribed


class GroupNodes:
    """The nodes of ``group`` on behalf of the member ``consumer_id``.

    ``post`` is called when something changed, without details.
    """

    def __init__(
        self,
        zk: ZkClient,
        group: str,
        consumer_id: str,
        post: Callable[[object], None],
        *,
        exclude_internal: bool = True,
        protocol: str = PLAINTEXT,
    ) -> None:
        self._zk = zk
        self._group = group
        self._consumer_id = consumer_id
        self._exclude_internal = exclude_internal
        self._protocol = protocol
        self._post = post
        self._watches = WatchSet(zk, post)

    # --- brokers

    def brokers(self) -> list[Broker]:
        """The live brokers, by their endpoints of the protocol. Those that vanish during the read,
        have malformed nodes or no such endpoint are left out."""
        return registry.live_brokers(self._zk, self._protocol)

    def watch_brokers(self) -> bool:
        """Arm a watch for new brokers; returns whether there are some already."""
        return bool(self._watches.children(znodes.BROKER_IDS, "brokers"))

    # --- membership

    def register(self, registration: ConsumerRegistration, stopping: Event) -> None:
        """Become a member, unless ``stopping`` is set before that.

        Waits until a node of another member with the same id, or of our expired session, is gone.
        """
        path = znodes.consumer_id_path(self._group, self._consumer_id)
        data = znodes.encode_consumer(registration)
        while not stopping.is_set() and not self._create_ephemeral(path, data):
            logger.info("I wrote this conflicted ephemeral node [%s] a while back", path)
            stopping.wait(self._zk.session_timeout_ms / 1000)

    def is_registered(self) -> bool:
        """Whether a registration with our id exists, ours or another member's."""
        return self._zk.exists(znodes.consumer_id_path(self._group, self._consumer_id)) is not None

    def _create_ephemeral(self, path: str, data: bytes) -> bool:
        """Whether the node has our data and belongs to our session."""
        while True:
            try:
                self._zk.create(path, data, ephemeral=True, makepath=True)
                return True
            except NodeExistsError:
                found = self._zk.get_if_exists(path)
            if found is None:
                continue
            if found[1].ephemeral_owner != self._zk.session_id:
                return False
            if found[0] == data:
                return True
            # Our own node, left by an attempt that could not clean up.
            self._zk.delete_if_exists(path)

    # --- the view

    def view(self) -> GroupView:
        """Read the group and arm watches on all of it.

        Raises MalformedNodeError for a malformed registration or topic, and KafkaError if
        this member is not registered.
        """
        members = self._members()
        registrations = {
            consumer: self._registration(consumer, data) for consumer, data in members.items()
        }
        if self._consumer_id not in registrations:
            raise KafkaError(f"{self._consumer_id} is not registered in group {self._group}")
        topics: list[str] = []
        if any(r.pattern != STATIC for r in registrations.values()):
            topics = self._watches.children(znodes.BROKER_TOPICS, "topics") or []
        consumers: dict[str, list[str]] = {}
        for consumer, registration in sorted(registrations.items()):
            subscribed = self._subscribed(consumer, registration, topics)
            for topic, streams in subscribed.items():
                consumers.setdefault(topic, []).extend(thread_ids(consumer, streams))
        partitions = {topic: self._partitions(topic) for topic in consumers}
        return GroupView(consumers, partitions, members)

    def _members(self) -> dict[str, bytes]:
        path = znodes.consumer_ids_path(self._group)
        members = {}
        for consumer in self._watches.children(path, "members") or []:
            found = self._zk.get_if_exists(f"{path}/{consumer}")
            if found is not None:
                members[consumer] = found[0]
        return members

    def _registration(self, consumer: str, data: bytes) -> ConsumerRegistration:
        path = znodes.consumer_id_path(self._group, consumer)
        try:
            return znodes.decode_consumer(path, data)
        except MalformedNodeError as error:
            raise _unusable(path, error.reason) from None

    def _subscribed(
        self, consumer: str, registration: ConsumerRegistration, topics: list[str]
    ) -> dict[str, int]:
        try:
            return topics_of(registration, topics, exclude_internal=self._exclude_internal)
        except KafkaError as error:
            path = znodes.consumer_id_path(self._group, consumer)
            raise _unusable(path, str(error).rstrip(".")) from None

    def _partitions(self, topic: str) -> list[int]:
        path = znodes.topic_path(topic)
        found = self._watches.data(path, "topic")
        return [] if found is None else list(znodes.decode_topic(path, found[0]))

    # --- ownership

    def claim(self, assignment: Assignment) -> None:
        """Claim all of these partitions or none, and watch their owner nodes.

        Raises PartitionOwnedError if another member still owns one, whose node is watched too.
        """
        claimed = []
        try:
            for tp, thread in sorted(assignment.items()):
                path = znodes.consumer_owner_path(self._group, *tp)
                if not self._create_ephemeral(path, znodes.encode_owner(thread)):
                    logger.info(
                        "waiting for the partition ownership to be deleted: %d", tp.partition
                    )
                    owner = self._watches.data(path, "owner")
                    if owner is None:
                        self._post("owner")  # it was released a moment ago
                    raise PartitionOwnedError(self._owned_text(tp, path, owner))
                logger.info(
                    "%s successfully owned partition %d for topic %s",
                    thread,
                    tp.partition,
                    tp.topic,
                )
                claimed.append(tp)
            if not self.owns(assignment):
                raise PartitionOwnedError("The owner node of a partition just claimed was removed")
        except BaseException:
            try:
                self.release(claimed)
            except KafkaError as error:
                logger.warning("Partitions of a failed claim were not released: %s", error)
            raise

    def _owned_text(self, tp: TopicPartition, path: str, found: tuple[bytes, int] | None) -> str:
        owner = "no member now" if found is None else found[0].decode(errors="replace")
        return (
            f"{tp} is still owned by {owner}; if there is no such member in "
            f"{znodes.consumer_ids_path(self._group)}, delete {path}"
        )

    def owns(self, assignment: Assignment) -> bool:
        """Whether all owner nodes still exist as claimed; watches them."""
        for tp, thread in assignment.items():
            path = znodes.consumer_owner_path(self._group, *tp)
            found = self._watches.data(path, "owner")
            if found is None or found[0] != znodes.encode_owner(thread):
                return False
        return True

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove our owner nodes.

        After the end of a session they are gone, and another member may have created new ones. The
        original would delete those.
        """
        for tp in partitions:
            path = znodes.consumer_owner_path(self._group, *tp)
            self._watches.forget(path)
            found = self._zk.get_if_exists(path)
            if found is None or found[1].ephemeral_owner != self._zk.session_id:
                continue
            self._zk.delete_if_exists(path)

    def forget_watches(self) -> None:
        self._watches.clear()


def _unusable(path: str, reason: str) -> MalformedNodeError:
    return MalformedNodeError(
        path,
        f"{reason}. No member of the group can compute its share while this registration exists: "
        "stop the consumer that wrote it, or delete the node",
    )


def share_of(consumer_threads: Mapping[str, object], assignment: Assignment) -> Assignment:
    """The part of an assignment that belongs to the given threads."""
    return {tp: thread for tp, thread in assignment.items() if thread in consumer_threads}
