"""The zip for ``--py-files`` on executors that have nothing else: local, local-cluster, standalone.

Workers run a bare Python without the project's packages, away from the checkout.
"""

from __future__ import annotations

import os
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness import Broker, Process, ZooKeeper, free_port
from integration.spark.support import missing, produce
from integration.wire import gzip_set
from kafka08.message.message_set import encode_set

if missing():
    pytest.skip(missing(), allow_module_level=True)

import pyspark

from kafka08.spark import package

SPARK_HOME = Path(pyspark.__file__).parent
DEADLINE_S = 180
BARE = Path(sys.base_prefix) / "bin" / "python3"

JOB = """
import sys

from pyspark import SparkContext, TaskContext

from kafka08.spark.dstream import KafkaUtils, OffsetRange

brokers, *topics = sys.argv[1:]
sc = SparkContext(appName="packaging")
sc.setLogLevel("ERROR")


def where(rows):
    import kafka08

    found = list(rows)
    yield len(found), kafka08.__file__, sys.executable


for topic in topics:
    ranges = [OffsetRange(topic, 0, 0, 100), OffsetRange(topic, 1, 0, 100)]
    rdd = KafkaUtils.createRDD(sc, {"metadata.broker.list": brokers}, ranges)
    try:
        for count, path, python in rdd.mapPartitions(where).collect():
            print("ROWS", topic, count, ".zip" in path, python)
    except Exception as error:
        print("FAILED", topic, " ".join(str(error).split())[:20000])
sc.stop()
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("zip") / "kafka08-spark.zip"
    package.write(target)
    return target


@pytest.fixture(scope="module")
def broker(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    chroot = f"{zookeeper.connect}/packaging-{uuid.uuid4().hex[:6]}"
    broker = Broker("ours", tmp_path_factory.mktemp("broker"), chroot).start()
    records = [(None, b"v%d" % number) for number in range(100)]
    for topic in ("plain", "gzip", "snappy"):
        broker.create_topic(topic, 2)
        for partition in (0, 1):
            with broker.wire() as wire:
                if topic == "plain":
                    produce(broker, topic, partition, records)
                elif topic == "gzip":
                    wire.produce(topic, partition, gzip_set(records))
                else:
                    wire.produce(topic, partition, bytes(encode_set(records, codec=2)))
    yield broker
    broker.kill()


def environment() -> dict[str, str]:
    """Nothing of this interpreter's packages but pyspark, which spark-submit brings along."""
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
    python = str(BARE)
    return {
        **bare,
        "SPARK_HOME": str(SPARK_HOME),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONNOUSERSITE": "1",
    }


def spark_process(name: str, directory: Path, *command: str) -> Process:
    variables = [f"{key}={value}" for key, value in environment().items()]
    directory.mkdir(parents=True, exist_ok=True)
    # Not in the checkout, for what is in the working directory can be imported.
    process = Process(name, ["env", "-i", f"--chdir={directory}", *variables, *command], directory)
    process.spawn()
    return process


def submit(directory: Path, master: str, archive: Path, broker: Broker, *topics: str) -> Process:
    directory.mkdir(parents=True, exist_ok=True)
    job = directory / "job.py"
    job.write_text(JOB)
    return spark_process(
        "spark-submit",
        directory / "out",
        str(SPARK_HOME / "bin" / "spark-submit"),
        f"--master={master}",
        f"--py-files={archive}",
        "--conf=spark.ui.enabled=false",
        "--conf=spark.driver.host=127.0.0.1",
        "--conf=spark.executor.memory=512m",
        "--conf=spark.python.worker.faulthandler.enabled=false",
        str(job),
        broker.address,
        *topics,
    )


def assert_done(job: Process, *topics: str) -> None:
    try:
        assert job.exit_code(DEADLINE_S) == 0, job.log[-3000:]
    finally:
        job.kill()
    rows = [line.split() for line in job.log.splitlines() if line.startswith("ROWS")]
    assert rows == [["ROWS", t, "100", "True", str(BARE)] for t in topics for _ in (0, 1)], job.log


def test_what_is_in_the_zip(archive: Path, tmp_path: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    assert {"kafka08/spark/reader.py", "zk/client.py", "kazoo/client.py"} <= set(names)
    assert not [name for name in names if not name.endswith(".py") or "/tests/" in name]
    again = tmp_path / "again.zip"
    package.write(again)
    assert again.read_bytes() == archive.read_bytes()


def test_local(archive: Path, broker: Broker, tmp_path: Path) -> None:
    """gzip needs nothing; of snappy the error says what to install."""
    job = submit(tmp_path, "local[2]", archive, broker, "plain", "gzip", "snappy")
    assert_done(job, "plain", "gzip")
    assert "FAILED snappy" in job.log
    assert "snappy needs the Python package python-snappy" in job.log


def test_local_cluster(archive: Path, broker: Broker, tmp_path: Path) -> None:
    job = submit(tmp_path, "local-cluster[1,1,512]", archive, broker, "gzip")
    assert_done(job, "gzip")


def test_standalone(
    archive: Path, broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Spark's own master and worker, started from the classes of pip's pyspark."""
    port = free_port()
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    url = f"spark://127.0.0.1:{port}"
    options = ["--host", "127.0.0.1", "--webui-port", str(free_port())]
    master = spark_process(
        "master",
        tmp_path / "master",
        spark_class,
        "org.apache.spark.deploy.master.Master",
        *options,
        "--port",
        str(port),
    )
    launch(master)
    master.wait_for("I have been elected leader", DEADLINE_S)
    options[-1] = str(free_port())
    worker = spark_process(
        "worker",
        tmp_path / "worker",
        spark_class,
        "org.apache.spark.deploy.worker.Worker",
        *options,
        *("--cores", "1"),
        *("--memory", "600m"),
        *("--work-dir", str(tmp_path / "work")),
        url,
    )
    launch(worker)
    worker.wait_for("Successfully registered with master", DEADLINE_S)
    job = submit(tmp_path / "job", url, archive, broker, "plain")
    launch(job)
    assert_done(job, "plain")
