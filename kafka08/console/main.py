"""kafka-console-start.sh: console and lag exporter in one process, until a signal ends it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from kafka08 import properties as properties_file
from kafka08.client.cluster import ClusterClient, listeners_of
from kafka08.client.security import ClientSecurity, connector_for
from kafka08.connect.config import with_prefix
from kafka08.console.app import Console
from kafka08.console.audit import Audit
from kafka08.console.browser import Browser
from kafka08.console.cluster_state import StateReader
from kafka08.console.config import CLIENT_PREFIX, ConsoleConfig
from kafka08.console.groups import Groups
from kafka08.console.history import History
from kafka08.console.observer import Observer
from kafka08.console.site import Site
from kafka08.errors import KafkaError
from kafka08.groups.admin import GroupAdmin
from kafka08.lag.collector import LagCollector
from kafka08.lag.message_times import MessageTimes
from kafka08.network.channel import Channel
from kafka08.network.http import HttpServer
from kafka08.network.tls import Tls, server_context
from kafka08.runtime import GeventRuntime
from kafka08.security.users import load
from kafka08.zookeeper import access_of
from zk import registry
from zk.client import ZkClient

logger = logging.getLogger("kafka.console.KafkaConsole")

CLIENT_ID = "console"
USAGE = "USAGE: kafka-console-start.sh [-daemon] kafka-console.properties"
_BODY_BYTES = 4 << 20


class KafkaConsole:
    """All parts of the process. Raises ConfigError, ZkConnectionError, KafkaError."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.config = config = ConsoleConfig.from_properties(properties)
        runtime = GeventRuntime()
        security = ClientSecurity.from_properties(with_prefix(properties, CLIENT_PREFIX))
        channel = partial(_Connected, connector=connector_for(security, runtime))
        users = load(config.users_file, "console.users.file") if config.users_file else None
        tls = Tls(config, server_context) if config.http_tls else None
        self._runtime = runtime
        self._zk = zk = ZkClient(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            call_timeout_ms=min(config.zookeeper_session_timeout_ms, config.request_timeout_ms),
            gevent=True,
            create_chroot=False,
            access=access_of(config),
        ).start()

        protocol = security.security_protocol

        def cluster(**options: bool) -> ClusterClient:
            return ClusterClient(
                lambda: listeners_of(registry.live_brokers(zk, protocol), protocol),
                client_id=CLIENT_ID,
                timeout_ms=config.request_timeout_ms,
                runtime=runtime,
                channel=partial(channel, **options),
            )

        self._clusters = [cluster(), cluster(), cluster(), cluster(api_versions=True)]
        self.observer = Observer(
            StateReader(zk, self._clusters[0], runtime.clock),
            LagCollector(self._clusters[1], zk, runtime.clock, MessageTimes(self._clusters[3])),
            History(config.history_path, runtime.clock.millis()),
            config,
            runtime,
        )
        service = GroupAdmin(
            zk,
            timeout_ms=config.request_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
            client_id=CLIENT_ID,
            security=security,
            runtime=runtime,
            channel=channel,
        )
        site = Site(
            config,
            self.observer,
            zk,
            Groups(service, zk),
            Browser(self._clusters[2], config, runtime, channel),
            Audit(config.audit_file, runtime.clock),
            runtime.clock,
        )
        self._server = HttpServer(
            config.http_host,
            config.http_port,
            Console(site, users, runtime.sleep),
            name="Console",
            allowed_hosts=config.http_allowed_hosts,
            body_bytes=_BODY_BYTES,
            tls=tls,
        )
        self._stopping = runtime.event()

    @property
    def address(self) -> str:
        host = (
            f"[{self.config.http_host}]" if ":" in self.config.http_host else self.config.http_host
        )
        return f"{'https' if self.config.http_tls else 'http'}://{host}:{self._server.port}/"

    def run(self) -> None:
        """Serve until it is stopped."""
        if not self.config.is_local and not self.config.users_file:
            logger.warning(
                "http.host has value %s, and console.users.file is not set: "
                "everybody who reaches this address can read the cluster.",
                self.config.http_host,
            )
        self.observer.start()
        self._server.start()
        mode = "read-only" if self.config.read_only else "changes are allowed"
        logger.info("The console of %s is at %s (%s)", self._zk.connect, self.address, mode)
        self._stopping.wait()
        self._server.stop()
        self.observer.stop()
        for cluster in self._clusters:
            cluster.close()
        self._zk.close()
        self._runtime.close()
        logger.info("The console has ended.")

    def run_until_signal(self) -> int:
        """The number of the signal."""
        received = self._runtime.set_by_signals(self._stopping)
        self.run()
        return received[0]


class _Connected(Channel):
    """A channel that connects as ``client.*`` say."""

    def __init__(self, host: str, port: int, *, connector: Any, **options: Any) -> None:
        super().__init__(host, port, **{**options, "runtime": connector})


def main(argv: list[str]) -> int:
    """128 + the signal's number after a clean stop, as servers of the JVM; 1 if the start fails."""
    if len(argv) != 1:
        print(USAGE, file=sys.stderr)
        return 1
    try:
        console = KafkaConsole(properties_file.load(argv[0]))
    except (KafkaError, OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        logger.critical("The console cannot start with %s: %s", argv[0], reason)
        return 1
    return 128 + console.run_until_signal()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
