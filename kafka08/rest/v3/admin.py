"""The part of API v3 that administers: brokers, topics, their settings, partitions, reassignments.

Collections are ``{"kind", "metadata": {"self", "next"}, "data": [...]}``. Pages do not exist here:
``next`` is always null.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote

from kafka08 import admin
from kafka08.common import INTERNAL_TOPICS, Broker, TopicPartition
from kafka08.errors import (
    AdminOperationError,
    ConfigError,
    InvalidTopicError,
    TopicExistsError,
)
from kafka08.placement import assign_replicas
from kafka08.rest.calls import Call, Fields, RestAnswer, Route, Row
from kafka08.rest.cluster import Cluster, ShownPartition, ShownReplica
from kafka08.rest.errors import BAD_REQUEST, RestError, plain
from kafka08.rest.v3.configs import config_text, read_changes, read_value
from kafka08.security.users import ADMIN, READER
from kafka08.settings.topic import TOPIC_KEYS, LogConfig
from zk import znodes
from zk.errors import NodeExistsError

CLUSTER = "/v3/clusters/<cluster>"
TOPIC = f"{CLUSTER}/topics/<topic>"
_PARTITION = f"{TOPIC}/partitions/<int:partition>"
_ALL = "-"
_ADMIN_ERRORS = (AdminOperationError, InvalidTopicError, ConfigError, TopicExistsError)
_MAX_PARTITIONS = 100_000


class Links:
    """The URLs of one answer: ``of("topics", "t")`` is that of a resource of the cluster."""

    def __init__(self, call: Call, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.own = call.request.base_url.rstrip("/")
        self._base = f"{self.own.partition('/v3')[0]}/v3/clusters/{quote(cluster_id, safe='')}"

    def of(self, *words: object) -> str:
        return "/".join([self._base, *(quote(str(word), safe="-") for word in words)])

    def related(self, *words: object) -> dict[str, str]:
        return {"related": self.of(*words)}

    def entry(
        self, kind: str, words: tuple[object, ...], values: Mapping[str, object], own: str = ""
    ) -> Row:
        """One resource, with its place; ``own``: its URL if the words do not say it."""
        pairs = list(zip(words[::2], words[1::2], strict=True))
        place = [f"{each}={name}" for each, name in pairs]
        path = [word for each, name in pairs for word in (f"{each}s", name)]
        metadata = {
            "self": own or self.of(*path),
            "resource_name": "/".join([f"crn:///kafka={self.cluster_id}", *place]),
        }
        return {"kind": kind, "metadata": metadata, "cluster_id": self.cluster_id, **values}

    def collection(self, kind: str, entries: Iterable[Row], own: str = "") -> RestAnswer:
        """``own``: the URL of the collection if it has a query."""
        metadata = {"self": own or self.own, "next": None}
        return RestAnswer({"kind": kind, "metadata": metadata, "data": list(entries)})


HandlerV3 = Callable[[Call, Links], RestAnswer]
Shown = Callable[[Call, Links], Row]
Listed = Callable[[Call, Links], Iterable[Row]]


def cluster_id_of(cluster: Cluster, chroot: str) -> str:
    """The stored id, or one made of the chroot and of the transaction that began the cluster."""
    found = admin.read_node(cluster.zk, znodes.CLUSTER_ID, znodes.decode_cluster_id)
    if found is not None:
        return found
    stat = cluster.zk.exists(znodes.BROKER_TOPICS)
    begun = f"{chroot} {0 if stat is None else stat.czxid}"
    digest = hashlib.sha256(begun.encode()).digest()[:16]
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


class AdminV3:
    """``own_id``: the id of the cluster if a setting says it. ``chroot``: that of ZooKeeper."""

    def __init__(self, cluster: Cluster, *, own_id: str = "", chroot: str = "") -> None:
        self._cluster = cluster
        self._own_id = own_id
        self._chroot = chroot

    def route(
        self, method: str, rule: str, name: str, handler: HandlerV3, role: str = READER
    ) -> Route:
        """For calls about this cluster; RestError 404 for another one."""

        def handle(call: Call) -> RestAnswer:
            own = self._own_id or cluster_id_of(self._cluster, self._chroot)
            asked = call.args.get("cluster", own)
            if asked != own:
                raise plain(404, f"Cluster {asked} cannot be found.")
            return handler(call, Links(call, own))

        return Route(method, rule, f"v3.{name}", handle, (3,), role)

    def get(self, rule: str, name: str, shown: Shown) -> Route:
        """For a call that shows one resource."""
        return self.route("GET", rule, name, lambda call, links: RestAnswer(shown(call, links)))

    def listing(self, rule: str, name: str, kind: str, listed: Listed) -> Route:
        """For a call that shows a collection, which is of that ``kind``."""

        def handle(call: Call, links: Links) -> RestAnswer:
            return links.collection(kind, listed(call, links))

        return self.route("GET", rule, name, handle)

    def routes(self) -> list[Route]:
        def change(method: str, rule: str, name: str, handler: HandlerV3) -> Route:
            return self.route(method, rule, name, handler, ADMIN)

        get, listing = self.get, self.listing
        topics, configs = f"{CLUSTER}/topics", f"{TOPIC}/configs"
        partitions, moves = f"{TOPIC}/partitions", f"{TOPIC}/partitions/-/reassignment"
        return [
            listing("/v3/clusters", "clusters.list", "KafkaClusterList", self._clusters),
            get(CLUSTER, "clusters.get", self._one_cluster),
            listing(f"{CLUSTER}/brokers", "brokers.list", "KafkaBrokerList", self._brokers),
            get(f"{CLUSTER}/brokers/<int:broker>", "brokers.get", self._broker),
            listing(topics, "topics.list", "KafkaTopicList", self._topics),
            change("POST", topics, "topics.create", self._create),
            get(TOPIC, "topics.get", self._topic),
            change("DELETE", TOPIC, "topics.delete", self._delete),
            change("PATCH", TOPIC, "topics.update", self._grow),
            listing(configs, "topic.configs.list", "KafkaTopicConfigList", self._configs),
            get(f"{configs}/<name>", "topic.configs.get", self._config),
            change("PUT", f"{configs}/<name>", "topic.configs.update", self._set_config),
            change("DELETE", f"{configs}/<name>", "topic.configs.reset", self._reset_config),
            change("POST", f"{TOPIC}/configs:alter", "topic.configs.alter", self._alter),
            listing(partitions, "partitions.list", "KafkaPartitionList", self._partitions),
            get(_PARTITION, "partitions.get", self._partition),
            listing(f"{_PARTITION}/replicas", "replicas.list", "KafkaReplicaList", self._replicas),
            get(f"{_PARTITION}/replicas/<int:broker>", "replicas.get", self._replica),
            get(f"{_PARTITION}/reassignment", "reassignments.get", self._reassignment),
            listing(moves, "reassignments.list", "KafkaReassignmentList", self._moves),
        ]

    # --- clusters and brokers

    def _clusters(self, call: Call, links: Links) -> list[Row]:
        return [self._one_cluster(call, links)]

    def _one_cluster(self, call: Call, links: Links) -> Row:
        node = admin.read_node(self._cluster.zk, znodes.CONTROLLER, znodes.decode_controller)
        values = {
            "controller": None if node is None else links.related("brokers", node.broker_id),
            "acls": links.related("acls"),
            "brokers": links.related("brokers"),
            "broker_configs": links.related("broker-configs"),
            "topics": links.related("topics"),
            "consumer_groups": links.related("consumer-groups"),
            "partition_reassignments": links.related(*_moves_of(_ALL)),
        }
        return links.entry("KafkaCluster", (), values)

    def _brokers(self, call: Call, links: Links) -> list[Row]:
        racks = self._cluster.racks()
        return [
            _shown_broker(links, broker, racks.get(broker.id)) for broker in self._cluster.brokers()
        ]

    def _broker(self, call: Call, links: Links) -> Row:
        number = call.args["broker"]
        for broker in self._cluster.brokers():
            if broker.id == number:
                rack = self._cluster.racks().get(number)
                return _shown_broker(links, broker, rack)
        raise plain(404, f"Broker {number} cannot be found.")

    # --- topics

    def _topics(self, call: Call, links: Links) -> Iterator[Row]:
        for topic in self._cluster.topics():
            assignment = admin.fetch_assignment(self._cluster.zk, topic)
            if assignment is not None:  # it may be gone meanwhile
                yield _shown_topic(links, topic, assignment)

    def _topic(self, call: Call, links: Links) -> Row:
        return _shown_topic(links, call.args["topic"], self._assignment(call))

    def _assignment(self, call: Call) -> dict[int, tuple[int, ...]]:
        try:
            return self._cluster.assignment(call.args["topic"])
        except RestError:
            raise _no_topic() from None

    def _create(self, call: Call, links: Links) -> RestAnswer:
        fields = call.fields(
            "topic_name",
            "partitions_count",
            "replication_factor",
            "replicas_assignments",
            "configs",
            "validate_only",
        )
        topic = fields.needed_text("topic_name")
        config = _config_values(fields)
        zk = self._cluster.zk
        with _refusals():
            if "replicas_assignments" in fields:
                assignment = _assigned(fields)
            else:
                assignment = assign_replicas(
                    admin.live_places(zk),
                    fields.integer("partitions_count", 1, _MAX_PARTITIONS) or 1,
                    fields.integer("replication_factor", 1) or 1,
                )
            if fields.flag("validate_only"):
                admin.check_new_topic(zk, topic, assignment, config)
            else:
                admin.create_topic_with_assignment(zk, topic, assignment, config)
        placed = {number: tuple(replicas) for number, replicas in assignment.items()}
        return RestAnswer(_shown_topic(links, topic, placed), status=201)

    def _delete(self, call: Call, links: Links) -> RestAnswer:
        self._assignment(call)
        try:
            admin.delete_topic(self._cluster.zk, call.args["topic"])
        except NodeExistsError:
            pass  # it is marked already
        return RestAnswer(status=204)

    def _grow(self, call: Call, links: Links) -> RestAnswer:
        key = "partitions_count"
        count = call.fields(key).needed_integer(key, 1, _MAX_PARTITIONS)
        if count != len(self._assignment(call)):
            with _refusals():
                admin.add_partitions(self._cluster.zk, call.args["topic"], count)
        return RestAnswer(self._topic(call, links))

    # --- settings of topics

    def _overrides(self, call: Call) -> dict[str, str]:
        self._assignment(call)
        return admin.fetch_topic_config(self._cluster.zk, call.args["topic"])

    def _configs(self, call: Call, links: Links) -> list[Row]:
        overrides = self._overrides(call)
        names = sorted(TOPIC_KEYS | overrides.keys())
        return [_shown_config(links, call.args["topic"], name, overrides) for name in names]

    def _config(self, call: Call, links: Links) -> Row:
        overrides = self._overrides(call)
        name = self._known(call, overrides)
        return _shown_config(links, call.args["topic"], name, overrides)

    def _known(self, call: Call, overrides: Mapping[str, str]) -> str:
        name: str = call.args["name"]
        if name not in TOPIC_KEYS | overrides.keys():
            raise plain(404, f"Config {name} cannot be found for TOPIC {call.args['topic']}.")
        return name

    def _set_config(self, call: Call, links: Links) -> RestAnswer:
        overrides = self._overrides(call)
        value = read_value(call)
        return self._change(call, {**overrides, self._known(call, overrides): value})

    def _reset_config(self, call: Call, links: Links) -> RestAnswer:
        overrides = self._overrides(call)
        overrides.pop(self._known(call, overrides), None)
        return self._change(call, overrides)

    def _alter(self, call: Call, links: Links) -> RestAnswer:
        overrides = self._overrides(call)
        changes, validate_only = read_changes(call)
        altered = {**overrides, **changes}
        kept = {name: value for name, value in altered.items() if value is not None}
        if validate_only:
            with _refusals():
                LogConfig.validate(kept)
            return RestAnswer(status=204)
        return self._change(call, kept)

    def _change(self, call: Call, overrides: Mapping[str, str]) -> RestAnswer:
        with _refusals():
            admin.change_topic_config(self._cluster.zk, call.args["topic"], overrides)
        return RestAnswer(status=204)

    # --- partitions and replicas

    def _partitions(self, call: Call, links: Links) -> list[Row]:
        topic = call.args["topic"]
        self._assignment(call)
        return [_shown_partition(links, topic, each) for each in self._cluster.partitions(topic)]

    def _found(self, call: Call) -> ShownPartition:
        """The partition, as v1 shows it."""
        topic, number = call.args["topic"], call.args["partition"]
        if number not in self._assignment(call):
            raise plain(404, f"Partition {number} of topic {topic} cannot be found.")
        return self._cluster.partition(TopicPartition(topic, number))

    def _partition(self, call: Call, links: Links) -> Row:
        return _shown_partition(links, call.args["topic"], self._found(call))

    def _replicas(self, call: Call, links: Links) -> list[Row]:
        return [_shown_replica(links, call, each) for each in self._found(call)["replicas"]]

    def _replica(self, call: Call, links: Links) -> Row:
        for each in self._found(call)["replicas"]:
            if each["broker"] == call.args["broker"]:
                return _shown_replica(links, call, each)
        raise plain(404, f"Replica {call.args['broker']} cannot be found.")

    # --- reassignments

    def _moves(self, call: Call, links: Links) -> list[Row]:
        topic = call.args["topic"]
        if topic != _ALL:
            self._assignment(call)
        moves = admin.fetch_reassignments(self._cluster.zk)
        return [
            self._shown_move(links, tp, target)
            for tp, target in sorted(moves.items())
            if topic in (_ALL, tp.topic)
        ]

    def _reassignment(self, call: Call, links: Links) -> Row:
        self._found(call)
        tp = TopicPartition(call.args["topic"], call.args["partition"])
        target = admin.fetch_reassignments(self._cluster.zk).get(tp)
        if target is None:
            raise plain(404, f"Partition {tp} is not being reassigned.")
        return self._shown_move(links, tp, target)

    def _shown_move(self, links: Links, tp: TopicPartition, target: tuple[int, ...]) -> Row:
        """Replicas are added until they are in the isr."""
        replicas = (admin.fetch_assignment(self._cluster.zk, tp.topic) or {}).get(tp.partition, ())
        state = admin.fetch_partition_state(self._cluster.zk, *tp)
        isr = () if state is None else state.isr
        place = ("topics", tp.topic, "partitions", tp.partition)
        values = {
            "topic_name": tp.topic,
            "partition_id": tp.partition,
            "adding_replicas": [broker for broker in target if broker not in isr],
            "removing_replicas": [broker for broker in replicas if broker not in target],
            "replicas": links.related(*place, "replicas"),
        }
        words = ("topic", tp.topic, "partition", tp.partition)
        return links.entry("KafkaReassignment", words, values, links.of(*place, "reassignment"))


@contextmanager
def _refusals() -> Iterator[None]:
    """Errors of administration as answers with status 400."""
    try:
        yield
    except admin.UnknownTopicError as error:
        raise _no_topic() from error
    except _ADMIN_ERRORS as error:
        raise RestError(400, BAD_REQUEST, str(error)) from error


def _moves_of(topic: str) -> tuple[str, ...]:
    return ("topics", topic, "partitions", _ALL, "reassignment")


def _no_topic() -> RestError:
    return RestError(404, 40403, "This server does not host this topic-partition.")


def _config_values(fields: Fields) -> dict[str, str]:
    if "configs" not in fields:
        return {}
    return {
        entry.needed_text("name"): config_text(entry.value("value"))
        for entry in fields.objects("configs", "name", "value")
    }


def _assigned(fields: Fields) -> dict[int, list[int]]:
    assignment = {}
    for entry in fields.objects("replicas_assignments", "partition_id", "broker_ids"):
        listed = entry.array("broker_ids")
        brokers = [each for each in listed if type(each) is int and each >= 0]
        if len(brokers) < len(listed):
            entry.wrong("broker_ids", "is not a list of brokers")
        assignment[entry.needed_integer("partition_id")] = brokers
    if sorted(assignment) != list(range(len(assignment))):
        fields.wrong("replicas_assignments", "does not name each partition from 0 on")
    return assignment


def _shown_broker(links: Links, broker: Broker, rack: str | None) -> Row:
    values = {
        "broker_id": broker.id,
        "host": broker.host,
        "port": broker.port,
        "rack": rack,
        "configs": links.related("brokers", broker.id, "configs"),
    }
    return links.entry("KafkaBroker", ("broker", broker.id), values)


def _shown_topic(links: Links, topic: str, assignment: Mapping[int, tuple[int, ...]]) -> Row:
    values = {
        "topic_name": topic,
        "is_internal": topic in INTERNAL_TOPICS,
        "replication_factor": len(assignment[min(assignment)]) if assignment else 0,
        "partitions_count": len(assignment),
        "partitions": links.related("topics", topic, "partitions"),
        "configs": links.related("topics", topic, "configs"),
        "partition_reassignments": links.related(*_moves_of(topic)),
    }
    return links.entry("KafkaTopic", ("topic", topic), values)


def _shown_config(links: Links, topic: str, name: str, overrides: Mapping[str, str]) -> Row:
    """Without an override the value is the broker's own, which ZooKeeper does not have."""
    value = overrides.get(name)
    source = "DEFAULT_CONFIG" if value is None else "DYNAMIC_TOPIC_CONFIG"
    values = {
        "topic_name": topic,
        "name": name,
        "value": value,
        "is_default": value is None,
        "is_read_only": False,
        "is_sensitive": False,
        "source": source,
        "synonyms": [] if value is None else [{"name": name, "value": value, "source": source}],
    }
    return links.entry("KafkaTopicConfig", ("topic", topic, "config", name), values)


def _shown_partition(links: Links, topic: str, found: ShownPartition) -> Row:
    number = found["partition"]
    place = ("topics", topic, "partitions", number)
    leader = found["leader"]
    values = {
        "topic_name": topic,
        "partition_id": number,
        "leader": None if leader < 0 else links.related(*place, "replicas", leader),
        "replicas": links.related(*place, "replicas"),
        "reassignment": links.related(*place, "reassignment"),
    }
    return links.entry("KafkaPartition", ("topic", topic, "partition", number), values)


def _shown_replica(links: Links, call: Call, found: ShownReplica) -> Row:
    topic, number, broker = call.args["topic"], call.args["partition"], found["broker"]
    values = {
        "topic_name": topic,
        "partition_id": number,
        "broker_id": broker,
        "is_leader": found["leader"],
        "is_in_sync": found["in_sync"],
        "broker": links.related("brokers", broker),
    }
    place = ("topic", topic, "partition", number, "replica", broker)
    return links.entry("KafkaReplica", place, values)
