"""Consumer groups and their lags by API v3, in ZooKeeper and on brokers that coordinate them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.groups import nodes
from kafka08.groups.admin import GroupAdmin
from kafka08.groups.members import GroupMembers, read_group
from kafka08.groups.storage import CommittedOffsets
from kafka08.rest.calls import Call, Route, Row
from kafka08.rest.cluster import Cluster
from kafka08.rest.errors import plain
from kafka08.rest.v3.admin import CLUSTER, AdminV3, Links

_GROUP = f"{CLUSTER}/consumer-groups/<group>"
_LAG = f"{_GROUP}/lags/<topic>/partitions/<int:partition>"


class ShownLag(NamedTuple):
    consumer_group_id: str
    topic_name: str
    partition_id: int
    current_offset: int
    log_end_offset: int
    lag: int
    consumer_id: str
    instance_id: None
    client_id: str


class FoundGroup(NamedTuple):
    """A group as it is now. ``is_coordinated``: a broker keeps its offsets, or its members."""

    id: str
    members: GroupMembers
    is_coordinated: bool


class GroupsV3:
    """``topics``: the handlers that know the cluster's id.

    Brokers are asked about groups that they know only: the question about another one would have
    them create the topic of offsets.
    """

    def __init__(self, cluster: Cluster, groups: GroupAdmin, topics: AdminV3) -> None:
        self._zk = cluster.zk
        self._groups = groups
        self._get = topics.get
        self._listing = topics.listing

    def routes(self) -> list[Route]:
        get, listing = self._get, self._listing
        groups, one = f"{CLUSTER}/consumer-groups", f"{_GROUP}/consumers/<consumer>"
        shares, kind = f"{one}/assignments", "KafkaConsumerAssignmentList"
        return [
            listing(groups, "groups.list", "KafkaConsumerGroupList", self._all),
            get(_GROUP, "groups.get", self._group),
            listing(f"{_GROUP}/consumers", "consumers.list", "KafkaConsumerList", self._consumers),
            get(one, "consumers.get", self._consumer),
            listing(shares, "consumers.assignments", kind, self._assignments),
            listing(f"{_GROUP}/lags", "lags.list", "KafkaConsumerLagList", self._lags),
            get(_LAG, "lags.get", self._lag),
            get(f"{_GROUP}/lag-summary", "lags.summary", self._summary),
        ]

    # --- groups and consumers

    def _found(self, group: str, coordinated: set[str]) -> FoundGroup:
        members = None
        if group in coordinated:
            members = self._groups.members(group)
        return FoundGroup(group, members or read_group(self._zk, group), group in coordinated)

    def _one(self, call: Call) -> FoundGroup:
        """Raises RestError 404."""
        group: str = call.args["group"]
        coordinated = self._groups.storage.groups()
        is_known = group in coordinated or group in nodes.list_groups(self._zk)
        if group in (".", "..") or not is_known:
            raise plain(404, f"Consumer group {group} cannot be found.")
        return self._found(group, coordinated)

    def _all(self, call: Call, links: Links) -> Iterator[Row]:
        coordinated = self._groups.storage.groups()
        for group in sorted({*coordinated, *nodes.list_groups(self._zk)}):
            yield self._shown(links, self._found(group, coordinated))

    def _group(self, call: Call, links: Links) -> Row:
        return self._shown(links, self._one(call))

    def _shown(self, links: Links, found: FoundGroup) -> Row:
        group, members = found.id, found.members
        coordinator = None
        if found.is_coordinated:
            broker = self._groups.storage.coordinator(group)
            coordinator = links.related("brokers", broker.id)
        values = {
            "consumer_group_id": group,
            "is_simple": found.is_coordinated and not members.exists,
            "partition_assignor": members.strategy or "",
            "state": _words(members.state),
            "coordinator": coordinator,  # None: members agree by ZooKeeper
            "consumers": links.related("consumer-groups", group, "consumers"),
            "lag_summary": links.related("consumer-groups", group, "lag-summary"),
        }
        return links.entry("KafkaConsumerGroup", ("consumer-group", group), values)

    def _consumers(self, call: Call, links: Links) -> list[Row]:
        found = self._one(call)
        return [_shown_consumer(links, found, member) for member in found.members.members]

    def _consumer(self, call: Call, links: Links) -> Row:
        found = self._one(call)
        return _shown_consumer(links, found, _member(call, found))

    def _assignments(self, call: Call, links: Links) -> Iterator[Row]:
        found = self._one(call)
        member = _member(call, found)
        for tp in found.members.owned()[member]:
            values = {
                "consumer_group_id": found.id,
                "consumer_id": member,
                "topic_name": tp.topic,
                "partition_id": tp.partition,
                "partition": links.related("topics", tp.topic, "partitions", tp.partition),
                "lag": links.related(*_lag_of(found.id, tp)),
            }
            place = ("consumer-group", found.id, "consumer", member)
            own = links.of("consumer-groups", found.id, "consumers", member, "assignments")
            yield links.entry("KafkaConsumerAssignment", place, values, own)

    # --- lags

    def _committed(self, found: FoundGroup) -> Mapping[TopicPartition, CommittedOffsets]:
        if found.is_coordinated:
            return self._groups.committed(found.id)
        stored = nodes.offsets(self._zk, [found.id])[found.id]
        return {tp: CommittedOffsets(in_zookeeper=node.offset) for tp, node in stored.items()}

    def _found_lags(self, found: FoundGroup) -> list[ShownLag]:
        """Of the partitions with an offset and a leader."""
        group, members = found.id, found.members
        return [
            ShownLag(
                group,
                row.partition.topic,
                row.partition.partition,
                row.offset,
                row.log_end,
                # An offset above the end is of a topic that was made again.
                max(row.lag, 0),
                "" if row.consumer is None else row.consumer.id,
                None,
                _client_of(found, row.consumer.id) if row.consumer else group,
            )
            for row in self._groups.progress(group, members, self._committed(found))
            if row.partition is not None and row.offset is not None
            if row.log_end is not None and row.lag is not None
        ]

    def _lags(self, call: Call, links: Links) -> Iterator[Row]:
        for lag in self._found_lags(self._one(call)):
            yield _shown_lag(links, lag)

    def _lag(self, call: Call, links: Links) -> Row:
        wanted = call.args["topic"], call.args["partition"]
        for lag in self._found_lags(self._one(call)):
            if (lag.topic_name, lag.partition_id) == wanted:
                return _shown_lag(links, lag)
        raise plain(404, f"The group has no offset for partition {wanted[1]} of {wanted[0]}.")

    def _summary(self, call: Call, links: Links) -> Row:
        found = self._one(call)
        group, lags = found.id, self._found_lags(found)
        if not lags:
            raise plain(404, f"Consumer group {group} has no offsets.")
        most = max(lags, key=lambda each: each.lag)
        values = {
            "consumer_group_id": group,
            "max_lag_consumer_id": most.consumer_id,
            "max_lag_instance_id": None,
            "max_lag_client_id": most.client_id,
            "max_lag_topic_name": most.topic_name,
            "max_lag_partition_id": most.partition_id,
            "max_lag": most.lag,
            "total_lag": sum(each.lag for each in lags),
        }
        own = links.of("consumer-groups", group, "lag-summary")
        words = ("consumer-group", group)
        return links.entry("KafkaConsumerGroupLagSummary", words, values, own)


def _words(state: str) -> str:
    """``PreparingRebalance`` as PREPARING_REBALANCE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", state).upper()


def _member(call: Call, found: FoundGroup) -> str:
    """Raises RestError 404."""
    member: str = call.args["consumer"]
    if member not in found.members.members:
        raise plain(404, f"Consumer {member} cannot be found.")
    return member


def _client_of(found: FoundGroup, member: str) -> str:
    """In ZooKeeper members have no client ids; their default is the group's name."""
    return found.members.clients.get(member, found.id)


def _lag_of(group: str, tp: TopicPartition) -> tuple[object, ...]:
    return ("consumer-groups", group, "lags", tp.topic, "partitions", tp.partition)


def _shown_lag(links: Links, lag: ShownLag) -> Row:
    group = lag.consumer_group_id
    own = links.of(*_lag_of(group, TopicPartition(lag.topic_name, lag.partition_id)))
    return links.entry("KafkaConsumerLag", ("consumer-group", group), lag._asdict(), own)


def _shown_consumer(links: Links, found: FoundGroup, member: str) -> Row:
    values = {
        "consumer_group_id": found.id,
        "consumer_id": member,
        "instance_id": None,
        "client_id": _client_of(found, member),
        "assignments": links.related(
            "consumer-groups", found.id, "consumers", member, "assignments"
        ),
    }
    place = ("consumer-group", found.id, "consumer", member)
    return links.entry("KafkaConsumer", place, values)
