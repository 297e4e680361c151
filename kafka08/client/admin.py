"""Topics and their settings over the wire, for tools that do not use ZooKeeper.

Topics are read by a Metadata request, which any broker answers. All other methods use APIs of
later releases, over which brokers of 0.8.2.2 close the connection. The first broker of the cluster
that answers them is used. AdminNotServedError is raised if no broker does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kafka08.client.cluster import ClusterClient, Endpoint, NoBrokerError
from kafka08.client.requests import Response
from kafka08.common import Closing
from kafka08.errors import (
    NO_ERROR,
    AdminOperationError,
    LaterCode,
    LeaderNotAvailableError,
    ProtocolError,
    RequestTimedOutError,
    TopicExistsError,
    meaning_of,
    raise_for_code,
)
from kafka08.network.channel import BrokerConnection, Channel, Connect
from kafka08.protocol import admin_schemas, schemas
from kafka08.runtime import Runtime, ThreadRuntime

_GRACE_MS = 5000
_POLL_SECONDS = 0.1


class AdminNotServedError(AdminOperationError):
    """No broker of the cluster answers administrative requests."""

    java_class = "org.apache.kafka.common.errors.UnsupportedVersionException"


class RemoteError(AdminOperationError):
    """A broker refused a request; the text is the broker's. ``wire_code``: the code it gave."""

    def __init__(self, wire_code: int, message: str | None, topic: str) -> None:
        if not message:
            message = f"{meaning_of(wire_code)}: topic {topic}"
        super().__init__(message)
        self.wire_code = wire_code


class AdminClient(Closing):
    """Administers the cluster of ``bootstrap``.

    ``timeout_ms`` bounds what the cluster may take for one request. ``channel`` makes
    connections, with Channel's signature. ``brokers``: the addresses by id where they are known;
    brokers of 0.8.2.2 name none before there is a topic. Every call may raise OSError,
    NoBrokerError or ProtocolError. One task at a time.
    """

    def __init__(
        self,
        bootstrap: Sequence[Endpoint],
        *,
        client_id: str = "",
        timeout_ms: int = 30000,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
        brokers: Mapping[int, Endpoint] | None = None,
    ) -> None:
        self._bootstrap = list(bootstrap)
        self._brokers = brokers
        self._timeout_ms = timeout_ms
        self._runtime = runtime or ThreadRuntime()
        self._channel = partial(
            channel, client_id=client_id, timeout_ms=timeout_ms + _GRACE_MS, runtime=self._runtime
        )
        self._cluster = ClusterClient(
            self._bootstrap,
            client_id=client_id,
            timeout_ms=timeout_ms,
            runtime=self._runtime,
            channel=channel,
        )
        self._serving: BrokerConnection | None = None

    def close(self) -> None:
        self._cluster.close()
        if self._serving is not None:
            self._serving.close()

    # --- served by every broker

    def metadata(self) -> schemas.MetadataResponse:
        """All topics and live brokers. Does not create topics."""
        return self._cluster.refresh()

    def create_by_metadata(self, topic: str) -> None:
        """Let a broker create ``topic`` with its own defaults, and wait until it has leaders.

        Raises UnknownTopicOrPartitionError where auto.create.topics.enable is off, the error of
        the topic, or RequestTimedOutError.
        """
        clock = self._runtime.clock
        deadline = clock.monotonic() + self._timeout_ms / 1000
        while True:
            found = self._cluster.refresh([topic]).topics[0]
            codes = {found.error, *(partition.error for partition in found.partitions)}
            if LeaderNotAvailableError.code not in codes:
                raise_for_code(found.error)
                return
            if clock.monotonic() >= deadline:
                raise RequestTimedOutError(f"Topic {topic} was created, but has no leaders yet")
            self._runtime.sleep(_POLL_SECONDS)

    # --- served by kafka08 brokers only

    def create_topic(
        self,
        topic: str,
        partitions: int = admin_schemas.BROKER_DEFAULT,
        replication_factor: int = admin_schemas.BROKER_DEFAULT,
        assignment: Mapping[int, Sequence[int]] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Raises TopicExistsError, RemoteError, AdminNotServedError."""
        new = admin_schemas.NewTopic(
            topic,
            partitions,
            replication_factor,
            [
                admin_schemas.ReplicaAssignment(partition, list(replicas))
                for partition, replicas in (assignment or {}).items()
            ],
            _entries(config or {}),
        )
        request = admin_schemas.CreateTopicsRequest([new], self._timeout_ms, False)
        _raise_any((e.error, e.message, e.topic) for e in self.call(request).topics)

    def delete_topics(self, topics: Iterable[str]) -> None:
        """Raises RemoteError, AdminNotServedError."""
        request = admin_schemas.DeleteTopicsRequest(list(topics), self._timeout_ms)
        _raise_any(
            (
                entry.error,
                # This response does not carry a text, and the code alone says too little.
                "Topic deletion is disabled (delete.topic.enable)"
                if entry.error == LaterCode.INVALID_REQUEST
                else None,
                entry.topic,
            )
            for entry in self.call(request).topics
        )

    def create_partitions(
        self, topic: str, total_count: int, new_replicas: Sequence[Sequence[int]] = ()
    ) -> None:
        """Grow to ``total_count``. Raises RemoteError, AdminNotServedError."""
        more = admin_schemas.MorePartitions(topic, total_count, [list(r) for r in new_replicas])
        request = admin_schemas.CreatePartitionsRequest([more], self._timeout_ms, False)
        _raise_any((e.error, e.message, e.topic) for e in self.call(request).topics)

    def describe_configs(
        self, topics: Iterable[str]
    ) -> dict[str, dict[str, admin_schemas.ConfigEntry]]:
        """Every setting in force, by topic and name. Raises RemoteError, AdminNotServedError."""
        asked = [
            admin_schemas.DescribedResource(admin_schemas.TOPIC_RESOURCE, topic, [])
            for topic in topics
        ]
        found = self.call(admin_schemas.DescribeConfigsRequest(asked)).resources
        _raise_any((entry.error, entry.message, entry.resource_name) for entry in found)
        return {
            resource.resource_name: {entry.name: entry for entry in resource.entries}
            for resource in found
        }

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Replace a topic's own settings. Raises RemoteError, AdminNotServedError."""
        altered = admin_schemas.AlteredResource(
            admin_schemas.TOPIC_RESOURCE, topic, _entries(config)
        )
        found = self.call(admin_schemas.AlterConfigsRequest([altered], False)).resources
        _raise_any((entry.error, entry.message, entry.resource_name) for entry in found)

    def settings(self, kind: int, name: str) -> list[admin_schemas.ConfigEntry]:
        """The settings of a topic, or of a broker, which is asked itself, with their sources.

        Raises RemoteError, AdminNotServedError; NoBrokerError if there is no such broker."""
        asked = [admin_schemas.DescribedResource(kind, name, None)]
        request = admin_schemas.DescribeConfigsRequestV1(asked, include_synonyms=True)
        broker = name if kind == admin_schemas.BROKER_RESOURCE and name else None
        [found] = self.call(request, broker).resources
        _raise_any([(found.error, found.message, name)])
        entries: list[admin_schemas.ConfigEntry] = found.entries
        return entries

    def change_settings(
        self,
        kind: int,
        name: str,
        changes: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set some settings of a topic, or of a broker, which is asked itself, and remove those
        that are None here; or check only whether that could be done.

        Raises RemoteError, AdminNotServedError; NoBrokerError if there is no such broker."""
        listed = [
            admin_schemas.ConfigChange(
                key,
                admin_schemas.DELETE_CONFIG if value is None else admin_schemas.SET_CONFIG,
                value,
            )
            for key, value in changes.items()
        ]
        changed = [admin_schemas.ChangedResource(kind, name, listed)]
        request = admin_schemas.IncrementalAlterConfigsRequest(changed, validate_only)
        broker = name if kind == admin_schemas.BROKER_RESOURCE and name else None
        found = self.call(request, broker).resources
        _raise_any((entry.error, entry.message, entry.resource_name) for entry in found)

    def call(self, request: object, broker_id: str | None = None) -> Response:
        """The answer of one broker that serves administrative requests, or of one that is named.

        Raises AdminNotServedError, NoBrokerError."""
        if broker_id is not None:
            return self._call_broker(request, broker_id)
        if self._serving is None:
            self._serving = self._find_serving()
        try:
            return self._serving.call(request)
        except ConnectionResetError:
            # The broker has just answered another one.
            raise _not_served(f"{self._serving.host}:{self._serving.port}") from None

    def _call_broker(self, request: object, broker_id: str) -> Response:
        brokers = self._brokers
        if brokers is None:
            brokers = {each.node_id: (each.host, each.port) for each in self.metadata().brokers}
        for number, (host, port) in brokers.items():
            if str(number) == broker_id:
                with contextlib.closing(self._channel(host, port)) as channel:
                    channel.connect()
                    try:
                        return channel.call(request)
                    except ConnectionResetError:
                        raise _not_served(f"{host}:{port}") from None
        raise NoBrokerError(f"There is no broker with the id {broker_id}")

    def _find_serving(self) -> BrokerConnection:
        """A connection to a broker that answers these APIs.

        It is found with a request that changes nothing: a request that a closed connection cuts
        off could not be repeated on another broker.
        """
        brokers = [(b.host, b.port) for b in self.metadata().brokers] or self._bootstrap
        closed, cause = [], "no broker is known"
        for host, port in brokers:
            channel = self._channel(host, port)
            try:
                channel.connect()
            except OSError as error:
                cause = f"{host}:{port}: {error}"
                continue
            try:
                channel.call(admin_schemas.DescribeConfigsRequest([]))
                return channel
            except (OSError, ProtocolError):
                channel.close()
                closed.append(f"{host}:{port}")
        if not closed:
            raise NoBrokerError(f"No broker answers: {cause}")
        raise AdminNotServedError(
            f"{', '.join(closed)}: closed the connection over an administrative request, "
            "as Kafka 0.8.2.2 does"
        )


def _not_served(address: str) -> AdminNotServedError:
    return AdminNotServedError(
        f"{address} closed the connection over a request of later releases, as a broker with "
        "api.versions.enable=false does"
    )


def check(code: int, message: str | None) -> None:
    """Raises RemoteError if ``code`` is that of an error."""
    if code != NO_ERROR:
        raise RemoteError(code, message or meaning_of(code), "")


def _entries(config: Mapping[str, str]) -> list[admin_schemas.TopicConfigEntry]:
    return [admin_schemas.TopicConfigEntry(name, value) for name, value in config.items()]


def _raise_any(results: Iterable[tuple[int, str | None, str]]) -> None:
    """Raise the first failure; ``results`` holds code, text and topic."""
    for code, message, topic in results:
        if code == LaterCode.TOPIC_ALREADY_EXISTS:
            raise TopicExistsError(f"Topic '{topic}' already exists.")
        if code != NO_ERROR:
            raise RemoteError(code, message, topic)
