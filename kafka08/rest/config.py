"""The settings of the REST proxy, each declared once (io.confluent.kafkarest.KafkaRestConfig).

Names and defaults are Confluent's where it has them. All others of the file go to the proxy's
producers and consumers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from kafka08.client.security import ClientSecurity
from kafka08.consumer.config import ConsumerConfig
from kafka08.errors import ConfigError
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.settings.properties import with_prefix
from kafka08.settings.settings import LIST, LONG, dotted, setting
from kafka08.settings.tls import SslSettings
from kafka08.settings.zookeeper import ZooKeeperSecurity

# Defaults that differ from those of the clients: a request must be answered in bounded time.
PRODUCER = {"metadata.fetch.timeout.ms": "10000", "delivery.timeout.ms": "30000"}
CLIENT, CONSUMER = "client.", "consumer."


class RestListener(NamedTuple):
    """One address to serve on; ``scheme`` is http or https."""

    scheme: str
    host: str
    port: int


def parse_listener(text: str) -> RestListener:
    """``http://host:port``. Raises ConfigError."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme not in ("http", "https") or parts.path:
        raise ConfigError(f"listeners has value {text} which is not http://host:port.")
    return RestListener(parts.scheme, host, port)


class RestConfig(SslSettings, ZooKeeperSecurity):
    """Settings by attribute; ``RestConfig.from_properties`` reads dotted keys. ``ssl.*`` are for
    the listeners."""

    id: str = dotted("", doc="a name of this proxy, part of the ids of its consumers")
    zookeeper_connect: str = dotted(
        "localhost:2181", doc="host:port, comma-separated, with a /chroot"
    )
    zookeeper_session_timeout_ms: int = dotted(6000, low=1, doc="of all sessions here")
    listeners: tuple[str, ...] = dotted(
        ("http://127.0.0.1:8082",), LIST, doc="http://host:port or https://host:port to serve on"
    )
    host_name: str = dotted("", doc="the host in base_uri; empty: the one that the request names")
    allowed_hosts: tuple[str, ...] = setting(
        "http.allowed.hosts",
        (),
        LIST,
        doc="names to accept in Host beside localhost, addresses and those of listeners; * for all",
    )
    consumer_request_max_bytes: int = dotted(64 << 20, LONG, 1, doc="bytes of one read")
    consumer_request_timeout_ms: int = dotted(1000, low=0, doc="wait of one read")
    consumer_instance_timeout_ms: int = dotted(300000, low=1, doc="idle time that ends one")
    consumer_iterator_backoff_ms: int = dotted(50, low=1, doc="pause while nothing arrives")
    consumer_threads: int = dotted(500, low=1, doc="reads at a time; others get 429")
    consumer_instances_max: int = dotted(1000, low=0, doc="instances; others get 429")
    consumer_instances_group_max: int = dotted(500, low=0, doc="those of one group")
    simpleconsumer_pool_size_max: int = dotted(25, low=1, doc="reads by offset at a time")
    simpleconsumer_pool_timeout_ms: int = dotted(1000, low=0, doc="wait for one of them")
    request_max_bytes: int = dotted(4 << 20, low=1 << 10, doc="bytes of a body; others: 413")
    requests_max_bytes: int = dotted(
        256 << 20, LONG, low=1 << 10, doc="bytes of all bodies at a time; others: 503"
    )
    connections_max: int = dotted(1000, low=1, doc="connections at a time")
    request_deadline_ms: int = dotted(10000, low=1, doc="time to send a whole request")
    shutdown_graceful_ms: int = dotted(1000, low=0, doc="how long the end may take")
    access_control_allow_origin: tuple[str, ...] = dotted(
        (), LIST, doc="origins of pages that may call; * for all"
    )
    access_control_allow_methods: str = dotted("", doc="methods for such pages; empty: all")
    read_only: bool = setting("rest.read.only", False, doc="refuse all that changes anything")
    produce_topics: tuple[str, ...] = setting(
        "rest.produce.topics", (), LIST, doc="the only topics to write to; empty: all"
    )
    consume_topics: tuple[str, ...] = setting(
        "rest.consume.topics", (), LIST, doc="the only topics to read; empty: all"
    )
    cluster_id: str = setting(
        "rest.cluster.id", "", doc="the cluster's id in v3; empty: the stored or a computed one"
    )
    users_file: str = setting(
        "authentication.users.file", "", doc="users, passwords and roles; empty: no login"
    )
    insecure_authentication: bool = setting(
        "authentication.over.http", False, doc="logins over http:// beyond loopback"
    )
    debug: bool = dotted(False, doc="show the texts of unexpected errors")

    def check(self) -> None:
        if not self.listeners:
            raise ConfigError("listeners has no value.")
        for each in self.parsed_listeners():
            if each.scheme == "https" and not self.ssl_keystore_location:
                raise ConfigError("listeners has https://, and ssl.keystore.location has no value.")

    def parsed_listeners(self) -> list[RestListener]:
        return [parse_listener(text) for text in self.listeners]


def producer_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of the file that are for the producer."""
    own = RestConfig.keys() | ClientSecurity.keys()
    plain = {key: text for key, text in given.items() if key in KafkaProducerConfig.keys() - own}
    return {**PRODUCER, **plain}


def consumer_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of the file that are for consumers, those of ZooKeeper's sessions included, and
    the protocol by which they choose among a broker's listeners. Those with the prefix
    ``consumer.``, as in Confluent's proxy, have priority."""
    own = (RestConfig.keys() | ClientSecurity.keys()) - ZooKeeperSecurity.keys()
    known = ConsumerConfig.keys() - own
    named = {**given, **with_prefix(given, CONSUMER)}
    plain = {key: text for key, text in named.items() if key in known}
    protocol = given.get(f"{CLIENT}security.protocol")
    return {**plain, "security.protocol": protocol} if protocol else plain


def proxy_consumer(config: RestConfig, given: Mapping[str, str]) -> ConsumerConfig:
    """The settings of the file for all consumers. Raises ConfigError."""
    own = {"group.id": "", "zookeeper.connect": config.zookeeper_connect}
    return ConsumerConfig.from_properties({**own, **consumer_properties(given)})
