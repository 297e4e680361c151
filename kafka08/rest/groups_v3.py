"""Groups with offsets or members in ZooKeeper, as API v3 shows consumer groups and their lags."""

from __future__ import annotations

from typing import Any

from kafka08.common import LATEST_TIME, TopicPartition
from kafka08.groups import nodes
from kafka08.rest.admin_v3 import CLUSTER, V3, AdminV3, Links
from kafka08.rest.calls import Answer, Call, Route
from kafka08.rest.cluster import Cluster
from kafka08.rest.errors import RestError, plain

_GROUP = f"{CLUSTER}/consumer-groups/<group>"
Row = dict[str, Any]


class GroupsV3:
    """``topics``: the handlers that know the cluster's id."""

    def __init__(self, cluster: Cluster, topics: AdminV3) -> None:
        self._cluster = cluster
        self._links = topics.links

    def routes(self) -> list[Route]:
        return [
            Route("GET", f"{CLUSTER}/consumer-groups", "v3.groups.list", self._groups, V3),
            Route("GET", _GROUP, "v3.groups.get", self._group, V3),
            Route("GET", f"{_GROUP}/consumers", "v3.consumers.list", self._consumers, V3),
            Route("GET", f"{_GROUP}/consumers/<consumer>", "v3.consumers.get", self._consumer, V3),
            Route("GET", f"{_GROUP}/lags", "v3.lags.list", self._lags, V3),
            Route("GET", f"{_GROUP}/lag-summary", "v3.lags.summary", self._summary, V3),
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

    def _groups(self, call: Call) -> Answer:
        links = self._links(call)
        groups = nodes.list_groups(self._cluster.zk)
        shown = [self._shown(links, group) for group in groups]
        return links.collection("KafkaConsumerGroupList", shown)

    def _group(self, call: Call) -> Answer:
        links = self._links(call)
        return Answer(self._shown(links, self._name(call)))

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

    def _consumers(self, call: Call) -> Answer:
        links, group = self._links(call), self._name(call)
        shown = [_shown_consumer(links, group, member) for member in self._members(group)]
        return links.collection("KafkaConsumerList", shown)

    def _consumer(self, call: Call) -> Answer:
        links, group = self._links(call), self._name(call)
        if call.args["consumer"] not in self._members(group):
            raise plain(404, f"Consumer {call.args['consumer']} cannot be found.")
        return Answer(_shown_consumer(links, group, call.args["consumer"]))

    # --- lags

    def _found_lags(self, group: str) -> list[Row]:
        zk = self._cluster.zk
        offsets = {tp: node.offset for tp, node in nodes.offsets(zk, [group])[group].items()}
        owners = nodes.by_partition(nodes.owner_nodes(zk, group))
        ends = self._ends(sorted(offsets))
        return [
            {
                "consumer_group_id": group,
                "topic_name": tp.topic,
                "partition_id": tp.partition,
                "current_offset": offsets[tp],
                "log_end_offset": end,
                # An offset above the end is of a topic that was made again.
                "lag": max(end - offsets[tp], 0),
                "consumer_id": nodes.consumer_of(owners.get(tp, "")),
                "instance_id": None,
                "client_id": group,
            }
            for tp, end in sorted(ends.items())
        ]

    def _lags(self, call: Call) -> Answer:
        links, group = self._links(call), self._name(call)
        shown = []
        for values in self._found_lags(group):
            place = (values["topic_name"], "partitions", values["partition_id"])
            entry = links.entry("KafkaConsumerLag", ("consumer-group", group), values)
            own = links.of("consumer-groups", group, "lags", *place)
            shown.append({**entry, "metadata": {**entry["metadata"], "self": own}})
        return links.collection("KafkaConsumerLagList", shown)

    def _summary(self, call: Call) -> Answer:
        links, group = self._links(call), self._name(call)
        lags = self._found_lags(group)
        if not lags:
            raise plain(404, f"Consumer group {group} has no offsets in ZooKeeper.")
        most = max(lags, key=lambda each: each["lag"])
        values = {
            "consumer_group_id": group,
            "max_lag_consumer_id": most["consumer_id"],
            "max_lag_instance_id": None,
            "max_lag_client_id": most["client_id"],
            "max_lag_topic_name": most["topic_name"],
            "max_lag_partition_id": most["partition_id"],
            "max_lag": most["lag"],
            "total_lag": sum(each["lag"] for each in lags),
        }
        entry = links.entry("KafkaConsumerGroupLagSummary", ("consumer-group", group), values)
        own = links.of("consumer-groups", group, "lag-summary")
        return Answer({**entry, "metadata": {**entry["metadata"], "self": own}})


def _shown_consumer(links: Links, group: str, member: str) -> Row:
    values = {
        "consumer_group_id": group,
        "consumer_id": member,
        "instance_id": None,
        "client_id": group,
    }
    place = ("consumer-group", group, "consumer", member)
    return links.entry("KafkaConsumer", place, values)
