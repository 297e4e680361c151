"""Groups with offsets or members in ZooKeeper, as API v3 shows consumer groups and their lags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafka08.common import LATEST_TIME, TopicPartition
from kafka08.groups import nodes
from kafka08.rest.admin_v3 import CLUSTER, AdminV3, Links
from kafka08.rest.calls import Call, Route, Row
from kafka08.rest.cluster import Cluster
from kafka08.rest.errors import RestError, plain

_GROUP = f"{CLUSTER}/consumer-groups/<group>"


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


class GroupsV3:
    """``topics``: the handlers that know the cluster's id."""

    def __init__(self, cluster: Cluster, topics: AdminV3) -> None:
        self._cluster = cluster
        self._get = topics.get
        self._listing = topics.listing

    def routes(self) -> list[Route]:
        get, listing = self._get, self._listing
        groups = f"{CLUSTER}/consumer-groups"
        return [
            listing(groups, "groups.list", "KafkaConsumerGroupList", self._groups),
            get(_GROUP, "groups.get", self._group),
            listing(f"{_GROUP}/consumers", "consumers.list", "KafkaConsumerList", self._consumers),
            get(f"{_GROUP}/consumers/<consumer>", "consumers.get", self._consumer),
            listing(f"{_GROUP}/lags", "lags.list", "KafkaConsumerLagList", self._lags),
            get(f"{_GROUP}/lag-summary", "lags.summary", self._summary),
        ]

    # --- reading ZooKeeper

    def _name(self, call: Call) -> str:
        """Raises RestError 404."""
        group: str = call.args["group"]
        if group in (".", "..") or group not in nodes.list_groups(self._cluster.zk):
            raise plain(404, f"Consumer group {group} cannot be found.")
        return group

    def _members(self, group: str) -> list[str]:
        return nodes.member_ids(self._cluster.zk, group)

    def _ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The log ends of the partitions that have a leader."""
        times = {}
        for tp in partitions:
            try:
                self._cluster.leader(tp)
            except RestError:
                continue  # deleted, or without a leader: its lag is not known
            times[tp] = LATEST_TIME
        return self._cluster.offsets_at(times)

    # --- groups and consumers

    def _groups(self, call: Call, links: Links) -> list[Row]:
        return [self._shown(links, group) for group in nodes.list_groups(self._cluster.zk)]

    def _group(self, call: Call, links: Links) -> Row:
        return self._shown(links, self._name(call))

    def _shown(self, links: Links, group: str) -> Row:
        values = {
            "consumer_group_id": group,
            "is_simple": False,
            "partition_assignor": "",
            "state": "STABLE" if self._members(group) else "EMPTY",
            "coordinator": None,  # members agree by ZooKeeper
            "consumers": links.related("consumer-groups", group, "consumers"),
            "lag_summary": links.related("consumer-groups", group, "lag-summary"),
        }
        return links.entry("KafkaConsumerGroup", ("consumer-group", group), values)

    def _consumers(self, call: Call, links: Links) -> list[Row]:
        group = self._name(call)
        return [_shown_consumer(links, group, member) for member in self._members(group)]

    def _consumer(self, call: Call, links: Links) -> Row:
        group = self._name(call)
        if call.args["consumer"] not in self._members(group):
            raise plain(404, f"Consumer {call.args['consumer']} cannot be found.")
        return _shown_consumer(links, group, call.args["consumer"])

    # --- lags

    def _found_lags(self, group: str) -> list[ShownLag]:
        zk = self._cluster.zk
        offsets = {tp: node.offset for tp, node in nodes.offsets(zk, [group])[group].items()}
        owners = nodes.by_partition(nodes.owner_nodes(zk, group))
        ends = self._ends(sorted(offsets))
        return [
            ShownLag(
                group,
                tp.topic,
                tp.partition,
                offsets[tp],
                end,
                # An offset above the end is of a topic that was made again.
                max(end - offsets[tp], 0),
                nodes.consumer_of(owners.get(tp, "")),
                None,
                client_id=group,
            )
            for tp, end in sorted(ends.items())
        ]

    def _lags(self, call: Call, links: Links) -> Iterator[Row]:
        group = self._name(call)
        for lag in self._found_lags(group):
            place = (lag.topic_name, "partitions", lag.partition_id)
            own = links.of("consumer-groups", group, "lags", *place)
            yield links.entry("KafkaConsumerLag", ("consumer-group", group), lag._asdict(), own)

    def _summary(self, call: Call, links: Links) -> Row:
        group = self._name(call)
        lags = self._found_lags(group)
        if not lags:
            raise plain(404, f"Consumer group {group} has no offsets in ZooKeeper.")
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


def _shown_consumer(links: Links, group: str, member: str) -> Row:
    values = {
        "consumer_group_id": group,
        "consumer_id": member,
        "instance_id": None,
        "client_id": group,
    }
    place = ("consumer-group", group, "consumer", member)
    return links.entry("KafkaConsumer", place, values)
