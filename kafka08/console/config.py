"""The settings of kafka-console-start.sh."""

from __future__ import annotations

from kafka08.client.cluster import Endpoint, parse_broker_list
from kafka08.errors import ConfigError
from kafka08.network.http import is_loopback
from kafka08.settings.settings import INT, LIST, dotted, setting
from kafka08.settings.tls import SslSettings
from kafka08.settings.zookeeper import ZooKeeperSecurity

CLIENT_ID, BROWSER_ID = "console", "console-browser"
"""The client ids under which brokers see the console, and its reads of messages."""

CLIENT_PREFIX = "client."
"""Of the settings with which the console connects to brokers: ``client.security.protocol``."""


class ConsoleConfig(SslSettings, ZooKeeperSecurity):
    """``ssl.*`` are those of the console's own listener, used if ``http.tls`` is true."""

    clusters: tuple[str, ...] = setting(
        "console.clusters",
        (),
        LIST,
        doc="names of several clusters; each has its own cluster.NAME.zookeeper.connect",
    )
    zookeeper_connect: str = dotted(doc="ZooKeeper: host:port,.../chroot")
    zookeeper_session_timeout_ms: int = dotted(
        6000, low=1, doc="also the longest wait for an answer"
    )
    http_host: str = dotted(
        "127.0.0.1", doc="the address to listen on; only this machine by default"
    )
    http_port: int = dotted(9000, low=0, high=65535, doc="0: any free one")
    http_allowed_hosts: tuple[str, ...] = dotted(
        (), LIST, doc="further names that browsers may use for the console"
    )
    http_tls: bool = dotted(False, doc="TLS, with the key of ssl.keystore.location")
    read_only: bool = setting(
        "console.read.only", True, doc="refuse all changes, and show no forms for them"
    )
    show_messages: bool = setting(
        "console.messages", True, doc="false: the contents of messages are not shown"
    )
    users_file: str = setting(
        "console.users.file", "", doc="users who may log in: lines of kafka.console.ConsolePassword"
    )
    audit_file: str = setting(
        "console.audit.file", "", doc="where changes are recorded, besides the log"
    )
    history_path: str = setting(
        "console.history.path", "", doc="an SQLite file that keeps graphs and events over a restart"
    )
    refresh_ms: int = setting(
        "console.refresh.ms", 5000, low=100, doc="time between two reads of the cluster"
    )
    lag_interval_ms: int = dotted(10000, low=100, doc="time between two collections of lag")
    broker_http: tuple[str, ...] = setting(
        "console.broker.http",
        (),
        LIST,
        doc="id=host:port,...: where brokers serve their metrics and /clients, if not where their "
        "http.host and http.port say",
    )
    request_timeout_ms: int = dotted(4000, low=1, doc="longest wait for a broker's answer")
    browse_max_bytes: int = setting(
        "console.browse.max.bytes",
        8 << 20,
        INT,
        1,
        doc="bytes that one read of messages, or one step of a search, may take",
    )
    browse_timeout_ms: int = setting(
        "console.browse.timeout.ms", 5000, low=1, doc="time that it may take"
    )
    browse_concurrent: int = setting(
        "console.browse.concurrent", 8, low=1, doc="reads and tails at the same time"
    )

    def http_endpoints(self) -> dict[int, Endpoint]:
        """``console.broker.http`` by broker. Raises ConfigError."""
        found = {}
        for word in self.broker_http:
            id_, _, address = word.partition("=")
            try:
                [endpoint] = parse_broker_list([address.strip()])
            except ConfigError:
                endpoint = ("", 0)
            if not id_.strip().isdecimal() or not 0 < endpoint[1] < 65536:
                raise ConfigError(f"console.broker.http: {word} is not id=host:port.")
            found[int(id_)] = endpoint
        return found

    def check(self) -> None:
        self.http_endpoints()
        if self.read_only or is_loopback(self.http_host):
            return
        if not self.users_file:
            raise ConfigError(
                f"console.read.only has value false and http.host has value {self.http_host}: "
                "changes from other machines need console.users.file."
            )
        if not self.http_tls:
            raise ConfigError(
                f"console.read.only has value false and http.host has value {self.http_host}: "
                "passwords from other machines need http.tls."
            )
