"""kafka-console-start.sh: console and lag exporter in one process, until a signal ends it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

from kafka08.client.security import ClientSecurity, runtime_for
from kafka08.console.app import Console
from kafka08.console.config import CLIENT_ID, CLIENT_PREFIX, ConsoleConfig
from kafka08.console.site import Site
from kafka08.errors import KafkaError
from kafka08.groups.admin import GroupAdmin
from kafka08.network.http import Bounds, HttpServer, is_loopback
from kafka08.network.tls import Tls, server_context
from kafka08.runtime import GeventRuntime
from kafka08.security.users import load
from kafka08.settings import properties as properties_file
from kafka08.zookeeper import access_of
from zk.client import ZkClient

logger = logging.getLogger("kafka.console.KafkaConsole")

USAGE = "USAGE: kafka-console-start.sh [-daemon] kafka-console.properties"
_BODY_BYTES = 4 << 20


class KafkaConsole:
    """All parts of the process. Raises ConfigError, ZkConnectionError, KafkaError."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.config = config = ConsoleConfig.from_properties(properties)
        self._runtime = GeventRuntime()
        security = ClientSecurity.from_properties(
            properties_file.with_prefix(properties, CLIENT_PREFIX)
        )
        self._clients = clients = runtime_for(security, self._runtime)
        users = load(config.users_file, "console.users.file") if config.users_file else None
        tls = Tls(config, server_context) if config.http_tls else None
        self._zk = zk = ZkClient(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            call_timeout_ms=min(config.zookeeper_session_timeout_ms, config.request_timeout_ms),
            gevent=True,
            create_chroot=False,
            access=access_of(config),
        ).start()
        self._groups = GroupAdmin(
            zk,
            timeout_ms=config.request_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
            client_id=CLIENT_ID,
            security=security,
            runtime=clients,
        )
        site = Site(config, zk, self._groups, clients)
        self.observer = site.observer
        self._server = HttpServer(
            config.http_host,
            config.http_port,
            Console(site, users, clients.sleep),
            name="Console",
            allowed_hosts=config.http_allowed_hosts,
            bounds=Bounds(body_bytes=_BODY_BYTES),
            tls=tls,
        )

    @property
    def address(self) -> str:
        host = (
            f"[{self.config.http_host}]" if ":" in self.config.http_host else self.config.http_host
        )
        return f"{'https' if self.config.http_tls else 'http'}://{host}:{self._server.port}/"

    def run(self) -> int:
        """Serve until a signal comes; its number."""
        received = self._runtime.signals()
        if not is_loopback(self.config.http_host) and not self.config.users_file:
            logger.warning(
                "http.host has value %s, and console.users.file is not set: "
                "everybody who reaches this address can read the cluster.",
                self.config.http_host,
            )
        self.observer.start()
        self._server.start()
        mode = "read-only" if self.config.read_only else "changes are allowed"
        logger.info("The console of %s is at %s (%s)", self._zk.connect, self.address, mode)
        number = received.get()
        self._server.stop()
        self.observer.stop()
        self._groups.close()
        self._zk.close()
        for runtime in {self._clients, self._runtime}:
            runtime.close()
        logger.info("The console has ended.")
        return number


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
    return 128 + console.run()
