"""A client's view of the cluster: brokers, topics, leaders, and a channel to each broker.

Mirrors kafka.client.ClientUtils, kafka.producer.ProducerPool and BrokerPartitionInfo. It fetches
and caches metadata; the caller decides when to refresh. Safe for concurrent use.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kafka08.client.requests import Response
from kafka08.common import Broker, Closing, TopicPartition
from kafka08.errors import (
    ConfigError,
    KafkaError,
    LeaderNotAvailableError,
    ProtocolError,
    UnknownTopicOrPartitionError,
    later_name,
    raise_for_code,
)
from kafka08.network.channel import BrokerConnection, Channel, Connect
from kafka08.protocol import schemas
from kafka08.runtime import Lock, Runtime, ThreadRuntime

logger = logging.getLogger("kafka.client.ClientUtils$")

# The kinds of keys that a coordinator is asked for by: the name of a group, or a transactional id.
GROUP, TRANSACTION = 0, 1

Endpoint = tuple[str, int]
Bootstrap = Iterable[Endpoint] | Callable[[], Iterable[Endpoint]]


def parse_broker_list(text: str | Iterable[str]) -> list[Endpoint]:
    """``host:port,host:port`` -> endpoints. Raises ConfigError."""
    words = text.split(",") if isinstance(text, str) else text
    endpoints = []
    for word in filter(None, (word.strip() for word in words)):
        host, _, port = word.rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigError(f"{word} is not host:port")
        endpoints.append((host.strip("[]"), int(port)))
    if not endpoints:
        raise ConfigError("Please provide valid host:port like host1:9091,host2:9092")
    return endpoints


class NoBrokerError(KafkaError, OSError):
    """No broker of the list answered."""


class ClusterClient(Closing):
    """Metadata and connections of one cluster.

    ``bootstrap``: the endpoints that are asked for metadata, in random order, or a function that
    returns them and is called each time; with ``ask_known`` the brokers of the last metadata are
    asked too. ``channel`` makes connections, with Channel's signature.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        *,
        client_id: str = "",
        timeout_ms: int = 30000,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
        ask_known: bool = False,
    ) -> None:
        self._bootstrap = bootstrap
        self._runtime = runtime or ThreadRuntime()
        self._channel = partial(
            channel, client_id=client_id, timeout_ms=timeout_ms, runtime=self._runtime
        )
        self._ask_known = ask_known
        self._lock = self._runtime.lock()
        self._brokers: dict[int, Broker] = {}
        self._topics: dict[str, schemas.TopicMetadata] = {}
        # by broker, and whether the connection asks for versions
        self._channels: dict[tuple[Broker, bool], tuple[BrokerConnection, Lock]] = {}
        self._asking: list[BrokerConnection] = []
        self._aborted = False

    # --- metadata

    def fetch_metadata(self, topics: Iterable[str]) -> schemas.MetadataResponse:
        """Ask one broker after the other; no topics means all topics. Raises NoBrokerError.

        A broker that has just started does not know topics or brokers until the controller sends
        them. Its answer is used only if no other broker has a better one.
        """
        request = schemas.MetadataRequest(list(topics))
        cause = "no broker is known"
        untold: schemas.MetadataResponse | None = None
        for host, port in self._shuffled():
            channel = self._channel(host, port)
            self._asking.append(channel)
            try:
                if self._aborted:
                    break
                response: schemas.MetadataResponse = channel.call(request)
                if response.brokers:
                    return response
                untold = response
                logger.debug("%s:%d knows no brokers yet: asking another", host, port)
            except (OSError, ProtocolError) as error:
                if self._aborted:
                    break
                cause = f"{host}:{port}: {error}"
                logger.warning(
                    "Fetching topic metadata for topics [%s] from broker [%s:%d] failed (%s)",
                    ",".join(request.topics or ()),
                    host,
                    port,
                    error,
                )
            finally:
                self._asking.remove(channel)
                channel.close()
        if untold is not None and not self._aborted:
            return untold
        raise NoBrokerError(
            f"fetching topic metadata for topics [{','.join(request.topics or ())}] failed: {cause}"
        )

    def _shuffled(self) -> list[Endpoint]:
        bootstrap = self._bootstrap
        endpoints = list(bootstrap() if callable(bootstrap) else bootstrap)
        if self._ask_known:
            endpoints = [*dict.fromkeys([*endpoints, *endpoints_of(list(self._brokers.values()))])]
        random.shuffle(endpoints)
        return endpoints

    def refresh(self, topics: Iterable[str] = ()) -> schemas.MetadataResponse:
        """Fetch metadata and remember it, errors of single topics included."""
        response = self.fetch_metadata(topics)
        with self._lock:
            self._brokers = {b.node_id: Broker(*b[:3]) for b in response.brokers}
            for topic in response.topics:
                self._topics[topic.topic] = topic
            stale = [
                key for key in self._channels if self._brokers.get(key[0].id, key[0]) != key[0]
            ]
            for key in stale:
                self._channels.pop(key)[0].close()
        return response

    def partitions(self, topic: str) -> list[schemas.PartitionMetadata]:
        """A topic's partitions by id, fetched if unknown. Raises the error of the topic."""
        metadata = self._topics.get(topic)
        if metadata is None or not metadata.partitions:
            self.refresh([topic])
            metadata = self._topics.get(topic)
        if metadata is None:
            raise UnknownTopicOrPartitionError(f"Topic {topic} doesn't exist")
        if not metadata.partitions:
            raise_for_code(metadata.error, f"No metadata for topic {topic}: code {metadata.error}")
        return sorted(metadata.partitions, key=lambda p: p.partition)

    def broker(self, node_id: int) -> Broker | None:
        return self._brokers.get(node_id)

    def leader(self, tp: TopicPartition) -> Broker:
        """Raises LeaderNotAvailableError or UnknownTopicOrPartitionError."""
        self.partitions(tp.topic)
        return self.known_leader(tp)

    def known_leader(self, tp: TopicPartition) -> Broker:
        """The leader in the cached metadata. Raises as ``leader`` does."""
        metadata = self._topics.get(tp.topic)
        for partition in metadata.partitions if metadata else ():
            if partition.partition == tp.partition:
                broker = self.broker(partition.leader)
                if broker is None:
                    raise LeaderNotAvailableError(f"No leader for {tp}")
                return broker
        raise UnknownTopicOrPartitionError(f"Partition {tp} doesn't exist")

    # --- connections

    def call(self, broker: Broker, request: object, *, api_versions: bool = False) -> Response:
        """One request on the pooled connection to ``broker``; None for acks 0.

        With ``api_versions`` on another one, which first asks the broker for its versions; one of
        0.8.2.2 closes it. Raises OSError or ProtocolError, and then the connection is closed.
        """
        key = (broker, api_versions)
        with self._lock:
            if key not in self._channels:
                connect = self._channel
                if api_versions:
                    connect = partial(connect, api_versions=True)
                self._channels[key] = (connect(broker.host, broker.port), self._runtime.lock())
            channel, lock = self._channels[key]
        with lock:
            return channel.call(request)

    def call_leader(self, tp: TopicPartition, request: object) -> Response:
        return self.call(self.leader(tp), request)

    def coordinator(self, name: str, key_type: int = GROUP) -> Broker:
        """The broker that keeps a group's offsets, or a transactional id; the listed brokers are
        asked in turn. Raises as ``find_coordinator`` does."""
        asking: list[BrokerConnection] = []

        def connect(host: str, port: int) -> BrokerConnection:
            asking.append(self._channel(host, port, api_versions=key_type != GROUP))
            self._asking.append(asking[-1])
            if self._aborted:
                asking[-1].abort()
            return asking[-1]

        brokers = (Broker(-1, host, port) for host, port in self._shuffled())
        try:
            return find_coordinator(name, brokers, connect, key_type)
        finally:
            for channel in asking:
                self._asking.remove(channel)

    def call_any(self, request: object) -> Response:
        """One request, as ``call`` with ``api_versions``, to the first listed broker that answers.
        Raises the error of the last one."""
        failure: Exception = NoBrokerError("no broker is known")
        for host, port in self._shuffled():
            try:
                return self.call(Broker(-1, host, port), request, api_versions=True)
            except (OSError, ProtocolError) as error:
                failure = error
        raise failure

    def abort(self) -> None:
        """Stop all requests; later ones for metadata raise NoBrokerError. May be called by any
        task."""
        self._aborted = True
        with self._lock:
            pooled = [channel for channel, _ in self._channels.values()]
        for channel in [*self._asking, *pooled]:
            channel.abort()

    def close(self) -> None:
        with self._lock:
            for channel, _ in self._channels.values():
                channel.close()
            self._channels.clear()


def find_coordinator(
    name: str,
    brokers: Iterable[Broker],
    channel: Callable[[str, int], BrokerConnection],
    key_type: int = GROUP,
) -> Broker:
    """Ask each broker until one names the coordinator of a group, or of a transactional id.

    For the latter ``channel`` must make connections that ask for versions. Raises the error of the
    last answer (15 while the topic of its states is being created), or NoBrokerError when none
    answered.
    """
    failure: Exception = NoBrokerError("no broker is known")
    for broker in brokers:
        connection = channel(broker.host, broker.port)
        try:
            request = schemas.ConsumerMetadataRequest(name, key_type)
            response = connection.call(request, None if key_type == GROUP else 1)
            raise_for_code(response.error, later_name(response.error))
            return Broker(response.coordinator_id, response.host, response.port)
        except (OSError, KafkaError) as error:
            failure = error
        finally:
            connection.close()
    raise failure


def endpoints_of(brokers: Sequence[Broker]) -> list[Endpoint]:
    """Without brokers that have no host: those have no listener of the protocol asked for."""
    return [(broker.host, broker.port) for broker in brokers if broker.host]


def listeners_of(brokers: Sequence[Broker], protocol: str) -> list[Endpoint]:
    """Of live ``brokers`` with their addresses for ``protocol``. Raises NoBrokerError if none has
    one."""
    found = endpoints_of(brokers)
    if not found:
        raise NoBrokerError(f"no live broker has a listener of {protocol} (security.protocol)")
    return found
