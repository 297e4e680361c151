"""The groups of a cluster: who their members are, how far they are, and changes to them.

Members are in ZooKeeper, or a kafka08 broker is asked for them. Offsets are in both storages.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka08.client.cluster import ClusterClient, Endpoint, NoBrokerError, listeners_of
from kafka08.client.security import PLAIN, ClientSecurity, runtime_for
from kafka08.common import Broker, Closing, TopicPartition
from kafka08.errors import AdminOperationError, KafkaError, LaterCode, meaning_of
from kafka08.groups import members as group_members
from kafka08.groups import nodes
from kafka08.groups.members import Consumer, GroupMembers
from kafka08.groups.storage import CommittedOffsets, GroupStorage, Where
from kafka08.network.channel import Channel, Connect
from kafka08.protocol.admin_schemas import DescribedGroup, DescribeGroupsRequest
from kafka08.runtime import Runtime
from zk import registry, znodes
from zk.client import ZkClient
from zk.errors import NotEmptyError

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

_SILENT_S = 60.0
UNSEEN = "Brokers of 0.8.2.2 do not report the members of a group. Use --zookeeper instead."


class MembersUnseenError(AdminOperationError):
    """Only brokers can be asked, and those do not know the members of a group."""

    java_class = "org.apache.kafka.common.errors.UnsupportedVersionException"


class GroupProgress(NamedTuple):
    """How far a group is in a partition, and who owns it; without a partition, a member that owns
    none. None: nothing is stored, no leader answered, or no member owns it."""

    partition: TopicPartition | None
    offset: int | None = None
    log_end: int | None = None
    consumer: Consumer | None = None

    @property
    def lag(self) -> int | None:
        if self.offset is None or self.log_end is None:
            return None
        return self.log_end - self.offset


class GroupAdmin(Closing):
    """Groups as seen through ``zk``, or without it through the brokers of ``bootstrap`` alone.

    ``timeout_ms`` bounds the wait for a coordinator. Calls raise OSError and KafkaError. A context
    manager that closes its connections to brokers.
    """

    def __init__(
        self,
        zk: ZkClient | None = None,
        bootstrap: Sequence[Endpoint] = (),
        *,
        timeout_ms: int = 5000,
        request_timeout_ms: int = 30000,
        client_id: str = "",
        security: ClientSecurity = PLAIN,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
    ) -> None:
        self._runtime = runtime or runtime_for(security)
        self.clock = self._runtime.clock
        self.zk = zk
        protocol = security.security_protocol

        self.cluster = ClusterClient(
            bootstrap
            if zk is None
            else lambda: listeners_of(registry.live_brokers(zk, protocol), protocol),
            client_id=client_id,
            timeout_ms=request_timeout_ms,
            runtime=self._runtime,
            channel=channel,
        )
        self._brokers_describe = True
        self._silent: dict[Broker, float] = {}  # until when each is not asked for members
        self.storage = GroupStorage(self.cluster, zk, timeout_ms=timeout_ms, runtime=self._runtime)

    def close(self) -> None:
        self.cluster.close()

    # --- reading

    def groups(self) -> list[str]:
        """Those with nodes in ZooKeeper, where it is seen, those with offsets in Kafka, and those
        that brokers coordinate."""
        in_zookeeper = [] if self.zk is None else nodes.list_groups(self.zk)
        return sorted({*in_zookeeper, *self.storage.groups()})

    def members(self, group: str) -> GroupMembers | None:
        """None where they cannot be seen: brokers of 0.8.2.2 do not report them."""
        if self.zk is not None:
            found = group_members.read_group(self.zk, group)
            return found if found.members else self._coordinated(group) or found
        coordinated = self._coordinated(group)
        if coordinated is not None:
            return coordinated
        described = self._described(group)
        if described is None:
            return None
        partitions: dict[str, list[int]] = {}
        for topic, partition in self.storage.partitions():
            partitions.setdefault(topic, []).append(partition)
        return group_members.from_described(described, partitions)

    def _described(self, group: str) -> DescribedGroup | None:
        """The answer of one broker; None if they do not describe groups, as those of 0.8.2.2."""
        if not self._brokers_describe:
            return None
        try:
            [described] = self.storage.any_broker(DescribeGroupsRequest([group])).groups
        except NoBrokerError:
            raise
        except (OSError, KafkaError) as error:
            logger.debug("Brokers do not describe groups: %s", error)
            self._brokers_describe = False
            return None
        if described.error:
            meaning = meaning_of(described.error)
            raise AdminOperationError(f"Group {group} was not described: {meaning}")
        return described  # type: ignore[no-any-return]

    def _coordinated(self, group: str) -> GroupMembers | None:
        """The members that the group's coordinator has; None for other groups."""
        try:
            coordinator = self.storage.coordinator(group)
        except (OSError, KafkaError) as error:
            logger.debug("Group %s has no coordinator now: %s", group, error)
            return None
        if self.clock.monotonic() < self._silent.get(coordinator, 0):
            return None
        try:
            response = self.cluster.call(coordinator, DescribeGroupsRequest([group]))
        except (OSError, KafkaError) as error:
            # One of 0.8.2.2 never does; another one may have been about to stop.
            logger.debug("The coordinator does not describe groups: %s", error)
            self._silent[coordinator] = self.clock.monotonic() + _SILENT_S
            return None
        [described] = response.groups
        return None if described.error else group_members.from_coordinator(described)

    def seen_members(self, group: str) -> GroupMembers:
        """Raises MembersUnseenError."""
        members = self.members(group)
        if members is None:
            raise MembersUnseenError(UNSEEN)
        return members

    def committed(self, group: str) -> dict[TopicPartition, CommittedOffsets]:
        """The offsets that the group stored for any existing partition."""
        return self.storage.committed(group, self.storage.partitions())

    def progress(
        self,
        group: str,
        members: GroupMembers | None,
        committed: Mapping[TopicPartition, CommittedOffsets],
    ) -> list[GroupProgress]:
        """Each partition that the group stored an offset for, owns or reads, in order; then the
        members that own none."""
        owners = {} if members is None else members.owners
        partitions = set(committed) | set(owners)
        if members is not None:
            partitions |= {
                TopicPartition(t, p) for t, ids in members.partitions.items() for p in ids
            }
        ends = self.storage.log_ends(sorted(partitions & set(self.storage.partitions())))
        rows = []
        for tp in sorted(partitions):
            stored = committed.get(tp)
            owner = owners.get(tp)
            row = GroupProgress(tp, stored and stored.offset, ends.get(tp))
            if members is not None and owner is not None:
                row = row._replace(consumer=members.row_of(group, nodes.consumer_of(owner)))
            rows.append(row)
        if members is not None:
            idle = [consumer for consumer, share in members.owned().items() if not share]
            rows += [GroupProgress(None, consumer=members.row_of(group, each)) for each in idle]
        return rows

    # --- writing

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Store next offsets in each storage the group uses; a new group's is that of the
        connection.

        A consumer with dual commit starts at the higher of its two offsets: one of them alone
        could not be set back.
        """
        committed = self.committed(group).values()
        in_zookeeper = any(stored.in_zookeeper is not None for stored in committed)
        in_kafka = any(stored.in_kafka is not None for stored in committed)
        if not in_zookeeper and not in_kafka:
            in_zookeeper, in_kafka = self.zk is not None, self.zk is None
        self.storage.commit(group, offsets, Where(in_zookeeper, in_kafka))

    def delete(self, group: str) -> None:
        """All there is of a group. Raises AdminOperationError with a code as its text."""
        committed = self.committed(group)
        if self.zk is None:
            if any(stored.in_zookeeper is not None for stored in committed.values()):
                raise AdminOperationError("it is in ZooKeeper. Use --zookeeper instead.")
            members = self.members(group)
            if members is not None and members.members:
                raise AdminOperationError("NON_EMPTY_GROUP")
            if not committed and (members is None or not members.exists):
                raise AdminOperationError("GROUP_ID_NOT_FOUND")
        else:
            coordinated = self._coordinated(group)
            if coordinated is not None and coordinated.members:
                raise AdminOperationError("NON_EMPTY_GROUP")
            self._delete_nodes(self.zk, group, bool(committed) or coordinated is not None)
        if self.storage.delete_group(group) == LaterCode.NON_EMPTY_GROUP:
            raise AdminOperationError("NON_EMPTY_GROUP")
        self._forget_in_kafka(group, self.committed(group))

    @staticmethod
    def _delete_nodes(client: ZkClient, group: str, has_offsets: bool) -> None:
        path = znodes.group_path(group)
        if client.exists(path) is None:
            if not has_offsets:
                raise AdminOperationError("GROUP_ID_NOT_FOUND")
            return
        try:
            # Not recursively: a member that is there, or just came, is a child.
            client.delete_if_exists(znodes.consumer_ids_path(group))
        except NotEmptyError:
            raise AdminOperationError("NON_EMPTY_GROUP") from None
        client.delete_recursive(path)

    def _forget_in_kafka(
        self, group: str, committed: Mapping[TopicPartition, CommittedOffsets]
    ) -> None:
        self.storage.forget_in_kafka(
            group, [tp for tp, stored in committed.items() if stored.in_kafka is not None]
        )

    def delete_topic(self, group: str, topic: str) -> None:
        """Delete a group's nodes of a topic, owners included; all nodes if it has no other topic.

        Needs ZooKeeper. Raises AdminOperationError with a code as its text.
        """
        client = self._zookeeper()
        members = group_members.read_group(client, group)
        of_topic = {tp: c for tp, c in self.committed(group).items() if tp.topic == topic}
        if not members.exists and not of_topic:
            raise AdminOperationError("GROUP_ID_NOT_FOUND")
        topics = set(client.children_if_exists(znodes.consumer_offsets_path(group)))
        topics |= {tp.topic for tp in members.owners}
        if topics == {topic}:
            self.delete(group)
            return
        if topic in members.threads:
            raise AdminOperationError("NON_EMPTY_GROUP")
        client.delete_recursive(znodes.consumer_topic_owners_path(group, topic))
        client.delete_recursive(znodes.consumer_topic_offsets_path(group, topic))
        self._forget_in_kafka(group, of_topic)

    def delete_offsets(
        self, group: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, str]:
        """How it went, by partition. Topics that live members read keep theirs."""
        members = self.members(group)
        committed = self.storage.committed(group, partitions)
        results = {}
        for tp in partitions:
            stored = committed.get(tp, CommittedOffsets())
            if members is not None and tp.topic in members.threads:
                results[tp] = "Error: GROUP_SUBSCRIBED_TO_TOPIC"
            elif self.zk is None and stored.in_zookeeper is not None:
                results[tp] = "Error: it is in ZooKeeper. Use --zookeeper instead."
            else:
                results[tp] = "Successful"
        gone = {tp: c for tp, c in committed.items() if results[tp] == "Successful"}
        if self.zk is not None:
            for tp in gone:
                self.zk.delete_if_exists(znodes.consumer_offset_path(group, *tp))
        self._forget_in_kafka(group, gone)
        return results

    def _zookeeper(self) -> ZkClient:
        if self.zk is None:
            raise KafkaError("This needs --zookeeper")
        return self.zk
