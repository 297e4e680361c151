"""The zip for ``--py-files`` where there is nothing else: local, local-cluster, standalone.

Driver and workers run a bare Python without the project's packages, away from the checkout.
"""

from __future__ import annotations

import sys
import uuid
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import Broker, Process, ZooKeeper
from integration.spark.support import missing, produce
from integration.wire import gzip_set
from kafka08.message.sets import encode_set

if missing():
    pytest.skip(missing(), allow_module_level=True)

pytest.importorskip("pyarrow")

import pyarrow

from integration.spark.standalone import SPARK_HOME, StandaloneCluster, variables
from kafka08.spark import package

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

QUERIES = """
import sys

import kafka08
from pyspark.sql import SparkSession

from kafka08.spark.datasource import register

brokers, source, copied, checkpoint = sys.argv[1:]
spark = SparkSession.builder.appName("packaging").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
register(spark)
brokers = {"kafka.bootstrap.servers": brokers}
stream = spark.readStream.format("kafka08").options(**brokers, subscribe=source)
rows = stream.option("startingOffsets", "earliest").load().select("key", "value")
writer = rows.writeStream.format("kafka08").options(**brokers, topic=copied)
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
query.awaitTermination()
table = spark.read.format("kafka08").options(**brokers, subscribe=copied).load()
table.select("value").write.format("kafka08").options(**brokers, topic=copied).mode("append").save()
print("COPIED", table.count(), ".zip" in kafka08.__file__)
spark.stop()
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


@pytest.fixture(scope="module")
def with_pyarrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has pyarrow beside its own library, and nothing else."""
    directory = tmp_path_factory.mktemp("with-pyarrow")
    venv.create(directory, symlinks=True)
    (packages,) = directory.glob("lib/python3.*/site-packages")
    (packages / "pyarrow").symlink_to(Path(pyarrow.__file__).parent)
    return directory / "bin" / "python3"


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Spark's own master with one worker, from the classes of pip's pyspark."""
    cluster = StandaloneCluster(tmp_path_factory.mktemp("standalone"), variables(BARE))
    try:
        yield cluster.start(1).url
    finally:
        cluster.stop()


def spark_process(name: str, directory: Path, *command: str, python: Path = BARE) -> Process:
    given = [f"{key}={value}" for key, value in variables(python).items()]
    directory.mkdir(parents=True, exist_ok=True)
    # Not in the checkout, for what is in the working directory can be imported.
    process = Process(name, ["env", "-i", f"--chdir={directory}", *given, *command], directory)
    process.spawn()
    return process


def submit(
    directory: Path,
    master: str,
    archive: Path,
    broker: Broker,
    *arguments: str,
    program: str = JOB,
    python: Path = BARE,
) -> Process:
    job = directory / "job.py"
    job.write_text(program)
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
        *arguments,
        python=python,
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


def test_standalone(standalone: str, archive: Path, broker: Broker, tmp_path: Path) -> None:
    assert_done(submit(tmp_path, standalone, archive, broker, "plain"), "plain")


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,1,512]", "standalone"])
def test_queries(
    master: str,
    archive: Path,
    broker: Broker,
    with_pyarrow: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Streams and batches, read and written: each has a process of its own that plans it."""
    if master == "standalone":
        master = request.getfixturevalue("standalone")
    copied = f"copied-{uuid.uuid4().hex[:6]}"
    broker.create_topic(copied, 2)
    arguments = ("gzip", copied, str(tmp_path / "checkpoint"))
    job = submit(
        tmp_path, master, archive, broker, *arguments, program=QUERIES, python=with_pyarrow
    )
    try:
        assert job.exit_code(DEADLINE_S) == 0, job.log[-3000:]
    finally:
        job.kill()
    # The frame's ends were fixed before it was written back.
    assert "COPIED 200 True" in job.log, job.log[-3000:]
