"""Access rules among real clients, real brokers of 0.8.2.2, and the tool of Kafka 3.9.

Clients without a login are User:ANONYMOUS. Loopback has many addresses, by which rules can tell
senders apart.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import TopicAuthorizationFailedError
from kazoo.client import KazooClient

from integration import modern
from integration.harness import Broker, Process, Tools, ZooKeeper, isr, properties, zookeeper_text
from integration.wire import Wire, WireError, entries, entry, wait_until

ACLS = "kafka.admin.AclCommand"
GROUPS = "kafka.admin.ConsumerGroupCommand"
ANONYMOUS = "User:ANONYMOUS"
PROPS = {
    "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
    "num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
}
TOPIC_CODE, GROUP_CODE = 29, 30
BROKERS, WRITER, STRANGER = "127.0.0.1", "127.0.0.3", "127.0.0.2"


class From(Wire):
    """A connection from one of the machine's addresses."""

    def __init__(self, port: int, source: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 30, (source, 0))


class Rules:
    """kafka-acls, ours or that of Kafka 3.9, on one chroot."""

    def __init__(self, connect: str, tools: Tools) -> None:
        self.connect = connect
        self._tools = tools
        self._where = ("--authorizer-properties", f"zookeeper.connect={connect}")
        client = KazooClient(connect.partition("/")[0], timeout=10)
        client.start(30)
        client.ensure_path("/" + connect.partition("/")[2])
        client.stop()
        client.close()

    def ours(self, *words: str) -> str:
        done = self._tools.run(ACLS, *self._where, *words)
        assert (done.code, done.err) == (0, "")
        return done.out

    def theirs(self, *words: str) -> str:
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{modern.directory()}/*", ACLS]
        done = subprocess.run(
            [*command, *self._where, *words],
            capture_output=True,
            text=True,
            timeout=180,
            check=True,
        )
        return done.stdout

    def allow(self, *words: str, to: str = ANONYMOUS) -> None:
        self.ours("--add", "--allow-principal", to, *words)


def blocks(output: str) -> dict[str, set[str]]:
    """Heading -> its rules. The order of either is not fixed, and the first has another margin."""
    found: dict[str, set[str]] = {}
    heading = ""
    for line in output.splitlines():
        if line.startswith(("Current", "Adding")):
            heading = line
            found[heading] = set()
        elif "principal=" in line:
            found[heading].add(line.strip())
    return found


def current(output: str) -> dict[str, set[str]]:
    return {h: rules for h, rules in blocks(output).items() if h.startswith("Current")}


needs_modern = pytest.mark.skipif(bool(modern.missing()), reason=modern.missing())


@pytest.mark.scenario("security-38")
@needs_modern
def test_38_both_tools_show_and_change_the_same_rules(
    zookeeper: ZooKeeper, our_tools: Tools
) -> None:
    rules = Rules(f"{zookeeper.connect}/acls-tools", our_tools)
    dn = "User:CN=a b,OU=o\\,x"
    add = ("--add", "--allow-principal", dn, "--allow-principal", "User:bob")
    given = (
        (rules.theirs, (*add, "--producer", "--topic", "t")),
        (rules.ours, (*add, "--consumer", "--topic", "t", "--group", "*")),
        (rules.theirs, ("--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1",
            "--operation", "Read", "--topic", "pre", "--resource-pattern-type", "prefixed")),
        (rules.ours, ("--add", "--deny-principal", "User:eve", "--operation", "Describe",
            "--group", "pre", "--resource-pattern-type", "prefixed")),
        (rules.ours, (*add, "--cluster", "--operation", "ClusterAction")),
        (rules.theirs, (*add, "--producer", "--idempotent", "--transactional-id", "x",
            "--topic", "t")),
    )  # fmt: skip
    for tool, words in given:
        tool(*words)
    theirs, ours = rules.theirs("--list"), rules.ours("--list")
    assert current(ours) == current(theirs)
    assert len(current(ours)) == 6
    for words in (("--topic", "t"), ("--topic", "prefix", "--resource-pattern-type", "match")):
        assert current(rules.ours("--list", *words)) == current(rules.theirs("--list", *words))
    rules.theirs("--remove", "--force", "--allow-principal", dn, "--producer", "--topic", "t")
    rules.ours("--remove", "--force", "--topic", "pre", "--resource-pattern-type", "prefixed")
    rules.theirs("--remove", "--force", "--cluster")
    assert current(rules.ours("--list")) == current(rules.theirs("--list"))
    assert zookeeper_text(rules.connect, "/kafka-acl/Cluster/kafka-cluster") is None


@pytest.fixture(scope="module")
def closed(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory, our_tools: Tools
) -> Iterator[tuple[Broker, Rules]]:
    """A broker that serves everybody ``open``; ``closed`` may be described alone."""
    rules = Rules(f"{zookeeper.connect}/acls", our_tools)
    rules.allow("--cluster", "--operation", "ClusterAction", "--allow-host", BROKERS)
    rules.allow("--topic", "*", "--operation", "Describe")
    rules.allow("--topic", "open", "--operation", "All")
    rules.allow("--group", "mine", "--operation", "Read")
    broker = Broker("ours", tmp_path_factory.mktemp("closed"), rules.connect, props=PROPS).start()
    for topic in ("open", "closed"):
        broker.create_topic(topic)
    yield broker, rules
    broker.kill()


def audit(broker: Broker) -> list[str]:
    return (broker.directory / "kafka-authorizer.log").read_text().splitlines()


@pytest.mark.scenario("security-28")
def test_librdkafka_is_refused_by_name(closed: tuple[Broker, Rules]) -> None:
    broker, _ = closed
    told: dict[str, KafkaError | None] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        told[str(message.topic())] = error

    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for topic in ("open", "closed"):
        producer.produce(topic, b"from librdkafka", on_delivery=delivered)
    assert producer.flush(60) == 0
    assert told["open"] is None
    assert told["closed"] is not None
    assert told["closed"].name() == "TOPIC_AUTHORIZATION_FAILED"
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "yours", "log_level": 0})
    consumer.subscribe(["open"])
    try:
        assert _error_of(consumer) == "GROUP_AUTHORIZATION_FAILED"
    finally:
        consumer.close()


def _error_of(consumer: Consumer) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        error = None if message is None else message.error()
        if error is not None:
            return error.name()
    raise AssertionError("no error within a minute")


@pytest.mark.scenario("security-28")
def test_kafka_python_is_refused_by_name(closed: tuple[Broker, Rules]) -> None:
    broker, _ = closed
    where = {"bootstrap_servers": broker.address, "api_version": (0, 8, 2)}
    producer = KafkaProducer(**where, retries=0)
    producer.send("open", b"from kafka-python").get(60)
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send("closed", b"x").get(60)
    producer.close()
    consumer = KafkaConsumer("closed", **where, group_id=None, auto_offset_reset="earliest")
    with pytest.raises(TopicAuthorizationFailedError):
        consumer.poll(30_000)
    consumer.close()


@pytest.mark.scenario("security-41")
@pytest.mark.original
def test_41_the_originals_tools_are_refused_and_stay_quiet(
    closed: tuple[Broker, Rules], tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    broker, _ = closed
    tools = Tools("original", tmp_path)
    for topic, words in (("open", ""), ("closed", "FailedToSendMessageException")):
        done = tools.run(
            "kafka.tools.ConsoleProducer",
            *("--broker-list", broker.address, "--topic", topic, "--sync"),
            *("--request-required-acks", "1", "--retry-backoff-ms", "10"),
            stdin="from the original\n",
        )
        assert words in done.out + done.err
        assert bool(words) == ("Exception" in done.out + done.err)
    config = tmp_path / "consumer.properties"
    config.write_text(properties({"group.id": "old", "zookeeper.connect": broker.zookeeper}))
    consumer = tools.background(
        "kafka.tools.ConsoleConsumer",
        *("--zookeeper", broker.zookeeper, "--topic", "closed", "--from-beginning"),
        *("--consumer.config", str(config)),
    )
    launch(consumer)
    consumer.wait_for("UnknownException", 120)
    time.sleep(3)
    assert "from the original" not in consumer.log
    owners = zookeeper_text(broker.zookeeper, "/consumers/old/owners/closed/0")
    assert owners is not None and owners.startswith("old_")
    consumer.kill()
    fetches = [line for line in audit(broker) if "Operation = Read" in line and ":closed " in line]
    assert 1 <= len(fetches) <= 4


@pytest.mark.scenario("security-33")
def test_33_a_refusal_without_acks_closes_the_connection(closed: tuple[Broker, Rules]) -> None:
    broker, _ = closed
    with broker.wire() as wire:
        body = struct.pack(">hii", 0, 1000, 1) + b"\0\6closed" + struct.pack(">ii", 1, 0)
        data = entry(None, b"x")
        body += struct.pack(">i", len(data)) + data
        head = struct.pack(">hhih", 0, 0, 1, 0)
        wire.socket.sendall(struct.pack(">i", len(head + body)) + head + body)
        assert wire.socket.recv(1) == b""
    with broker.wire() as wire:
        assert wire.offset("closed", 0) == 0


@pytest.mark.scenario("security-42")
def test_42_offsets_of_another_group_are_refused(
    closed: tuple[Broker, Rules], our_tools: Tools
) -> None:
    broker, _ = closed
    where = ("--bootstrap-server", broker.address, "--describe", "--group", "yours")
    done = our_tools.run("kafka.admin.ConsumerGroupCommand", *where)
    assert "yours" in done.out + done.err
    assert "GroupAuthorizationFailed" in done.out + done.err
    with broker.wire() as wire:
        assert wire.coordinator_error("yours") == GROUP_CODE
        assert wire.commit("yours", "open", 0, 1) == GROUP_CODE
        assert wire.committed("yours", "open", 0) == (-1, GROUP_CODE)
        wait_until("a coordinator", 60, lambda: wire.coordinator_error("mine") == 0)
        wait_until("a commit", 60, lambda: wire.commit("mine", "open", 0, 1) == 0)
        assert wire.committed("mine", "open", 0) == (1, 0)
        assert wire.commit("mine", "closed", 0, 1) == TOPIC_CODE


@pytest.mark.scenario("security-42")
def test_42_kafka_consumer_groups_is_refused_another_group(
    closed: tuple[Broker, Rules], our_tools: Tools
) -> None:
    broker, _ = closed
    at = ("--bootstrap-server", broker.address, "--group")
    reset = ("--reset-offsets", "--topic", "open", "--to-earliest", "--execute")
    with broker.wire() as wire:
        wait_until("a coordinator", 60, lambda: wire.coordinator_error("mine") == 0)
        wait_until("a commit", 60, lambda: wire.commit("mine", "open", 0, 5) == 0)
        for words in (("--describe",), reset):
            done = our_tools.run(GROUPS, *at, "yours", *words)
            assert done.out.startswith("Error: Executing consumer group command failed due to ")
            assert "GroupAuthorizationFailed" in done.out, done.out + done.err
        assert our_tools.run(GROUPS, *at, "mine", *reset).code == 0
        assert wire.committed("mine", "open", 0) == (0, 0)


@pytest.mark.scenario("security-38")
@needs_modern
def test_38_a_change_by_kafkas_tool_is_followed(closed: tuple[Broker, Rules]) -> None:
    """How long it takes is counted from the end of the tool."""
    broker, rules = closed
    words = ("--allow-principal", ANONYMOUS, "--operation", "Read", "--topic", "clo")
    words += ("--resource-pattern-type", "prefixed")
    with broker.wire() as wire:
        with pytest.raises(WireError) as caught:
            wire.fetch("closed", 0, 0)
        assert caught.value.code == TOPIC_CODE
        rules.theirs("--add", *words)
        began = time.monotonic()
        wait_until("the right to read", 10, lambda: wire.fetch("closed", 0, 0)[0] == 0)
        print(f"followed within {time.monotonic() - began:.3f} s")
        rules.theirs("--remove", "--force", *words)
        wait_until("its end", 10, lambda: _code(wire, "closed") == TOPIC_CODE)


def _code(wire: Wire, topic: str) -> int:
    try:
        wire.fetch(topic, 0, 0)
    except WireError as error:
        return error.code
    return 0


@pytest.mark.scenario("security-40")
def test_40_without_zookeeper_the_last_rules_hold(tmp_path: Path, our_tools: Tools) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper").start()
    rules = Rules(f"{zookeeper.connect}/acls", our_tools)
    rules.allow("--cluster", "--operation", "ClusterAction")
    rules.allow("--topic", "*", "--operation", "Describe")
    rules.allow("--topic", "open", "--operation", "All")
    broker = Broker("ours", tmp_path / "broker", rules.connect, props=PROPS).start()
    try:
        for topic in ("open", "closed"):
            broker.create_topic(topic)
        zookeeper.kill()
        time.sleep(2)  # longer than the session
        with broker.wire() as wire:
            assert (_code(wire, "open"), _code(wire, "closed")) == (0, TOPIC_CODE)
    finally:
        broker.kill()
        zookeeper.kill()


@pytest.mark.scenario("security-37")
@pytest.mark.original
def test_37_an_original_broker_replicates_by_its_address(
    zookeeper: ZooKeeper,
    tmp_path: Path,
    our_tools: Tools,
    launch: Callable[[Process], None],
) -> None:
    rules = Rules(f"{zookeeper.connect}/acls-mixed", our_tools)
    rules.allow("--cluster", "--operation", "ClusterAction", "--allow-host", BROKERS)
    rules.allow("--topic", "mixed", "--operation", "All", "--allow-host", WRITER)
    pair = []
    for broker_id, kind in enumerate(("ours", "original")):
        props = PROPS if kind == "ours" else {}
        broker = Broker(
            kind, tmp_path / kind, rules.connect, broker_id=broker_id,
            props={"replica.lag.time.max.ms": 10_000, **props},
        )  # fmt: skip
        launch(broker)
        pair.append(broker.start())
    ours, theirs = pair
    client = KazooClient(rules.connect, timeout=10)
    client.start(30)
    payload = json.dumps({"version": 1, "partitions": {"0": [0, 1], "1": [1, 0]}}).encode()
    client.create("/brokers/topics/mixed", payload, makepath=True)
    client.stop()
    client.close()

    for partition in (0, 1):
        wait_until("both in sync", 60, lambda p=partition: isr(rules.connect, "mixed", p) == [0, 1])
    with From(ours.port, WRITER) as wire:
        wait_until("ours leads", 60, lambda: wire.leader("mixed", 0) == 0)
        wait_until("a message", 60, lambda: wire.produce("mixed", 0, entry(None, b"a"), -1) >= 0)
    with theirs.wire() as wire:
        wait_until("they lead", 60, lambda: wire.leader("mixed", 1) == 1)
        wait_until("a message", 60, lambda: wire.produce("mixed", 1, entry(None, b"b"), -1) >= 0)
    for source in (STRANGER, BROKERS):
        with From(ours.port, source) as wire:
            assert _code(wire, "mixed") == TOPIC_CODE
    with From(ours.port, STRANGER) as wire:
        # UpdateMetadata of controller 9 in epoch 2^31-1: no partitions, no brokers.
        update = struct.pack(">hhih", 6, 0, 1, 0) + struct.pack(">iiii", 9, 2**31 - 1, 0, 0)
        reply = wire.call(struct.pack(">i", len(update)) + update)
        assert reply == struct.pack(">h", 31)
    ours.stop()
    with theirs.wire() as wire:
        wait_until("they lead both", 60, lambda: wire.leader("mixed", 0) == 1)
        _, data = wire.fetch("mixed", 0, 0)
        assert {each.value for each in entries(data)} == {b"a"}
    ours.start()
    wait_until("both in sync again", 60, lambda: isr(rules.connect, "mixed", 1) == [0, 1])
    theirs.stop()
    with From(ours.port, WRITER) as wire:
        wait_until("ours leads both", 60, lambda: wire.leader("mixed", 1) == 0)
        _, data = wire.fetch("mixed", 1, 0)
        assert {each.value for each in entries(data)} == {b"b"}
