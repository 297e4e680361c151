"""Signals at any moment of a tool's life: it ends at once, without a traceback, and cleans up.

Status 130 is what the JVM ends with after an interrupt; a process that did not come to install
anything dies of the signal itself, which a shell shows as 130 too.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.clients import config_file
from integration.harness import Broker, Tools, ZooKeeper, environment, free_port
from integration.wire import entry, wait_until

END_S = 30
"""Generous: the machine may be busy. Processes that must end soon have a bound of their own."""
SOON_S = 2.0
# The shell, the start of Python, imports, connecting, joining, running.
DELAYS = [0.0, 0.02, 0.05, 0.08, 0.11, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0, 2.5]
GAPS = [0.0, 0.001, 0.01, 0.05]
CONSOLE_CONSUMER = "kafka.tools.ConsoleConsumer"


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


class Running:
    """A tool with an open standard input, its streams in files."""

    def __init__(self, directory: Path, command: list[str]) -> None:
        directory.mkdir(parents=True)
        self._out, self._err = directory / "out", directory / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.began = time.monotonic()
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=environment(directory),
                start_new_session=True,
            )

    @property
    def out(self) -> str:
        return self._out.read_text(errors="replace")

    @property
    def err(self) -> str:
        return self._err.read_text(errors="replace")

    def wait_until_age(self, seconds: float) -> None:
        """Or until it has ended."""
        try:
            self._child.wait(max(0.0, self.began + seconds - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass

    def send(self, number: int) -> None:
        self._child.send_signal(number)

    def end(self, timeout: float = END_S) -> int:
        """Its status as a shell shows it."""
        try:
            status = self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.err}") from None
        finally:
            self._child.kill()
            self._child.communicate()
        return 128 - status if status < 0 else status


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("ours", tmp_path_factory.mktemp("ours"))


@pytest.fixture
def kind() -> str:
    return "ours"


@pytest.fixture(scope="module")
def place(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """A broker with a topic, and the files that tools want."""
    directory = tmp_path_factory.mktemp("place")
    broker = Broker("ours", directory / "broker", f"{zookeeper.connect}/signals").start()
    topic = unique("signals")
    broker.create_topic(topic)
    broker.create_topic("wide", WIDE)
    with broker.wire() as wire:
        wire.produce(topic, 0, b"".join(entry(None, b"message") for _ in range(100)))
    consumer = {"group.id": "mirror", "zookeeper.connect": broker.zookeeper}
    producer = {"metadata.broker.list": broker.address}
    worker = {
        "bootstrap.servers": broker.address,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "offset.storage.file.filename": directory / "offsets",
    }
    lines = directory / "lines"
    lines.write_text("line\n")
    source = {
        "name": "lines",
        "connector.class": "FileStreamSource",
        "file": lines,
        "topic": topic,
    }
    yield {
        "broker": broker.address,
        "zookeeper": broker.zookeeper,
        "topic": topic,
        "log": str(next((directory / "broker" / "data").glob(f"{topic}-0/*.log"))),
        "consumer": str(config_file(directory, "consumer.properties", consumer)),
        "producer": str(config_file(directory, "producer.properties", producer)),
        "worker": str(config_file(directory, "worker.properties", worker)),
        "source": str(config_file(directory, "source.properties", source)),
    }
    broker.kill()


TOOLS = {
    "console-consumer": f"{CONSOLE_CONSUMER} --zookeeper {{zookeeper}} --topic {{topic}} "
    "--from-beginning",
    "console-consumer-brokers": f"{CONSOLE_CONSUMER} --bootstrap-server {{broker}} "
    "--topic {topic} --group brokers",
    "console-producer": "kafka.tools.ConsoleProducer --broker-list {broker} --topic {topic}",
    "console-producer-new": "kafka.tools.ConsoleProducer --bootstrap-server {broker} "
    "--topic {topic}",
    "simple-consumer-shell": "kafka.tools.SimpleConsumerShell --broker-list {broker} "
    "--topic {topic} --partition 0",
    "consumer-perf-test": "kafka.tools.ConsumerPerformance --zookeeper {zookeeper} --topic {topic}"
    " --threads 1",
    "producer-perf-test": "kafka.tools.ProducerPerformance --broker-list {broker} --topics {topic}"
    " --messages 100000000 --message-send-gap-ms 1",
    "new-producer-performance": "org.apache.kafka.clients.tools.ProducerPerformance {topic} "
    "100000000 100 2000 bootstrap.servers={broker}",
    "mirror-maker": "kafka.tools.MirrorMaker --consumer.config {consumer} "
    "--producer.config {producer} --whitelist none",
    "connect-standalone": "org.apache.kafka.connect.cli.ConnectStandalone {worker} {source}",
    "replica-verification": "kafka.tools.ReplicaVerificationTool --broker-list {broker} "
    "--topic-white-list {topic}",
    "replay-log-producer": "kafka.tools.ReplayLogProducer --zookeeper {zookeeper} "
    "--broker-list {broker} --inputtopic {topic} --outputtopic copy",
    "simple-consumer-performance": "kafka.tools.SimpleConsumerPerformance "
    "--server kafka://{broker} --topic {topic}",
    "end-to-end-latency": "kafka.tools.TestEndToEndLatency {broker} {zookeeper} {topic} 100000 "
    "100 1",
    "log-cleaning": "kafka.tools.TestLogCleaning --broker {broker} --zk {zookeeper} "
    "--messages 100 --sleep 60",
    "zookeeper-shell": "org.apache.zookeeper.ZooKeeperMain -server {zookeeper}",
    "topics": "kafka.admin.TopicCommand --zookeeper {zookeeper} --list",
    "consumer-groups": "kafka.admin.ConsumerGroupCommand --zookeeper {zookeeper} --list",
    "dump-log-segments": "kafka.tools.DumpLogSegments --files {log}",
}
# They end by themselves, maybe before the signal comes.
SHORT = {"topics", "consumer-groups", "dump-log-segments", "simple-consumer-performance"}


def words(template: str, **values: object) -> list[str]:
    """Each word filled in by itself: a path may have blanks."""
    return [word.format(**values) for word in template.split()]


@pytest.mark.parametrize("name", TOOLS)
def test_two_interrupts_are_no_traceback(
    name: str, place: dict[str, str], ours: Tools, tmp_path: Path
) -> None:
    command = ours.command(*words(TOOLS[name], **place))
    for number, delay in enumerate(DELAYS):
        running = Running(tmp_path / f"after-{delay}", command)
        running.wait_until_age(delay)
        running.send(signal.SIGINT)
        time.sleep(GAPS[number % len(GAPS)])
        running.send(signal.SIGINT)
        status = running.end()
        shown = f"after {delay} s:\n{running.out[-500:]}\n{running.err}"
        assert "Traceback" not in running.out + running.err, shown
        assert status == 130 or (name in SHORT and status == 0), (status, shown)


@pytest.mark.parametrize("name", sorted(TOOLS.keys() - SHORT))
def test_a_termination_is_143(
    name: str, place: dict[str, str], ours: Tools, tmp_path: Path
) -> None:
    command = ours.command(*words(TOOLS[name], **place))
    for delay in (0.2, 2.0):
        running = Running(tmp_path / f"after-{delay}", command)
        running.wait_until_age(delay)
        running.send(signal.SIGTERM)
        assert (running.end(), "Traceback" in running.err) == (143, False), running.err


WIDE = 60
MEMBERS = {
    "console-consumer": f"{CONSOLE_CONSUMER} --zookeeper {{zookeeper}} --topic wide "
    "--consumer.config {config}",
    "consumer-perf-test": "kafka.tools.ConsumerPerformance --zookeeper {zookeeper} --topic wide "
    "--group {group}",
    "mirror-maker": "kafka.tools.MirrorMaker --consumer.config {config} "
    "--producer.config {producer} --whitelist wide",
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", MEMBERS)
def test_a_member_that_is_ended_early_leaves_nothing(
    name: str, number: int, place: dict[str, str], ours: Tools, tmp_path: Path, zookeeper: ZooKeeper
) -> None:
    """The signal comes while the member takes its partitions, a little later each time.

    With a long session timeout: what is left would stay for the whole test.
    """
    consumer = {"zookeeper.connect": place["zookeeper"], "zookeeper.session.timeout.ms": 20000}
    client = zookeeper.client("/signals")

    def below(path: str) -> list[str]:
        return client.get_children(path) if client.exists(path) else []

    try:
        for owned in range(0, WIDE, 5):
            group = unique("early")
            ids, owners = f"/consumers/{group}/ids", f"/consumers/{group}/owners/wide"
            config = config_file(tmp_path, f"{group}.properties", {"group.id": group, **consumer})
            arguments = words(MEMBERS[name], **place, group=group, config=config)
            running = Running(tmp_path / group, ours.command(*arguments))
            deadline = time.monotonic() + END_S
            while not below(ids) or len(below(owners)) < owned:
                assert time.monotonic() < deadline, running.err
            running.send(number)
            assert running.end() == 128 + number, running.err
            assert "Traceback" not in running.err, running.err
            assert (below(ids), below(owners)) == ([], []), (owned, running.err)
    finally:
        client.stop()
        client.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("gone", ["killed", "hangs", "killed long ago"])
def test_a_consumer_ends_soon_without_zookeeper(
    gone: str, number: int, ours: Tools, tmp_path: Path
) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper").start()
    broker = Broker("ours", tmp_path / "broker", zookeeper.connect).start()
    try:
        topic = unique("gone")
        broker.create_topic(topic)
        with broker.wire() as wire:
            wire.produce(topic, 0, entry(None, b"message"))
        consume = [CONSOLE_CONSUMER, "--zookeeper", zookeeper.connect, "--topic", topic]
        running = Running(tmp_path / "tool", ours.command(*consume, "--from-beginning"))
        wait_until("the first message", END_S, lambda: "message" in running.out)
        if gone == "hangs":
            zookeeper.pause()
        else:
            zookeeper.kill()
        time.sleep(9 if gone == "killed long ago" else 0)
        begin = time.monotonic()
        running.send(number)
        assert running.end() == 128 + number, running.err
        assert time.monotonic() - begin < SOON_S
        assert "Traceback" not in running.err, running.err
        said = [line for line in running.err.splitlines() if not line.startswith("[")]
        assert said[0] == "Consumed 1 messages"
        assert len(said) == 2, running.err
        group = r"/consumers/console-consumer-\d+"
        assert re.fullmatch(f"ZooKeeper does not answer: {group} may stay there", said[1])
    finally:
        broker.kill()
        zookeeper.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("option", [[], ["--from-beginning"], ["--delete-consumer-offsets"]])
def test_a_consumer_ends_soon_where_zookeeper_never_was(
    option: list[str], number: int, ours: Tools, tmp_path: Path
) -> None:
    consume = [CONSOLE_CONSUMER, "--zookeeper", f"127.0.0.1:{free_port()}", "--topic", "t"]
    running = Running(tmp_path / "tool", ours.command(*consume, *option))
    running.wait_until_age(2.5)
    begin = time.monotonic()
    running.send(number)
    assert running.end() == 128 + number, running.err
    assert time.monotonic() - begin < SOON_S
    assert "Traceback" not in running.out + running.err
