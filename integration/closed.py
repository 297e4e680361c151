"""Clusters that have only a listener for logins over TLS, and rules.

Alice may do everything with topics and groups named ``alice-*``, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from integration.certificates import Authority
from integration.harness import Broker, Result, Tools, properties
from integration.sasl import PLAIN_MODULE, USERS, jaas
from integration.test_acls import PROPS, Rules
from kafka08.producer.kafka_producer import KafkaProducer

WAIT_S = 240
OFFSETS = "kafka.tools.GetOffsetShell"
TOPICS = "kafka.admin.TopicCommand"
ALICE = "User:alice"


class Closed(Broker):
    """``port`` is the only one, with TLS and logins."""

    def __init__(self, directory: Path, zookeeper: str, authority: Authority) -> None:
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        super().__init__("ours", directory, zookeeper)
        with self.config.open("a") as file:
            file.write(
                properties(
                    {
                        **PROPS,
                        "listeners": f"SASL_SSL://127.0.0.1:{self.port}",
                        "security.inter.broker.protocol": "SASL_SSL",
                        "sasl.mechanism.inter.broker.protocol": "PLAIN",
                        "sasl.enabled.mechanisms": "PLAIN",
                        "sasl.jaas.config": f'{PLAIN_MODULE} required username="admin" '
                        f'password="{USERS["admin"]}" {users};',
                        "super.users": "User:admin",
                        "ssl.keystore.location": authority.issue("broker"),
                        "ssl.truststore.location": authority.path,
                        "zookeeper.session.timeout.ms": 6000,
                        "zookeeper.connection.timeout.ms": 60000,
                    }
                )
            )
        self.config.chmod(0o600)


class Place:
    """Such brokers, each a cluster of its own, and the settings with which alice uses them."""

    def __init__(
        self, directory: Path, connect: str, tools: Tools, names: Sequence[str] = ("one",)
    ) -> None:
        self.tools = tools
        self.directory = directory
        self.authority = Authority(directory / "authority")
        self.login = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": jaas("alice", USERS["alice"]),
            "ssl.truststore.location": str(self.authority.path),
        }
        self.brokers = []
        for name in names:
            rules = Rules(f"{connect}-{name}", tools)
            named = ("alice-", "--resource-pattern-type", "prefixed")
            rules.allow("--topic", *named, "--group", *named[:1], "--operation", "All", to=ALICE)
            rules.allow("--group", "connect-lines", "--operation", "Read", to=ALICE)
            self.brokers.append(Closed(directory / name, rules.connect, self.authority))

    def start(self) -> None:
        for broker in self.brokers:
            broker.start(WAIT_S)

    def file(self, path: Path, **values: object) -> str:
        """A file of settings with alice's login."""
        text = properties({key.replace("_", "."): value for key, value in values.items()})
        path.write_text(text + properties(self.login))
        path.chmod(0o600)
        return str(path)

    def run(self, class_name: str, *words: str) -> Result:
        return self.tools.run(class_name, *words, timeout=WAIT_S)

    def create(self, *topics: str) -> None:
        for topic in topics:
            for broker in self.brokers:
                at = ("--zookeeper", broker.zookeeper, "--create", "--topic", topic)
                done = self.run(TOPICS, *at, "--partitions", "1", "--replication-factor", "1")
                assert done.code == 0, done.err

    def send(self, topic: str, *values: bytes) -> None:
        settings = {"bootstrap.servers": self.brokers[0].address, "retries": 50, **self.login}
        with KafkaProducer(settings) as producer:
            for value in values:
                producer.send(topic, value).result(WAIT_S)

    def end(self, broker: Broker, topic: str, directory: Path) -> Result:
        """GetOffsetShell's answer."""
        config = ("--command-config", self.file(directory / "command.properties"))
        where = ("--broker-list", broker.address, "--topic", topic, "--time", "-1")
        return self.run(OFFSETS, *where, *config)

    def kill(self) -> None:
        for broker in self.brokers:
            broker.kill()

    def length(self, broker: Broker, topic: str, directory: Path) -> int:
        """The number of records of the topic. Raises OSError without an answer."""
        found = self.end(broker, topic, directory)
        name, _, count = found.out.strip().rpartition(":")
        if name != f"{topic}:0":
            raise OSError(f"{found.out.strip()} {found.err.strip()}")
        return int(count)

    def has(self, broker: Broker, topic: str, count: int, directory: Path) -> bool:
        """True if the topic has so many records. Raises OSError with any other answer."""
        found = self.end(broker, topic, directory)
        if found.lines != [f"{topic}:0:{count}"]:
            raise OSError(f"not {count} records: {found.out.strip()} {found.err.strip()}")
        return True
