"""kafka-console-start.sh: console and lag exporter in one process, until a signal ends it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

from kafka08.console.app import Console
from kafka08.console.clusters.front import Front
from kafka08.console.clusters.opened import OpenCluster
from kafka08.console.clusters.settings import clusters_of
from kafka08.console.site import Site, root_of
from kafka08.errors import KafkaError
from kafka08.network.http import Bounds, HttpServer, is_loopback
from kafka08.network.tls import Tls, server_context
from kafka08.runtime import GeventRuntime
from kafka08.security.users import load
from kafka08.settings import properties as properties_file

logger = logging.getLogger("kafka.console.KafkaConsole")

USAGE = "USAGE: kafka-console-start.sh [-daemon] kafka-console.properties"
_BODY_BYTES = 4 << 20


class KafkaConsole:
    """All parts of the process. Raises ConfigError, ZkConnectionError, KafkaError."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        found = clusters_of(properties)
        self.config = config = found[0].config
        self._runtime = GeventRuntime()
        users = load(config.users_file, "console.users.file") if config.users_file else None
        tls = Tls(config, server_context) if config.http_tls else None
        self._clusters = [OpenCluster(each, self._runtime) for each in found]
        sites = [each.site for each in self._clusters]
        sleep = self._runtime.sleep
        # Pages need their cluster, and a console of several is wanted without one of them.
        if config.clusters:
            for each in self._clusters:
                each.connect_soon()
        else:
            self._clusters[0].connect()
        self._server = HttpServer(
            config.http_host,
            config.http_port,
            Front(sites, users, sleep) if config.clusters else Console(sites[0], users, sleep),
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
        for each in self._clusters:
            each.site.observer.start()
        self._server.start()
        for each in self._clusters:
            self._log_start(each.site)
        number = received.get()
        self.stop()
        logger.info("The console has ended.")
        return number

    def _log_start(self, site: Site) -> None:
        address = self.address.rstrip("/") + (root_of(site.name) if site.name else "") + "/"
        mode = "read-only" if site.config.read_only else "changes are allowed"
        logger.info("The console of %s is at %s (%s)", site.cluster, address, mode)

    def stop(self) -> None:
        """All clusters at once: one that is away takes its time."""
        self._server.stop()
        tasks = [self._runtime.spawn("console-close", each.close) for each in self._clusters]
        for task in tasks:
            task.join()
        self._runtime.close()


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
