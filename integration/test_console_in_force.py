"""Changes made with the console, as real clients and brokers feel them: rules, users, quotas and
settings of brokers; and its events and the leader that it foretells, as they come true."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from confluent_kafka import KafkaException, Producer

from integration.console import Console
from integration.harness import Broker, ZooKeeper, free_port, partition_state
from integration.wire import entry, wait_until

WAIT_S = 60
MECHANISM, PASSWORD = "SCRAM-SHA-512", "pencil & <co>"
RATE = 50_000
LEADERS_RATE = "leader.replication.throttled.rate"
RULE = {
    "resource_type": "TOPIC",
    "pattern_type": "LITERAL",
    "resource_name": "guarded",
    "principal": "User:ann",
    "permission": "ALLOW",
    "operation": "WRITE",
    "host": "*",
}
PROPS = {
    "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
    # Brokers and the console do not log in.
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": MECHANISM,
    "quota.window.num": 2,
    "replication.quota.window.num": 2,
    # A throttled follower gets one fetch at once.
    "message.max.bytes": 10_000,
    "replica.fetch.max.bytes": 20_000,
}


class Cluster(NamedTuple):
    """``logins``: the address of broker 1 for clients that log in."""

    brokers: dict[int, Broker]
    logins: str
    console: Console

    @property
    def connect(self) -> str:
        return self.brokers[1].zookeeper

    def data(self, path: str) -> Any:
        return json.loads(self.console.ask(path, Accept="application/json")[1])

    def change(self, form_on: str, path: str, **fields: object) -> None:
        status, page = self.console.submit(form_on, path, **fields)
        assert status == 200, page

    def state(self, topic: str) -> Any:
        """Of the only partition, in ZooKeeper."""
        return partition_state(self.connect, topic)

    def events(self, kind: str) -> list[str]:
        return [each["text"] for each in self.data(f"/events?kind={kind}")["events"]]


@pytest.fixture(scope="module")
def cluster(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    connect = f"{zookeeper.connect}/console-in-force"
    directory = tmp_path_factory.mktemp("in-force")
    brokers, logins = {}, free_port()
    for number in (1, 2, 3):
        port = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        if number == 1:
            listeners += f",SASL_PLAINTEXT://127.0.0.1:{logins}"
        props = {**PROPS, "listeners": listeners}
        place = directory / f"b{number}"
        brokers[number] = Broker("ours", place, connect, broker_id=number, port=port, props=props)
    console = Console(connect, directory / "console", **{"console.read.only": "false"})
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(Broker.start, brokers.values()))
        console.begin()
        console.wait_until_shown("/", "Brokers up 3 of 3")
        yield Cluster(brokers, f"127.0.0.1:{logins}", console)
        assert " ERROR " not in console.log
    finally:
        for process in (console, *brokers.values()):
            process.kill()


class Ann:
    """A producer that logs in with a password."""

    def __init__(self, cluster: Cluster, password: str = PASSWORD) -> None:
        self._errors: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.logins,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": MECHANISM,
                "sasl.username": "ann",
                "sasl.password": password,
                "message.timeout.ms": 20_000,
                "linger.ms": 0,
                "log_level": 0,
                "error_cb": lambda error: self._errors.append(error.name()),
            }
        )

    def send(self, size: int = 10) -> str:
        """The outcome for one message: "" if it was written, or the name of the error."""
        told: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            told.append(error.name() if error else "")

        try:
            self._producer.produce("guarded", bytes(size), on_delivery=delivered)
        except KafkaException as refusal:  # it knows that already
            return str(refusal.args[0].name())
        wait_until("its outcome", WAIT_S, lambda: self._producer.poll(0.1) and told)
        return told[0]

    def is_refused(self) -> bool:
        """Whether the login fails."""

        def failed() -> bool:
            self._producer.poll(0.1)
            return "_AUTHENTICATION" in self._errors

        wait_until("the refusal", WAIT_S, failed)
        return True


def test_a_user_and_a_rule(cluster: Cluster) -> None:
    cluster.brokers[1].create_topic("guarded")
    assert Ann(cluster).is_refused()
    fields = {"user": "ann", "mechanism": MECHANISM, "iterations": 4096}
    cluster.change("/users/add", "/users/add", **fields, password=PASSWORD, again=PASSWORD)
    cluster.console.wait_until_shown("/users", "ann - 4,096")
    time.sleep(1)  # brokers follow within a second
    assert Ann(cluster, "pen").is_refused()
    assert Ann(cluster).send() == "TOPIC_AUTHORIZATION_FAILED"
    rule = urlencode(RULE)
    cluster.change(f"/acls/add?{rule}&check=1", "/acls/add")
    wait_until("the right", WAIT_S, lambda: Ann(cluster).send() == "")
    [told] = cluster.data("/acls?principal=User%3Aann")["acls"]
    assert told == {**told, **RULE}
    cluster.change(f"/acls/delete?{rule}", "/acls/delete")
    refusal = "TOPIC_AUTHORIZATION_FAILED"
    wait_until("its end", WAIT_S, lambda: Ann(cluster).send() == refusal)
    assert cluster.data("/acls")["acls"] == []
    assert len(cluster.events("access")) == 3


def test_a_quota(cluster: Cluster) -> None:
    rule = urlencode(RULE)
    cluster.change(f"/acls/add?{rule}&check=1", "/acls/add")
    wait_until("the right", WAIT_S, lambda: Ann(cluster).send() == "")
    ann = Ann(cluster)
    who = {"user_is": "named", "user": "ann", "client_id_is": "", "ip_is": ""}
    form = "/quotas/set"
    cluster.change(form, form, **who, producer_byte_rate=f"{RATE // 1000} KB/s")
    time.sleep(1)

    def rate(seconds: float) -> float:
        """Bytes a second, after what was saved."""
        for _ in range(2 * RATE // 9000):
            ann.send(9000)
        began, sent = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            assert ann.send(9000) == ""
            sent += 9000
        return sent / (time.monotonic() - began)

    assert 0.5 * RATE < rate(3) < 1.3 * RATE
    holder = urlencode({"user_is": "named", "user": "ann"})
    cluster.change(f"/quotas/remove?{holder}", "/quotas/remove")
    time.sleep(1)
    assert rate(0.5) > 2 * RATE


def test_a_death_as_it_was_foretold_and_a_throttled_return(cluster: Cluster) -> None:
    """Broker 2 leads; what it missed comes slowly while the leader is throttled."""
    brokers = cluster.brokers
    throttled = {f"{role}.replication.throttled.replicas": "*" for role in ("leader", "follower")}
    brokers[2].create_topic("kept", config=throttled, replicas=[2, 3, 1])

    def foretold() -> list[Any]:
        found = cluster.data("/brokers/2/what-if").get("new_leaders", [])
        return [each for each in found if each["topic"] == "kept"]

    wait_until("all in sync", WAIT_S, lambda: set(cluster.state("kept")["isr"]) == {1, 2, 3})
    wait_until("the look of the console", WAIT_S, foretold)
    [next_one] = foretold()
    assert (next_one["before"], next_one["candidates"]) == (2, [])
    brokers[2].kill()
    wait_until("another leader", WAIT_S, lambda: cluster.state("kept")["leader"] not in (-1, 2))
    leader = next_one["leader"]
    assert cluster.state("kept")["leader"] == leader
    named = f"Broker 2 ({brokers[2].address})"
    wait_until("its death", WAIT_S, lambda: f"{named} went down" in cluster.events("broker"))

    form = f"/brokers/{leader}/settings"
    cluster.change(form, form, **{f"broker.{LEADERS_RATE}": "1 KB/s"})
    [row] = [each for each in cluster.data(form)["settings"] if each["name"] == LEADERS_RATE]
    assert (row["value"], row["source"]) == ("1000", "this broker")
    time.sleep(1)
    with brokers[leader].wire() as wire:
        for _ in range(30):
            wire.produce("kept", 0, entry(None, bytes(9000)))
    brokers[2].start()
    wait_until("its return", WAIT_S, lambda: f"{named} came back" in cluster.events("broker"))
    time.sleep(3)
    assert 2 not in cluster.state("kept")["isr"]
    cluster.change(form, form, **{f"broker.{LEADERS_RATE}": ""})
    wait_until("all in sync", WAIT_S, lambda: 2 in cluster.state("kept")["isr"])
    again = "Broker 2 is in sync again in "
    wait_until("that", WAIT_S, lambda: any(e.startswith(again) for e in cluster.events("replica")))
