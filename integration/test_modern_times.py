"""Timestamps as today's clients see them: offsets by time, settings, retention."""

from __future__ import annotations

import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import times_client
from integration.clients import Console, text_records
from integration.harness import Broker, Tools, ZooKeeper
from integration.later import programs
from integration.wire import wait_until

CLIENTS = ("confluent-kafka", "kafka-python")
TIME = 1_600_000_000_000
TIMEOUT_S = 180


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has the newest clients."""
    directory = tmp_path_factory.mktemp("clients")
    venv.create(directory, with_pip=True)
    program = str(directory / "bin" / "python")
    done = subprocess.run(
        [program, "-m", "pip", "install", "-q", *CLIENTS], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"the clients cannot be installed: {done.stderr[-300:]}")
    return program


@pytest.fixture(scope="module")
def broker(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    props = {"api.versions.enable": "true", "log.retention.check.interval.ms": 1000}
    directory = tmp_path_factory.mktemp("times")
    started = Broker("ours", directory, f"{zookeeper.connect}/times", props=props).start()
    yield started
    started.kill()
    assert " ERROR " not in started.log


@pytest.fixture(scope="module")
def our_tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("ours", tmp_path_factory.mktemp("tools"))


def run(python: str, *args: object) -> str:
    words = [python, str(Path(times_client.__file__)), *map(str, args)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert not done.returncode, done.stderr
    return done.stdout


def stamp(python: str, client: str, broker: Broker, topic: str, codec: str, *each: int) -> str:
    args = (client, "stamp", broker.address, topic, codec)
    return run(python, *args, *[TIME + time_ms for time_ms in each])


def times(python: str, client: str, broker: Broker, topic: str, *asked: int) -> list[str]:
    """The offsets for these times, the first one and the last one."""
    args = (client, "times", broker.address, topic)
    return run(python, *args, *[TIME + time_ms for time_ms in asked]).split()


def time_indexes(broker: Broker, topic: str) -> list[Path]:
    return list((broker.log_dir / f"{topic}-0").glob("*.timeindex"))


@pytest.mark.scenario("modern-25", "modern-27", "modern-28")
def test_the_first_message_since_a_time(python: str, broker: Broker) -> None:
    """Also in a compressed batch, and after a kill with a lost time index."""
    topic, forever = "by-time", {"retention.ms": -1}
    broker.create_topic(topic, config=forever)
    for codec, base in (("none", 0), ("gzip", 100)):
        each = [base + time_ms for time_ms in (10, 20, 15, 30)]
        assert not stamp(python, CLIENTS[1], broker, topic, codec, *each)
    asked = (0, 15, 30, 31, 115, 121, 131)
    for client in CLIENTS:
        assert times(python, client, broker, topic, *asked) == [
            "0",
            "1",
            "3",
            "4",
            "5",
            "7",
            "None",
            "0",
            "8",
        ]
    for at in (200, 300, 400):  # enough sets for entries of the indexes
        assert not stamp(python, CLIENTS[0], broker, topic, "none", *range(at, at + 60))
    assert time_indexes(broker, topic)
    broker.kill()
    for path in time_indexes(broker, topic):
        path.unlink()
    broker.start()
    for client in CLIENTS:
        found = times(python, client, broker, topic, *asked, 250, 459, 460)
        assert found == ["0", "1", "3", "4", "5", "7", "8", "58", "187", "None", "0", "188"]
    assert time_indexes(broker, topic)


@pytest.mark.scenario("modern-26")
def test_a_topic_of_0_8_clients_has_no_times_and_no_time_index(
    python: str, broker: Broker, our_tools: Tools
) -> None:
    topic, records = "untimed", text_records()
    broker.create_topic(topic)
    Console(our_tools).write(broker, topic, records, "gzip")
    for client, found in zip(CLIENTS, ("43", "None"), strict=True):
        assert times(python, client, broker, topic, 0) == [found, "0", str(len(records))]
    assert not time_indexes(broker, topic)


def test_our_tools_go_by_the_times_of_messages(
    python: str, broker: Broker, our_tools: Tools
) -> None:
    """Where there are any; segments count for messages of 0.8."""
    timed, untimed = "tools-timed", "tools-untimed"
    for topic in (timed, untimed):
        broker.create_topic(topic, config={"retention.ms": -1})
    assert not stamp(python, CLIENTS[1], broker, timed, "gzip", 10, 20, 30)
    Console(our_tools).write(broker, untimed, text_records(), "none")
    shell = ("kafka.tools.GetOffsetShell", "--topic", timed)
    for asked, found in ((15, "1"), (30, "2")):
        args = ("--bootstrap-server", broker.address, "--time", str(TIME + asked))
        assert our_tools.run(*shell, *args).out == f"{timed}:0:{found}\n"
    args = ("--bootstrap-server", broker.address, "--time", str(TIME + 31))
    assert our_tools.run(*shell, *args).out == ""
    old = ("--broker-list", broker.address, "--time", str(TIME + 15))
    assert our_tools.run(*shell, *old).out == f"{timed}:0:\n"

    where = ("--bootstrap-server", broker.address, "--group", "by-time", "--reset-offsets")

    def reset(topic: str, *words: str) -> str:
        args = (*where, "--topic", topic, *words, "--execute")
        done = our_tools.run("kafka.admin.ConsumerGroupCommand", *args)
        return next(line for line in done.lines if topic in line).split()[-1]

    at = "2020-09-13T12:26:40.0"  # TIME
    assert reset(timed, "--to-datetime", f"{at}15") == "1"
    assert reset(timed, "--to-datetime", f"{at}31") == "3"
    assert reset(timed, "--by-duration", "PT1M") == "3"
    assert reset(untimed, "--to-datetime", f"{at}15") == "0"


@pytest.mark.scenario("modern-30")
@pytest.mark.parametrize("client", CLIENTS)
def test_old_messages_can_be_refused(python: str, broker: Broker, client: str) -> None:
    topic = f"refused-{client}"
    broker.create_topic(topic, config={"message.timestamp.before.max.ms": 1000})
    answer = stamp(python, client, broker, topic, "none", 0)
    assert "invalidtimestamp" in answer.lower().replace("_", "").replace(" ", ""), answer
    assert times(python, client, broker, topic, 0) == ["None", "0", "0"]


@pytest.mark.scenario("modern-30")
def test_sarama_learns_that_a_message_is_too_old(broker: Broker) -> None:
    if reason := programs.missing("sarama"):
        pytest.skip(reason)
    topic = "refused-sarama"
    broker.create_topic(topic, config={"message.timestamp.before.max.ms": 1000})
    with pytest.raises(AssertionError, match="timestamp of the message is out of acceptable range"):
        programs.run("sarama", "write", broker.address, topic, "none", 1, "false")
    with broker.wire() as wire:
        assert wire.offset(topic, 0) == 0


@pytest.mark.scenario("modern-29")
def test_old_messages_are_deleted_by_their_own_time(
    python: str, broker: Broker, our_tools: Tools
) -> None:
    """Messages of 0.8 clients go by the time of their file, which is new."""
    config, records = {"retention.ms": 3_600_000}, text_records()
    for topic in ("old", "new"):
        broker.create_topic(topic, config=config)
    assert not stamp(python, CLIENTS[1], broker, "old", "none", 1, 2, 3)
    Console(our_tools).write(broker, "new", records, "none")

    def is_deleted() -> bool:
        return times(python, CLIENTS[1], broker, "old")[0] == "3"

    wait_until("the retention", 60, is_deleted)
    assert times(python, CLIENTS[1], broker, "new", 0) == ["None", "0", str(len(records))]
