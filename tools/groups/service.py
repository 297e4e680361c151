"""The actions of kafka-consumer-groups: list, describe, reset and delete groups.

Members are read from ZooKeeper, or asked of a kafka08 broker. Offsets are read from both storages.
``consumer_groups`` has the command line, ``tables`` the printing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from kafka08.admin import InvalidArgumentError
from kafka08.client.admin import AdminClient, AdminNotServedError
from kafka08.client.cluster import ClusterClient, Endpoint, listeners_of
from kafka08.client.security import PLAIN, ClientSecurity, runtime_for
from kafka08.common import Broker, TopicPartition
from kafka08.errors import AdminOperationError, KafkaError, LaterCode
from kafka08.network.channel import Channel, Connect
from kafka08.protocol.admin_schemas import DescribeGroupsRequest
from kafka08.runtime import Runtime
from kafka08.zookeeper_settings import UNSECURED, ZooKeeperSecurity
from tools import admin_command
from tools.groups import members as group_members
from tools.groups import reset, tables
from tools.groups.coordinated import from_coordinator
from tools.groups.members import DEAD, EMPTY, REBALANCING, GroupMembers
from tools.groups.reset import Plan
from tools.groups.storage import Committed, GroupStorage, Where
from tools.groups.tables import Progress
from tools.options import Arguments
from zk import registry, znodes
from zk.client import ZkClient
from zk.errors import NoNodeError, NotEmptyError

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

CLIENT_ID = "ConsumerGroupCommand"
_SILENT_S = 60.0
UNSEEN = "Brokers of 0.8.2.2 do not tell the members of a group. Use --zookeeper instead."


class MembersUnseenError(AdminOperationError):
    """Only brokers can be asked, and those do not know the members of a group."""

    java_class = "org.apache.kafka.common.errors.UnsupportedVersionException"


class GroupService:
    """Groups as seen through ``zookeeper``, or through brokers alone.

    ``zookeeper``: a connect string, or a client that is connected. Calls raise
    OSError and KafkaError. A context manager that closes.
    """

    def __init__(
        self,
        zookeeper: str | ZkClient | None = None,
        bootstrap: Sequence[Endpoint] = (),
        *,
        timeout_ms: int = 5000,
        request_timeout_ms: int = 30000,
        client_id: str = CLIENT_ID,
        security: ClientSecurity = PLAIN,
        zookeeper_security: ZooKeeperSecurity = UNSECURED,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
    ) -> None:
        self._runtime = runtime or runtime_for(security)
        self.zk = client = (
            admin_command.connect(zookeeper, zookeeper_security)
            if isinstance(zookeeper, str)
            else zookeeper
        )

        protocol = security.security_protocol

        def cluster(channel: Connect) -> ClusterClient:
            return ClusterClient(
                bootstrap
                if client is None
                else lambda: listeners_of(registry.live_brokers(client, protocol), protocol),
                client_id=client_id,
                timeout_ms=request_timeout_ms,
                runtime=self._runtime,
                channel=channel,
            )

        self._cluster = cluster(channel)
        self._timed = cluster(partial(channel, api_versions=True))
        self._admin = AdminClient(
            list(bootstrap),
            client_id=client_id,
            timeout_ms=request_timeout_ms,
            runtime=self._runtime,
            channel=channel,
        )
        self._brokers_tell = True
        self._silent: dict[Broker, float] = {}  # until when each is not asked for members
        self.storage = GroupStorage(
            self._cluster, self._timed, self.zk, timeout_ms=timeout_ms, runtime=self._runtime
        )

    def __enter__(self) -> GroupService:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._cluster.close()
        self._timed.close()
        self._admin.close()
        if self.zk is not None:
            self.zk.close()

    # --- looking

    def groups(self) -> list[str]:
        """Those with nodes in ZooKeeper, where it is seen, those with offsets in Kafka, and those
        that brokers coordinate."""
        nodes = set() if self.zk is None else set(group_members.list_groups(self.zk))
        return sorted(nodes | self.storage.groups())

    def members(self, group: str) -> GroupMembers | None:
        """None where they cannot be seen: brokers of 0.8.2.2 do not tell them."""
        if self.zk is not None:
            found = group_members.read_group(self.zk, group)
            return found if found.members else self._coordinated(group) or found
        coordinated = self._coordinated(group)
        if coordinated is not None:
            return coordinated
        if not self._brokers_tell:
            return None
        try:
            described = self._admin.describe_group(group)
        except AdminNotServedError:
            self._brokers_tell = False
            return None
        partitions: dict[str, list[int]] = {}
        for topic, partition in self.storage.partitions():
            partitions.setdefault(topic, []).append(partition)
        return group_members.from_described(described, partitions)

    def _coordinated(self, group: str) -> GroupMembers | None:
        """The members that the group's coordinator has; None for other groups."""
        clock = self._runtime.clock
        try:
            coordinator = self.storage.coordinator(group)
        except (OSError, KafkaError) as error:
            logger.debug("Group %s has no coordinator now: %s", group, error)
            return None
        if clock.monotonic() < self._silent.get(coordinator, 0):
            return None
        try:
            response = self._cluster.call(coordinator, DescribeGroupsRequest([group]))
        except (OSError, KafkaError) as error:
            # One of 0.8.2.2 never does; another one may have been about to stop.
            logger.debug("The coordinator does not describe groups: %s", error)
            self._silent[coordinator] = clock.monotonic() + _SILENT_S
            return None
        [described] = response.groups
        return None if described.error else from_coordinator(described)

    def seen_members(self, group: str) -> GroupMembers:
        """Raises MembersUnseenError."""
        members = self.members(group)
        if members is None:
            raise MembersUnseenError(UNSEEN)
        return members

    def committed(self, group: str) -> dict[TopicPartition, Committed]:
        """The offsets that the group stored for any existing partition."""
        return self.storage.committed(group, self.storage.partitions())

    def describe_offsets(self, group: str) -> None:
        members, committed = self.members(group), self.committed(group)
        if not self._is_there(group, members, committed):
            return
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
            row = Progress(tp, stored and stored.offset, ends.get(tp))
            if members is not None and owner is not None:
                row = row._replace(consumer=members.row_of(group, group_members.consumer_of(owner)))
            rows.append(row)
        if members is not None:
            idle = [consumer for consumer, share in members.owned().items() if not share]
            rows += [Progress(None, consumer=members.row_of(group, each)) for each in idle]
        tables.print_progress(group, rows)

    def describe_members(self, group: str, *, verbose: bool) -> None:
        members = self.seen_members(group)
        if not self._is_there(group, members, {} if members.members else self.committed(group)):
            return
        shares = members.owned()
        rows = [(members.row_of(group, each), shares[each]) for each in members.members]
        if rows:
            tables.print_members(group, rows, verbose=verbose)

    def describe_state(self, group: str) -> None:
        members = self.seen_members(group)
        if self._is_there(group, members, {} if members.exists else self.committed(group)):
            coordinator = self.storage.coordinator(group)
            state = EMPTY if members.state == DEAD else members.state
            strategy = members.strategy
            tables.print_state(group, coordinator, strategy, state, len(members.members))

    @staticmethod
    def _is_there(
        group: str, members: GroupMembers | None, committed: Mapping[TopicPartition, Committed]
    ) -> bool:
        """False for a group nobody knows; says so, and what else is worth saying."""
        if not committed and (members is None or not members.exists):
            print(f"Error: Consumer group '{group}' does not exist.")
            return False
        if members is not None and members.state in (EMPTY, DEAD):
            print(f"Consumer group '{group}' has no active members.", file=sys.stderr)
        elif members is not None and members.state == REBALANCING:
            print(f"Warning: Consumer group '{group}' is rebalancing.", file=sys.stderr)
        return True

    # --- steering

    def plan_reset(self, groups: Sequence[str], args: Arguments) -> Plan:
        """The new offsets of each group; groups with live members are refused by name.

        Raises InvalidArgumentError for a scope or scenario that makes no sense.
        """
        plan: Plan = {}
        if args.has("from-file"):
            text = admin_command.read_file(args.value("from-file")).decode(errors="replace")
            wanted = reset.parse_plan(text, groups)
            for group in groups:
                if group in wanted and self._may_be_reset(group):
                    self._check_exist(wanted[group])
                    plan[group] = reset.clamp(self.storage, wanted[group])
            return plan
        now_ms = self._runtime.clock.millis()
        for group in groups:
            if self._may_be_reset(group):
                partitions = self._scope(group, args)
                plan[group] = reset.new_offsets(self.storage, group, args, partitions, now_ms)
        return plan

    def _may_be_reset(self, group: str) -> bool:
        members = self.members(group)
        if members is None or not members.members:
            return True
        print(
            f"Error: Assignments can only be reset if the group '{group}' is inactive, "
            f"but the current state is {members.state}."
        )
        return False

    def _scope(self, group: str, args: Arguments) -> list[TopicPartition]:
        if args.has("all-topics"):
            return sorted(self.committed(group))
        return reset.parse_partitions(args.values("topic"), self.storage.partitions)

    def _check_exist(self, partitions: Mapping[TopicPartition, int]) -> None:
        known = set(self.storage.partitions({tp.topic for tp in partitions}))
        for tp in partitions:
            if tp not in known:
                raise InvalidArgumentError(f"Partition {tp} doesn't exist")

    def execute(self, plan: Plan) -> None:
        """Write it, to each storage the group uses; a new group's is that of the connection.

        A consumer with dual commit starts at the higher of its two offsets: one of them alone
        could not be set back.
        """
        for group, offsets in plan.items():
            if not self._may_be_reset(group):
                continue
            if self.zk is None and not self._brokers_tell:
                print(
                    f"WARN: Whether group '{group}' has members was not checked: brokers of "
                    "0.8.2.2 do not tell, --zookeeper does.",
                    file=sys.stderr,
                )
            self.storage.commit(group, offsets, self._where(group))

    def _where(self, group: str) -> Where:
        committed = self.committed(group).values()
        in_zookeeper = any(stored.in_zookeeper is not None for stored in committed)
        in_kafka = any(stored.in_kafka is not None for stored in committed)
        if not in_zookeeper and not in_kafka:
            return Where(self.zk is not None, self.zk is None)
        return Where(in_zookeeper, in_kafka)

    # --- deleting

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
            client.delete(znodes.consumer_ids_path(group))
        except NoNodeError:
            pass
        except NotEmptyError:
            raise AdminOperationError("NON_EMPTY_GROUP") from None
        client.delete_recursive(path)

    def _forget_in_kafka(self, group: str, committed: Mapping[TopicPartition, Committed]) -> None:
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
        topics = group_members.topics_with_offsets(client, group)
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
            stored = committed.get(tp, Committed())
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
