"""A unit of brokers: one server.properties, one start and one end for several processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from integration.harness import (
    HOME,
    Broker,
    Process,
    Tools,
    ZooKeeper,
    zookeeper_text,
)
from integration.test_metrics import get
from integration.units import Unit
from integration.wire import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")
pytest.importorskip("prometheus_client")

FIRST, SECOND, ALONE = 10, 11, 20
# The last brokers of a cluster cannot hand over what they lead, and try that again.
PROPS = {
    "delete.topic.enable": "true",
    "api.versions.enable": "true",
    "offsets.topic.num.partitions": 2,
    "controlled.shutdown.retry.backoff.ms": 100,
}


def ready(unit: Unit) -> tuple[int, dict[str, object]]:
    status, body = get(unit.pages, "/health/ready")
    return status, json.loads(body)


@pytest.fixture(scope="module")
def connect(zookeeper: ZooKeeper) -> str:
    return f"{zookeeper.connect}/unit"


@pytest.fixture(scope="module")
def unit(connect: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unit]:
    unit = Unit(tmp_path_factory.mktemp("unit"), connect, broker_id=FIRST, props=PROPS).begin()
    yield unit
    children = unit.children()
    unit.kill()
    for pid in children.values():
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def test_a_client_uses_both(unit: Unit, connect: str) -> None:
    assert sorted(unit.children()) == [FIRST, SECOND]
    assert unit.log_dir.is_dir()
    assert unit.log_dir.with_name("data-1").is_dir()
    bootstrap = {"bootstrap.servers": unit.address}
    admin = confluent_admin.AdminClient(bootstrap)
    topic = confluent_admin.NewTopic("both", 4, 1)
    admin.create_topics([topic])["both"].result(30)
    leaders = {each.leader for each in admin.list_topics("both").topics["both"].partitions.values()}
    assert leaders == {FIRST, SECOND}
    producer = confluent_kafka.Producer(bootstrap)
    for number in range(100):
        producer.produce("both", str(number).encode(), partition=number % 4)
    assert producer.flush(30) == 0
    consumer = confluent_kafka.Consumer(
        {**bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["both"])
    values: set[int] = set()
    deadline = time.monotonic() + 30
    while len(values) < 100 and time.monotonic() < deadline:
        values.update(int(message.value()) for message in consumer.consume(100, 1))
    consumer.close()
    assert values == set(range(100))


def test_no_partition_has_both_replicas_in_the_unit(
    unit: Unit, connect: str, tmp_path: Path, launch: Callable[[Process], None], our_tools: Tools
) -> None:
    alone = Broker("ours", tmp_path / "alone", connect, broker_id=ALONE, props=PROPS)
    launch(alone)
    alone.start()
    admin = confluent_admin.AdminClient({"bootstrap.servers": unit.address})
    wait_until("three brokers", 30, lambda: len(admin.list_topics().brokers) == 3)
    admin.create_topics([confluent_admin.NewTopic("wire", 12, 2)])["wire"].result(30)
    words = ("--create", "--topic", "tool", "--partitions", "12", "--replication-factor", "2")
    done = our_tools.run("kafka.admin.TopicCommand", "--zookeeper", connect, *words)
    assert done.code == 0, done.out
    for topic in ("wire", "tool"):
        text = zookeeper_text(connect, f"/brokers/topics/{topic}")
        assert text is not None
        replicas = json.loads(text)["partitions"].values()
        assert len(replicas) == 12
        assert all(ALONE in each for each in replicas)
        assert {other for each in replicas for other in each} == {FIRST, SECOND, ALONE}
    registration = json.loads(zookeeper_text(connect, f"/brokers/ids/{SECOND}") or "")
    assert registration["rack"] == registration["unit"] == f"{socket.gethostname()}:{FIRST}"
    for topic in ("wire", "tool"):
        admin.delete_topics([topic])[topic].result(30)
    assert alone.stop() == 143


def test_one_page_for_all(unit: Unit) -> None:
    status, body = get(unit.pages, "/health/live")
    assert (status, json.loads(body)) == (200, {"status": "live"})
    status, said = ready(unit)
    brokers = said["brokers"]
    assert isinstance(brokers, dict)
    assert (status, said["status"], sorted(brokers)) == (200, "ready", ["10", "11"])
    assert {each["status"] for each in brokers.values()} == {"ready"}
    status, text = get(unit.pages, "/metrics")
    lines = text.decode().splitlines()
    for broker_id in (FIRST, SECOND):
        assert f'kafka_server_unit_broker_up{{broker_id="{broker_id}"}} 1' in lines
        assert any(line.startswith(f'process_cpu_seconds_total{{broker_id="{broker_id}"}} ')
                   for line in lines)  # fmt: skip
    names = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(names) == len(set(names))


def test_the_joined_metrics_pass_promtool(unit: Unit) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian's package prometheus)")
    text = get(unit.pages, "/metrics")[1]
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, check=False)
    # Status 3: promtool advises other names than those of 0.8.2.2. The text itself is right.
    assert done.returncode in (0, 3), done.stderr.decode()


def test_a_killed_broker_comes_back(unit: Unit) -> None:
    before = unit.children()
    os.kill(before[SECOND], signal.SIGKILL)
    wait_until("an unready page", 10, lambda: ready(unit)[0] == 503)
    _, said = ready(unit)
    assert said["reasons"] in (
        ["broker 11: it was ended by SIGKILL, and is started again"],
        ["broker 11: it is starting"],
        ["broker 11: the broker is starting"],
    )
    wait_until("readiness", 30, lambda: ready(unit)[0] == 200)
    after = unit.children()
    assert after[FIRST] == before[FIRST]
    assert after[SECOND] != before[SECOND]
    (line,) = (line for line in unit.log.splitlines() if " ERROR " in line)
    assert "Broker 11 was ended by SIGKILL. It is started again in 1 s" in line


def test_log_files_are_apart(unit: Unit) -> None:
    names = {path.name for path in unit.directory.glob("server*.log")}
    assert names == {"server.log", "server-10.log", "server-11.log"}
    assert "Broker 11 was" in (unit.directory / "server.log").read_text()
    assert "started" in (unit.directory / "server-11.log").read_text()


def test_the_stop_script_stops_it_once(unit: Unit, tmp_path: Path) -> None:
    children = unit.children()
    # The script would stop the brokers of other tests too, so only what it would ask is looked at.
    script = f". {HOME}/bin/java-processes.bash; java_processes kafka.kafka"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    found = set(map(int, done.stdout.split()))
    assert unit.pid in found
    assert not found & set(children.values())
    assert unit.stop() == 143
    assert unit.children() == {}
    assert unit.log.count("[Kafka Server 10], shut down completed") == 1
    assert unit.log.count("[Kafka Server 11], shut down completed") == 1


def test_no_broker_outlives_a_killed_supervisor(unit: Unit) -> None:
    unit.begin()
    assert len(unit.children()) == 2
    os.kill(unit.pid, signal.SIGKILL)
    wait_until("the end of both", 20, lambda: not unit.children())
    unit.exit_code()
    assert unit.log.count("shut down completed") == 2


def test_a_start_that_fails_stops_all(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    bad = tmp_path / "no-directory"
    bad.write_text("a file")
    props = {**PROPS, "process.1.log.dirs": bad}
    unit = Unit(tmp_path / "unit", f"{zookeeper.connect}/fails", broker_id=FIRST, props=props)
    launch(unit)
    unit.spawn()
    assert unit.exit_code(30) == 1
    assert "Broker 11 did not start: it ended with status 1" in unit.log
    assert unit.children() == {}


def test_bad_settings_are_one_line(tmp_path: Path, launch: Callable[[Process], None]) -> None:
    unit = Unit(tmp_path / "unit", "127.0.0.1:1", props={"process.7.port": 1})
    launch(unit)
    unit.spawn()
    assert unit.exit_code(30) == 1
    (line,) = (line for line in unit.log.splitlines() if " FATAL " in line)
    assert "process.7.port is a setting of process 7" in line
    assert unit.children() == {}
