"""A cluster of three changes from open to TLS between brokers and then to access rules.

One broker is restarted at a time, while a producer and a consumer of 0.8.2.2, whose settings never
change, are at work.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import pytest

from integration.certificates import Authority
from integration.harness import (
    Broker,
    Process,
    Tools,
    ZooKeeper,
    environment,
    free_port,
    properties,
    zookeeper_text,
)
from integration.test_acls import TOPIC_CODE, From, Rules
from integration.wire import WireError, entry, wait_until

TOPIC = "orders"
PARTITIONS = 3
STRANGER = "127.0.0.2"
WAIT_S = 120
PAUSE_S = 0.1  # between two messages
END_S = 600  # for what waits in the pipe to the producer


class Sender(threading.Thread):
    """The console producer of 0.8.2.2 that waits for all replicas; lines are numbers."""

    def __init__(self, tools: Tools, brokers: str) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self._stopped = threading.Event()
        command = tools.command(
            "kafka.tools.ConsoleProducer",
            *("--broker-list", brokers, "--topic", TOPIC, "--sync"),
            *("--request-required-acks", "-1", "--message-send-max-retries", "600"),
            *("--retry-backoff-ms", "100"),
        )
        self._log = (tools.directory / "producer.log").open("wb")
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment(tools.directory),
        )
        self._log_path = tools.directory / "producer.log"

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def run(self) -> None:
        stdin: IO[bytes] | None = self._child.stdin
        assert stdin is not None
        while not self._stopped.is_set():
            stdin.write(b"%d\n" % self.sent)
            stdin.flush()
            self.sent += 1
            time.sleep(PAUSE_S)
        stdin.close()

    def finish(self) -> int:
        """How many lines were given to the producer, which has ended."""
        self._stopped.set()
        self.join(WAIT_S)
        assert self._child.wait(END_S) == 0
        return self.sent

    def kill(self) -> None:
        self._stopped.set()
        self._child.kill()
        self._child.wait()
        self._log.close()


class Cluster:
    """Three brokers and the settings that they have besides those of the beginning."""

    def __init__(self, directory: Path, connect: str, launch: Callable[[Process], None]) -> None:
        self.connect = connect
        self.authority = Authority(directory / "authority")
        self.brokers = []
        self.tls_ports = [free_port() for _ in range(3)]
        for number in range(3):
            broker = Broker(
                "ours",
                directory / f"b{number}",
                connect,
                broker_id=number,
                props={
                    "min.insync.replicas": 2,
                    "offsets.topic.num.partitions": 1,
                    "offsets.topic.replication.factor": 3,
                    "default.replication.factor": 3,
                    "zookeeper.session.timeout.ms": 6000,
                },
            )
            launch(broker)
            self.brokers.append(broker.start())

    @property
    def addresses(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    def roll(self, settings: Callable[[int], Mapping[str, object]]) -> None:
        """Add settings to one broker after the other; each has to be in sync before the next."""
        for number, broker in enumerate(self.brokers):
            with broker.config.open("a") as file:
                file.write(properties(settings(number)))
            assert broker.stop() == 143
            broker.start()
            wait_until(f"all in sync after {number}", WAIT_S, self.all_in_sync)

    def all_in_sync(self) -> bool:
        for partition in range(PARTITIONS):
            path = f"/brokers/topics/{TOPIC}/partitions/{partition}/state"
            node = json.loads(zookeeper_text(self.connect, path) or "{}")
            if sorted(node.get("isr", [])) != [0, 1, 2]:
                return False
        return True


@pytest.fixture
def cluster(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> Iterator[Cluster]:
    found = Cluster(tmp_path, f"{zookeeper.connect}/rolling", launch)
    client = zookeeper.client("/rolling")
    payload = {str(p): [p, (p + 1) % 3, (p + 2) % 3] for p in range(PARTITIONS)}
    data = json.dumps({"version": 1, "partitions": payload}).encode()
    client.create(f"/brokers/topics/{TOPIC}", data, makepath=True)
    client.stop()
    client.close()
    wait_until("all in sync at first", WAIT_S, found.all_in_sync)
    yield found


@pytest.mark.original
@pytest.mark.slow
def test_from_open_to_tls_between_brokers_and_rules(
    cluster: Cluster, our_tools: Tools, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    tools = Tools("original", tmp_path / "clients")
    config = tmp_path / "consumer.properties"
    config.write_text(properties({"group.id": "old", "zookeeper.connect": cluster.connect}))
    consumer = tools.background(
        "kafka.tools.ConsoleConsumer",
        *("--zookeeper", cluster.connect, "--topic", TOPIC, "--from-beginning"),
        *("--consumer.config", str(config)),
    )
    launch(consumer)
    sender = Sender(tools, cluster.addresses)
    sender.start()
    try:
        _change(cluster, Rules(cluster.connect, our_tools), consumer)
        count = sender.finish()
    finally:
        sender.kill()
    assert count > 9 * 5  # under load in each of the restarts
    assert "FailedToSendMessageException" not in sender.log
    wanted = {str(number) for number in range(count)}

    def missing() -> set[str]:
        return wanted - set(consumer.log.splitlines())

    wait_until("all messages", WAIT_S, lambda: not missing())
    found = [line for line in consumer.log.splitlines() if line.isdecimal()]
    print(f"{count} messages sent, {len(found)} read, during nine restarts")
    _strangers_are_refused(cluster)


def _change(cluster: Cluster, rules: Rules, consumer: Process) -> None:
    def progresses(step: str) -> None:
        before = len(consumer.log)
        wait_until(f"messages after {step}", WAIT_S, lambda: len(consumer.log) > before)

    progresses("the start")
    cluster.roll(
        lambda number: {
            "listeners": f"PLAINTEXT://127.0.0.1:{cluster.brokers[number].port},"
            f"SSL://127.0.0.1:{cluster.tls_ports[number]}",
            "ssl.keystore.location": cluster.authority.issue(f"broker{number}"),
            "ssl.truststore.location": cluster.authority.path,
            "ssl.client.auth": "required",
        }
    )
    progresses("the listeners")
    cluster.roll(lambda number: {"security.inter.broker.protocol": "SSL"})
    progresses("TLS between brokers")
    # Nobody but a broker with its certificate may replicate: that is done over TLS.
    for number in range(3):
        rules.allow("--cluster", "--operation", "ClusterAction", to=f"User:CN=broker{number}")
    rules.allow("--topic", TOPIC, "--operation", "All", "--allow-host", "127.0.0.1")
    rules.allow("--topic", "*", "--operation", "Describe")
    cluster.roll(
        lambda number: {"authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer"}
    )
    progresses("the rules")


def _strangers_are_refused(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        with From(broker.port, STRANGER) as wire:
            leader = wire.leader(TOPIC, broker.broker_id)
        port = cluster.brokers[leader].port
        with From(port, STRANGER) as wire:
            for call in (
                lambda w=wire, p=broker.broker_id: w.fetch(TOPIC, p, 0),
                lambda w=wire, p=broker.broker_id: w.produce(TOPIC, p, entry(None, b"x")),
            ):
                with pytest.raises(WireError) as caught:
                    call()
                assert caught.value.code == TOPIC_CODE
