"""A broker of a later release, without ZooKeeper: where clusters of 0.8 are mirrored to.

Fetched by Maven into a cache, as ``original`` is. Set KAFKA08_MODERN_DIR to use another directory.
"""

from __future__ import annotations

import base64
import functools
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from integration import maven
from integration.harness import Process, free_port, properties
from integration.wire import Wire, wait_until

VERSION = "3.9.1"
ARTIFACT = f"org.apache.kafka:kafka_2.13:{VERSION}"
# Kafka's packages bring it along; its artifact in Maven logs nowhere.
LOGGING = "org.slf4j:slf4j-reload4j:1.7.36"
JAVA = ("-Xmx512M", "-XX:TieredStopAtLevel=1")
LOG4J = """\
log4j.rootLogger=INFO, stdout
log4j.logger.kafka.request.logger=WARN
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def directory() -> Path:
    default = Path.home() / ".cache" / "kafka08" / f"modern-{VERSION}"
    return Path(os.environ.get("KAFKA08_MODERN_DIR") or default)


@functools.cache
def missing() -> str:
    """Why it cannot run here; empty when it can. Fetches the jars on first use."""
    if shutil.which("java") is None:
        return "no java on PATH to run a later release"
    return maven.fetch(ARTIFACT, directory()) or maven.fetch(LOGGING, _logging())


def _logging() -> Path:
    return directory().with_name(LOGGING.partition(":")[2].replace(":", "-"))


def tool(main: str, *args: str) -> list[str]:
    """The command of a program of that release, by its class."""
    return ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", f"{directory()}/*", main, *args]


def command(directory_: Path, *args: str, java: tuple[str, ...] = JAVA) -> list[str]:
    """The command line of a class and its arguments, which logs to the console by a file in
    ``directory_``. Raises MissingError."""
    log4j = directory_ / "log4j.properties"
    log4j.write_text(LOG4J)
    options = [*java, f"-Dlog4j.configuration=file:{log4j}"]
    return ["java", *options, "-cp", f"{directory()}/*{os.pathsep}{_logging()}/*", *args]


class ModernBroker(Process):
    """Broker and controller in one process, on loopback; with a ``zookeeper`` to connect to a
    cluster in ZooKeeper mode. With ``tls``, settings of certificates, ``tls_port`` takes TLS.
    ``props`` win over the settings given here."""

    def __init__(
        self,
        directory_: Path,
        zookeeper: str | None = None,
        java: tuple[str, ...] = JAVA,
        tls: Mapping[str, object] | None = None,
        props: Mapping[str, object] | None = None,
    ) -> None:
        self.port, controller = free_port(), free_port()
        self.tls_port = free_port() if tls else 0
        self.log_dir = directory_ / "data"
        self.zookeeper = zookeeper
        directory_.mkdir(parents=True, exist_ok=True)
        config = directory_ / "server.properties"
        cluster: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}"
            + (f",SSL://127.0.0.1:{self.tls_port}" if tls else ""),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL",
        }
        if zookeeper is not None:
            listeners = f"PLAINTEXT://127.0.0.1:{self.port}"
            cluster = {"broker.id": 0, "zookeeper.connect": zookeeper, "listeners": listeners}
        values = {
            **cluster,
            "log.dirs": self.log_dir,
            "num.partitions": 3,
            "log.retention.ms": -1,  # tests write messages with times of long ago
            "log.segment.delete.delay.ms": 0,  # benchmarks wait until files are deleted
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            **(tls or {}),
            **(props or {}),
        }
        config.write_text(properties(values))
        self._java = command(directory_, java=java)
        self._config = config
        super().__init__("modern broker", [*self._java, "kafka.Kafka", str(config)], directory_)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> ModernBroker:
        if self.zookeeper is None:
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            format_ = [*self._java, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}"]
            subprocess.run([*format_, "-c", str(self._config)], check=True, capture_output=True)
        self.spawn()
        wait_until("a later release", 180, self._answers)
        return self

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Returns once each partition has a leader."""
        from confluent_kafka.admin import NewTopic

        admin = self._admin()
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)

        def led() -> bool:
            with Wire(self.port) as wire:
                return all(wire.offset(topic, number) == 0 for number in range(partitions))

        wait_until(f"leaders of {topic}", 60, led)

    def delete_topic(self, topic: str) -> None:
        admin = self._admin()
        admin.delete_topics([topic])[topic].result(60)

    def _admin(self) -> Any:
        """To be kept until its results are there: they end with it."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            return bool(self._admin().list_topics(timeout=2).brokers)
        except KafkaException:
            return False
