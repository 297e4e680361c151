"""The example jobs of docs/examples against a real broker: late data, kills, a change of code."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from integration.harness import HOME, Broker, Process, ZooKeeper
from integration.spark.scene import SPARK_WARNINGS
from integration.spark.support import missing, produce
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

from pyspark.sql import SparkSession

from integration.spark.recipes import EXAMPLES, example
from integration.spark.sessions import utc_session
from integration.spark.standalone import SPARK_HOME
from kafka08.spark import package

pytestmark = SPARK_WARNINGS
DEADLINE_S = 120


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with utc_session() as session:
        yield session


@pytest.fixture
def broker(zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]) -> Broker:
    """One for each test, as the examples name their topics."""
    chroot = f"{zookeeper.connect}/examples-{uuid.uuid4().hex[:6]}"
    broker = Broker("ours", tmp_path / "broker", chroot)
    launch(broker)
    return broker.start()


def send(broker: Broker, topic: str, *values: dict[str, object]) -> None:
    produce(broker, topic, 0, [(None, json.dumps(value).encode()) for value in values])


def read(broker: Broker, topic: str) -> list[tuple[str, dict[str, Any]]]:
    with broker.wire() as wire:
        found = wire.read_all(topic, 0)
    return [((each.key or b"").decode(), json.loads(each.value or b"null")) for each in found]


def event(sku: str, quantity: int, clock: str) -> dict[str, object]:
    return {"sku": sku, "quantity": quantity, "time": f"2014-07-01T{clock}:00Z"}


REORDERS = ("sales", "shipments", "reorders", "price-adjustments")


@pytest.mark.scenario("spark-28")
def test_reorders_with_late_data_and_reprocessing(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    for topic in (*REORDERS, "reorders-v2", "price-adjustments-v2"):
        broker.create_topic(topic)
    job = example("reorders")

    def run(*options: str, checkpoint: str = "first") -> None:
        where = [f"--bootstrap-server={broker.address}", f"--checkpoint={tmp_path / checkpoint}"]
        job.run(spark, [*where, "--once", *options])

    send(broker, "sales", event("a", 5, "10:05"), event("b", 9, "10:10"), event("c", 1, "10:59"))
    send(
        broker, "shipments", event("a", 3, "10:00"), event("b", 3, "10:30"), event("c", 9, "10:59")
    )
    produce(broker, "sales", 0, [(None, b"no json"), (None, None)])
    run()
    assert read(broker, "reorders") == []  # the hour is not over
    # Time goes on, but not by more than rows may be late.
    send(broker, "sales", event("x", 1, "11:05"))
    send(broker, "shipments", event("x", 1, "11:05"))
    run()
    send(broker, "sales", event("a", 2, "10:40"))  # late, and in time
    run()
    assert read(broker, "reorders") == []
    send(broker, "sales", event("x", 1, "11:20"))
    send(broker, "shipments", event("x", 1, "11:20"))
    run()
    hour = "2014-07-01T10:00"
    reorders = [
        ("a", {"sku": "a", "hour": hour, "quantity": 4}),
        ("b", {"sku": "b", "hour": hour, "quantity": 6}),
    ]
    assert sorted(read(broker, "reorders"), key=str) == reorders
    prices = [
        ("a", {"sku": "a", "hour": hour, "percent": 10}),
        ("b", {"sku": "b", "hour": hour, "percent": 10}),
        ("c", {"sku": "c", "hour": hour, "percent": -10}),
    ]
    assert sorted(read(broker, "price-adjustments"), key=str) == prices
    send(broker, "sales", event("a", 99, "10:59"))  # too late: the hour is decided
    run()
    assert len(read(broker, "reorders")) == 2
    # A change of the code: from the start again, beside the old results.
    run("--percent=5", "--suffix=-v2", checkpoint="second")
    again = read(broker, "price-adjustments-v2")
    assert sorted(each["percent"] for _, each in again) == [-5, 5, 5]
    assert [each["quantity"] for key, each in read(broker, "reorders-v2") if key == "a"] == [103]
    assert sorted(read(broker, "price-adjustments"), key=str) == prices


@pytest.mark.scenario("spark-28")
@pytest.mark.slow
def test_reorders_killed_and_restarted_equal_a_batch_over_the_log(
    spark: SparkSession, broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """With spark-submit and the zip. Decisions may be written twice, but no other ones."""
    for topic in REORDERS:
        broker.create_topic(topic)
    archive = tmp_path / "kafka08-spark.zip"
    package.write(archive)
    start = datetime(2014, 7, 1)
    sent = 0

    def more() -> None:
        nonlocal sent
        for topic, factor in (("sales", 3), ("shipments", 2)):
            moments = [start + timedelta(minutes=sent + n) for n in range(200)]
            values = [
                {"sku": f"s{n % 5}", "quantity": n * factor % 7, "time": f"{moment.isoformat()}Z"}
                for n, moment in enumerate(moments)
            ]
            send(broker, topic, *values)
        sent += 200

    for attempt in range(3):
        more()
        before = len(read(broker, "reorders"))
        process = submit(tmp_path / f"job-{attempt}", archive, broker, tmp_path / "checkpoint")
        launch(process)
        wait_until("decisions", DEADLINE_S, lambda: decided(process, broker) > before)  # noqa: B023
        os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    job = example("reorders")
    job.run(
        spark,
        [
            f"--bootstrap-server={broker.address}",
            f"--checkpoint={tmp_path / 'checkpoint'}",
            "--once",
        ],
    )
    source = spark.read.format("kafka08").option("kafka.bootstrap.servers", broker.address)
    sales, shipments = (source.option("subscribe", t).load() for t in ("sales", "shipments"))
    rows = job.decisions(sales, shipments, "10 minutes", 10).collect()
    # The last hours are not over for the stream.
    over = f"{start + timedelta(minutes=sent - 1 - 10):%Y-%m-%dT%H:00}"
    for topic in ("reorders", "price-adjustments"):
        expected = {bytes(row.value) for row in rows if row.topic == topic}
        expected = {each for each in expected if json.loads(each)["hour"] < over}
        with broker.wire() as wire:
            assert {each.value for each in wire.read_all(topic, 0)} == expected, topic


def test_submitted_as_the_guide_says(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """The command of the examples' README, without the settings of this project's tests."""
    for topic in ("page-views", "page-counts"):
        broker.create_topic(topic)
    views = ((user, f"2014-07-01T10:00:0{n}Z") for n, user in enumerate("uvu"))
    send(broker, "page-views", *[{"user": u, "page": "/", "time": time} for u, time in views])
    # A checkout in a path with a space, after `make spark-zip`.
    home = tmp_path / "my kafka"
    package.write(home / "dist" / "kafka08-spark.zip")
    (home / "docs").symlink_to(HOME / "docs")
    (home / ".venv").symlink_to(sys.prefix)
    guide = (EXAMPLES / "README.md").read_text()
    block = (
        guide.partition("```sh\nmake spark-zip")[2]
        .partition(
            "\n",
        )[2]
        .partition("```")[0]
    )
    for name, value in {
        "reorders.py": "activity_counts.py",
        "localhost:9092": broker.address,
        "/tmp/reorders": "checkpoint --once",
    }.items():
        assert name in block
        block = block.replace(name, value)
    java = shutil.which("java") or f"{os.environ['JAVA_HOME']}/bin/java"
    path = f"PATH=/usr/local/bin:/usr/bin:/bin:{os.path.dirname(java)}"
    clean = ["env", "-i", f"--chdir={home}", path]
    job = Process("spark-submit", [*clean, "bash", "-ec", block], tmp_path / "job")
    launch(job)
    job.spawn()
    assert job.exit_code(DEADLINE_S) == 0, job.log[-3000:]
    assert read(broker, "page-counts") == [
        (
            "2014-07-01T10:00:00 /",
            {"from": "2014-07-01T10:00:00", "page": "/", "views": 3, "users": 2},
        )
    ]
    planned = (home / "checkpoint" / "offsets" / "0").read_text().splitlines()
    assert json.loads(planned[1])["conf"]["spark.sql.shuffle.partitions"] == "4"


def submit(directory: Path, archive: Path, broker: Broker, checkpoint: Path) -> Process:
    command = [
        str(SPARK_HOME / "bin" / "spark-submit"),
        "--master=local[2]",
        "--conf=spark.ui.enabled=false",
        "--conf=spark.driver.host=127.0.0.1",
        "--conf=spark.sql.shuffle.partitions=2",
        f"--conf=spark.pyspark.python={sys.executable}",
        f"--py-files={archive}",
        str(EXAMPLES / "reorders.py"),
        f"--bootstrap-server={broker.address}",
        f"--checkpoint={checkpoint}",
    ]
    process = Process("reorders", command, directory)
    process.spawn()
    return process


def decided(process: Process, broker: Broker) -> int:
    assert process.alive, process.log[-3000:]
    time.sleep(0.3)
    return len(read(broker, "reorders"))


def test_activity_by_window(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    for topic in ("page-views", "page-counts"):
        broker.create_topic(topic)
    job = example("activity_counts")
    options = [f"--bootstrap-server={broker.address}", f"--checkpoint={tmp_path / 'c'}", "--once"]

    def view(user: str, page: str, clock: str) -> dict[str, object]:
        return {"user": user, "page": page, "time": f"2014-07-01T{clock}Z"}

    send(
        broker,
        "page-views",
        *[view(user, "/", "10:00:01") for user in ("u", "v", "u")],
        view("u", "/", "10:05:00"),
    )
    job.run(spark, options)
    # Later rows change counts, late ones too; what is too late changes nothing.
    send(broker, "page-views", view("w", "/", "10:04:59"), view("u", "/buy", "10:06:00"))
    job.run(spark, options)
    send(broker, "page-views", view("u", "/", "12:00:00"))
    job.run(spark, options)
    send(broker, "page-views", view("u", "/", "10:00:02"))
    job.run(spark, options)
    found = read(broker, "page-counts")
    last = dict(found)  # what a compacted topic keeps
    assert {key: (each["views"], each["users"]) for key, each in last.items()} == {
        "2014-07-01T10:00:00 /": (4, 3),
        "2014-07-01T10:05:00 /": (1, 1),
        "2014-07-01T10:05:00 /buy": (1, 1),
        "2014-07-01T12:00:00 /": (1, 1),
    }
    assert len(found) == 5


def test_a_change_log_joined_as_a_table(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("customers", 1, {"cleanup.policy": "compact"})
    for topic in ("orders", "orders-named"):
        broker.create_topic(topic)
    job = example("changelog_table")
    options = [f"--bootstrap-server={broker.address}", f"--checkpoint={tmp_path / 'c'}", "--once"]

    def run() -> list[Any]:
        before = len(read(broker, "orders-named"))
        job.run(spark, options)
        rows = [each["row"] for _, each in read(broker, "orders-named")[before:]]
        return sorted(rows, key=str)

    customers = [(b"1", b"Ann"), (b"2", b"Bob"), (b"1", b"Anna")]
    produce(broker, "customers", 0, customers)
    send(broker, "orders", {"customer": "1"}, {"customer": "2"}, {"customer": "3"})
    assert run() == ["Anna", "Bob", None]
    produce(broker, "customers", 0, [(b"2", None), (b"3", b"Cem")])
    send(broker, "orders", {"customer": "1"}, {"customer": "2"}, {"customer": "3"})
    assert run() == ["Anna", "Cem", None]
