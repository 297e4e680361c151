"""Settings of later releases: what tools of Kafka 2.8, 3.9 and 4 write, they read here again."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration import builds, modern
from integration.harness import Broker, ZooKeeper, zookeeper_text
from integration.later import programs
from integration.wire import entry, wait_until
from kafka08.settings.later_topics import LaterTopicSettings
from tests.server.test_admin_settings import OF_TOOLS

ROOT = Path(__file__).parents[1]
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
REASSIGN = "kafka.admin.ReassignPartitionsCommand"
LEADER, FOLLOWER = (f"{side}.replication.throttled" for side in ("leader", "follower"))
TIMEOUT_S = 120
REFUSED = [
    ("compression.type", "zstd", "Messages are stored with the codec of their producer."),
    ("preallocate", "true", "Segments grow as messages are appended."),
    ("remote.storage.enable", "true", "There is no remote storage"),
]

Tool = Callable[..., str]


def java(class_path: str, name: str, *args: str) -> str:
    """The output of a program, also if it failed: several tools end with 0 all the same."""
    command = ["java", *builds.HEAP, "-cp", class_path, name, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.stdout + done.stderr


def class_path(version: str) -> str:
    try:
        return programs.tools_class_path(version)
    except programs.MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(
    scope="module",
    params=[modern.VERSION, pytest.param(programs.JAVA[-1], marks=pytest.mark.slow)],
)
def tool(request: pytest.FixtureRequest, modern_broker: Broker) -> Tool:
    jars = class_path(request.param)
    server = ("--bootstrap-server", modern_broker.address)
    return lambda name, *args: java(jars, name, *server, *args)


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def of_topic(topic: str) -> tuple[str, ...]:
    return ("--entity-type", "topics", "--entity-name", topic)


def added(config: dict[str, str]) -> str:
    return ",".join(f"{key}=[{value}]" for key, value in config.items())


def test_the_list_of_settings_is_that_of_the_release() -> None:
    if modern.missing():
        pytest.skip(modern.missing())
    source = ROOT / "integration" / "later" / "ListSettings.java"
    command = ["java", "-cp", f"{modern.directory()}/*", str(source)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd="/"
    )
    stored = (ROOT / "tests" / "golden" / "configs-3.9.csv").read_text(encoding="utf-8")
    assert done.stdout == stored, done.stderr


@pytest.mark.parametrize("writer", OF_TOOLS)
def test_what_tools_write_they_read_again(tool: Tool, modern_broker: Broker, writer: str) -> None:
    topic, config = unique("written"), OF_TOOLS[writer]
    modern_broker.create_topic(topic)
    said = tool(CONFIGS, "--alter", *of_topic(topic), "--add-config", added(config))
    assert f"Completed updating config for topic {topic}." in said
    shown = tool(CONFIGS, "--describe", *of_topic(topic))
    for key, value in config.items():
        assert f"  {key}={value} sensitive=false synonyms={{DYNAMIC_TOPIC_CONFIG:" in shown


def test_a_topic_is_created_with_them(tool: Tool) -> None:
    topic, config = unique("created"), dict(OF_TOOLS["MirrorMaker 2"])
    for key in ("message.format.version", "message.downconversion.enable"):
        del config[key]  # the tool of 4 refuses these before it asks a broker
    words = [word for item in config.items() for word in ("--config", "=".join(item))]
    said = tool(TOPICS, "--create", "--topic", topic, "--partitions", "1", *words)
    assert f"Created topic {topic}." in said, said
    described = tool(TOPICS, "--describe", "--topic", topic)
    for key, value in config.items():
        assert f"{key}={value}" in described


@pytest.mark.parametrize(("key", "value", "reason"), REFUSED)
def test_what_is_refused_is_explained(
    tool: Tool, modern_broker: Broker, key: str, value: str, reason: str
) -> None:
    topic, other = unique("refused"), unique("refused")
    modern_broker.create_topic(topic)
    answers = [
        tool(CONFIGS, "--alter", *of_topic(topic), "--add-config", f"{key}={value}"),
        tool(TOPICS, "--create", "--topic", other, "--config", f"{key}={value}"),
    ]
    for said in answers:
        assert f"{key} has value {value}" in said and reason in said
    assert other not in tool(TOPICS, "--list").splitlines()


def test_defaults_are_shown_as_kafka_has_them(tool: Tool, modern_broker: Broker) -> None:
    topic = unique("defaults")
    modern_broker.create_topic(topic)
    shown = tool(CONFIGS, "--describe", "--all", *of_topic(topic)).splitlines()
    for described in LaterTopicSettings.settings().values():
        value = described.default
        line = f"  {described.key}={value} sensitive=false synonyms={{DEFAULT_CONFIG:"
        assert any(each.startswith(line) for each in shown), line
    assert f"  {LEADER}.replicas= sensitive=false" in "\n".join(shown)


def test_rates_of_brokers(tool: Tool, modern_broker: Broker) -> None:
    own = ("--entity-type", "brokers", "--entity-name", "0")
    every = ("--entity-type", "brokers", "--entity-default")
    for entity, rate in ((every, 500), (own, 70)):
        said = tool(CONFIGS, "--alter", *entity, "--add-config", f"{LEADER}.rate={rate}")
        assert "Completed updating" in said
    try:
        assert f"{LEADER}.rate=500" in tool(CONFIGS, "--describe", *every)
        shown = tool(CONFIGS, "--describe", *own)
        assert f"{LEADER}.rate=70 sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:" in shown
        assert f"DYNAMIC_DEFAULT_BROKER_CONFIG:{LEADER}.rate=500" in shown
    finally:
        for entity in (own, every):
            tool(CONFIGS, "--alter", *entity, "--delete-config", f"{LEADER}.rate")
    assert f"{LEADER}.rate" not in tool(CONFIGS, "--describe", *own)
    said = tool(CONFIGS, "--alter", *own, "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads cannot be changed while the broker runs" in said


# Throttled moves


@pytest.fixture
def pair(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[list[Broker]]:
    chroot = f"{zookeeper.connect}/{unique('throttled')}"
    brokers = [
        Broker("ours", tmp_path / str(number), chroot, broker_id=number) for number in (0, 1)
    ]
    for broker in brokers:
        broker.start()
    yield brokers
    for broker in brokers:
        broker.kill()
        assert " ERROR " not in broker.log


def test_a_move_with_a_throttle_by_kafka_2_8(pair: list[Broker], tmp_path: Path) -> None:
    """2.8 is the last release whose tool moves partitions through ZooKeeper. At 100 bytes a second
    the copy would take hours; without the throttle it is there in a moment. One fetch, of 1 MiB,
    passes before a rate is used up."""
    first, second = pair
    topic, value = unique("moved"), b"x" * 100_000
    jars = class_path("2.8.2")
    first.create_topic(topic)
    with first.wire() as wire:
        for _ in range(50):
            wire.produce(topic, 0, entry(None, value))
    plan = tmp_path / "plan.json"
    moved = [{"topic": topic, "partition": 0, "replicas": [0, 1]}]
    plan.write_text(json.dumps({"version": 1, "partitions": moved}))
    words = ("--zookeeper", first.zookeeper, "--reassignment-json-file", str(plan))
    started = java(jars, REASSIGN, *words, "--execute", "--throttle", "100")
    assert "Successfully started" in started, started
    config = json.loads(zookeeper_text(first.zookeeper, f"/config/topics/{topic}") or "{}")
    assert config["config"] == {f"{LEADER}.replicas": "0:0", f"{FOLLOWER}.replicas": "0:1"}
    wait_until("the rates", 30, lambda: all("100.0 bytes/s" in each.log for each in pair))
    time.sleep(3)  # a copy without a throttle would be complete
    assert copied(second, topic) < 2_500_000
    assert "still in progress" in java(jars, REASSIGN, *words, "--verify")
    for number, broker in enumerate(pair):
        rates = ",".join(f"{side}.rate=100000000" for side in (LEADER, FOLLOWER))
        named = ("--entity-type", "brokers", "--entity-name", str(number))
        server = ("--bootstrap-server", broker.address)
        said = java(jars, CONFIGS, *server, *named, "--alter", "--add-config", rates)
        assert "Completed updating" in said, said
    wait_until("the copy", 60, lambda: copied(second, topic) > 5_000_000)
    wait_until("the end of the move", 60, lambda: moves(first) is None)
    verified = java(jars, REASSIGN, *words, "--verify")
    assert "complete" in verified, verified
    config = json.loads(zookeeper_text(first.zookeeper, f"/config/topics/{topic}") or "{}")
    assert config["config"] == {}, verified


def copied(broker: Broker, topic: str) -> int:
    """Bytes in the log files of the topic's partition 0."""
    files = (broker.log_dir / f"{topic}-0").glob("*.log")
    return sum(file.stat().st_size for file in files)


def moves(broker: Broker) -> str | None:
    return zookeeper_text(broker.zookeeper, "/admin/reassign_partitions")
