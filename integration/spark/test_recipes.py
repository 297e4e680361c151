"""The recipes of docs/spark-recipes.md, killed in the middle of a stream and started again.

Messages are produced all the while. Afterwards each of them is in the result, and once.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration import builds
from integration.harness import HOME, Broker, Process
from integration.spark import environments, postgres
from integration.spark.scene import SPARK_WARNINGS
from integration.spark.support import missing, produce, spark_conf
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from integration.spark.standalone import SPARK_HOME, StandaloneCluster, variables
from kafka08.spark import package
from kafka08.spark.datasource import register

pytestmark = SPARK_WARNINGS
EXAMPLES = HOME / "docs" / "examples"
JOBS = Path(__file__).parent / "jobs"
POSTGRES_JDBC = "org.postgresql:postgresql:42.7.14"
DELTA, DELTA_SPARK = "io.delta:delta-spark_4.2_2.13:4.4.0", "4.2.1"
DEADLINE_S = 180
PROPS = {"log.retention.hours": 1_000_000}  # for messages with times of long ago
PARTITIONS = 2
KEYS = 20
SET = 10  # messages at a time and partition
PAUSE_S = 0.05
Row = tuple[int, int, bytes, bytes]  # partition, offset, key, value


class Feed:
    """Messages for a topic, until it is stopped: numbers with keys that stay in their partition."""

    def __init__(self, broker: Broker) -> None:
        self.topic = f"fed-{uuid.uuid4().hex[:6]}"
        broker.create_topic(self.topic, PARTITIONS)
        self._broker = broker
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.topic)
        self._numbers = 0
        self._error: BaseException | None = None

    def start(self) -> Feed:
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            while not self._end.wait(PAUSE_S):
                numbers = range(self._numbers, self._numbers + SET)
                for part in range(PARTITIONS):
                    keys = [n % (KEYS // PARTITIONS) * PARTITIONS + part for n in numbers]
                    records = [(b"k%d" % k, b"%d" % n) for k, n in zip(keys, numbers, strict=True)]
                    produce(self._broker, self.topic, part, records)
                self._numbers = numbers.stop
        except BaseException as error:
            self._error = error

    @property
    def sent(self) -> int:
        """Messages so far. Fails if no more come."""
        assert self._thread.is_alive(), self._error
        return self._numbers * PARTITIONS

    def stop(self) -> None:
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def rows(self) -> list[Row]:
        """All that is in the topic, in order."""
        self.stop()
        assert self._error is None
        with self._broker.wire() as wire:
            return [
                (partition, each.offset, each.key or b"", each.value or b"")
                for partition in range(PARTITIONS)
                for each in wire.read_all(self.topic, partition)
            ]


class Release(NamedTuple):
    """A PySpark, by its interpreter and directory, with the jars that jobs need."""

    python: Path
    home: Path
    jars: tuple[Path, ...] = ()

    def submit(self, master: str, *options: str) -> list[str]:
        settings = [
            "ui.enabled=false",
            "driver.host=127.0.0.1",
            "driver.memory=512m",
            "executor.memory=512m",
            "sql.shuffle.partitions=2",
            f"pyspark.python={self.python}",
        ]
        command = ["env", f"SPARK_HOME={self.home}", str(self.home / "bin" / "spark-submit")]
        command += [f"--master={master}", *(f"--conf=spark.{each}" for each in settings)]
        command += [f"--jars={','.join(map(str, self.jars))}"] if self.jars else []
        return [*command, *options]


INSTALLED = Release(Path(sys.executable), SPARK_HOME)


class Recipe:
    """A job of docs/examples as a user submits it, with the settings of a small test."""

    def __init__(self, name: str, archive: Path, directory: Path, *arguments: object) -> None:
        self._name = name
        self._archive = archive
        self._directory = directory
        self.checkpoint = directory / "checkpoint"  # that of a stream
        self._arguments = [*map(str, arguments)]
        self.process: Process | None = None
        self._starts = 0

    def start(self, *more: str, master: str = "local[2]", release: Release = INSTALLED) -> Process:
        command = release.submit(master, f"--py-files={self._archive}")
        command += [str(EXAMPLES / f"{self._name}.py"), *self._arguments, *more]
        self._starts += 1
        self.process = Process(self._name, command, self._directory / f"start-{self._starts}")
        self.process.spawn()
        return self.process

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def batches(self, log: str) -> list[int]:
        """Numbers of the batches that are in ``offsets`` (begun) or ``commits`` (ended)."""
        names = [path.name for path in (self.checkpoint / log).glob("*")]
        return sorted(int(name) for name in names if name.isdigit())

    def committed(self, topic: str) -> int:
        """The number of messages in batches that have ended."""
        ended = self.batches("commits")
        if not ended:
            return 0
        text = (self.checkpoint / "offsets" / str(ended[-1])).read_text()
        return sum(json.loads(text.splitlines()[-1])[topic].values())

    def is_between(self) -> bool:
        """Whether a batch has ended, and another one has begun and not ended."""
        assert self.process is not None
        assert self.process.alive, self.process.log[-5000:]
        ended = self.batches("commits")
        return bool(ended) and self.batches("offsets")[-1] > ended[-1]

    def finish(self, release: Release = INSTALLED) -> None:
        """Read all that is left in the topic."""
        process = self.start("--once", release=release)
        assert process.exit_code(DEADLINE_S) == 0, process.log[-5000:]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    conf = spark_conf("local[2]").set("spark.sql.session.timeZone", "UTC")
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("zip") / "kafka08-spark.zip"
    package.write(target)
    return target


@pytest.fixture
def feed(broker: Broker) -> Iterator[Feed]:
    made = Feed(broker)
    yield made
    made.stop()


@pytest.fixture
def recipe(
    broker: Broker, feed: Feed, archive: Path, tmp_path: Path
) -> Iterator[Callable[..., Recipe]]:
    made: list[Recipe] = []

    def make(name: str, *arguments: object, stream: bool = True) -> Recipe:
        directory = tmp_path / f"job-{len(made)}"
        given = [f"--bootstrap-server={broker.address}", *arguments]
        if stream:
            given += [f"--topic={feed.topic}", f"--checkpoint={directory / 'checkpoint'}"]
        made.append(Recipe(name, archive, directory, *given))
        return made[-1]

    yield make
    for job in made:
        job.kill()


@pytest.fixture(scope="module")
def database() -> Iterator[postgres.PostgresServer]:
    if postgres.missing():
        pytest.skip(postgres.missing())
    server = postgres.PostgresServer().start()
    yield server
    server.close()


def kill_between(
    job: Recipe,
    feed: Feed,
    until: Callable[[], bool] = lambda: True,
    kills: int = 1,
    release: Release = INSTALLED,
) -> None:
    """Kill the job in a batch, not the first one of its start, when ``until`` holds. More messages
    come after each kill, and in the end the job reads what is left."""
    feed.start()
    for _ in range(kills):
        before = len(job.batches("commits"))
        job.start("--every=0 seconds", release=release)

        def is_time(before: int = before) -> bool:
            return job.is_between() and len(job.batches("commits")) > before and until()

        wait_until("a batch between two", DEADLINE_S, is_time)
        job.kill()
        sent = feed.sent

        def has_more(sent: int = sent) -> bool:
            return feed.sent > sent

        wait_until("more messages", DEADLINE_S, has_more)
    feed.stop()
    job.finish(release)


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- Parquet


def parquet(spark: SparkSession, path: Path) -> list[Row]:
    frame = spark.read.parquet(str(path)).orderBy("partition", "offset")
    rows = frame.select("partition", "offset", "key", "value").collect()
    return [(row[0], row[1], bytes(row[2]), bytes(row[3])) for row in rows]


def test_parquet_after_a_kill(
    spark: SparkSession, feed: Feed, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    kill_between(recipe("topic_to_parquet", f"--path={lake}"), feed)
    assert parquet(spark, lake) == feed.rows()


def test_parquet_by_the_hour_of_the_messages(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    broker.create_topic("hours")
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address, "log_level": 0})
    moments = ("2014-07-01 09:59:59.999", "2014-07-01 10:00:00.000", "2014-07-02 00:00:00.000")
    for moment in moments:
        time_ms = int(datetime.fromisoformat(f"{moment}+00:00").timestamp() * 1000)
        producer.produce("hours", moment, timestamp=time_ms)
    assert producer.flush(DEADLINE_S) == 0
    lake = tmp_path / "lake"
    options = [f"--bootstrap-server={broker.address}", "--topic=hours", f"--path={lake}"]
    options += [f"--checkpoint={tmp_path / 'checkpoint'}", "--by-hour", "--once"]
    example("topic_to_parquet").run(spark, [*options, "--option=kafka.api.versions.request=true"])
    found = spark.read.parquet(str(lake)).selectExpr(
        "string(value)", "string(date)", "hour", "date_format(timestamp, 'yyyy-MM-dd HH:mm:ss.SSS')"
    )
    assert sorted(map(tuple, found.collect())) == [
        (moment, moment[:10], int(moment[11:13]), moment) for moment in moments
    ]
    assert (lake / "date=2014-07-01" / "hour=9").is_dir()


@pytest.mark.slow
def test_parquet_on_a_cluster_that_loses_a_worker(
    spark: SparkSession, feed: Feed, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    job = recipe("topic_to_parquet", f"--path={lake}")
    cluster = StandaloneCluster(tmp_path / "cluster", variables(Path(sys.executable)))
    try:
        cluster.start(2)
        feed.start()
        process = job.start("--every=0 seconds", master=cluster.url)
        wait_until(
            "tasks on both workers",
            DEADLINE_S,
            lambda: job.is_between() and all(cluster.executors(number) for number in (0, 1)),
        )
        cluster.workers[1].kill()
        sent = feed.sent
        wait_until("more messages", DEADLINE_S, lambda: feed.sent > sent)
        rows = feed.rows()
        wait_until("all", DEADLINE_S, lambda: ended(job, feed.topic, len(rows)))
        assert "Lost executor" in process.log
    finally:
        job.kill()
        cluster.stop()
    assert parquet(spark, lake) == rows


def ended(job: Recipe, topic: str, messages: int) -> bool:
    assert job.process is not None
    assert job.process.alive, job.process.log[-5000:]
    return job.committed(topic) == messages


# --- another topic


def read_once(found: list[Any]) -> list[Any]:
    """As docs/spark-recipes.md says: in each partition, only what is after all that was seen of a
    partition of the source."""
    seen: dict[tuple[int, str], int] = {}
    kept = []
    for row in found:
        place, _, offset = row.origin.rpartition("/")
        if int(offset) > seen.get((row.partition, place), -1):
            seen[row.partition, place] = int(offset)
            kept.append(row)
    return kept


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_copied_topic_after_kills(
    spark: SparkSession, broker: Broker, feed: Feed, recipe: Callable[..., Recipe], kills: int
) -> None:
    """Each kill comes when some rows of a batch that has not ended are in the topic."""
    target = f"copied-{uuid.uuid4().hex[:6]}"
    broker.create_topic(target, 3)
    job = recipe("topic_to_topic", f"--to={target}")

    def repeats_follow() -> bool:
        with broker.wire() as wire:
            written = sum(wire.offset(target, partition) for partition in range(3))
        return written > job.committed(feed.topic)

    kill_between(job, feed, repeats_follow, kills)
    rows = feed.rows()
    source = spark.read.format("kafka08").option("kafka.bootstrap.servers", broker.address)
    source = source.option("includeHeaders", "true").option("subscribe", target)
    copied = source.load()
    origin = F.col("headers")[0]["value"].cast("string").alias("origin")
    found = copied.select("partition", "offset", "key", "value", origin)
    found = found.orderBy("partition", "offset").collect()
    expected = [(f"{feed.topic}/{row[0]}/{row[1]}", *row[2:]) for row in rows]
    kept = read_once(found)
    assert sorted((row.origin, bytes(row.key), bytes(row.value)) for row in kept) == sorted(
        expected
    )
    for key in {row.key for row in kept}:
        numbers = [int(row.value) for row in kept if row.key == key]
        assert numbers == sorted(numbers), "a key keeps its order"
    distinct = example("topic_to_topic").once(copied).select("origin", "key", "value").collect()
    assert sorted((row[0], bytes(row[1]), bytes(row[2])) for row in distinct) == sorted(expected)


# --- PostgreSQL


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("by_key", [False, True], ids=["messages", "by key"])
def test_a_table_after_kills(
    database: postgres.PostgresServer,
    feed: Feed,
    recipe: Callable[..., Recipe],
    by_key: bool,
    kills: int,
) -> None:
    """Each kill comes when some rows of a batch that has not ended are in the table."""
    table = f"t_{uuid.uuid4().hex[:6]}"
    arguments = [f"--database={database.dsn}", f"--table={table}"]
    job = recipe("topic_to_postgres", *arguments, *(["--by-key"] if by_key else []))

    def is_ahead() -> bool:
        counted = f'SELECT max("offset") + 1 FROM {table} GROUP BY partition'
        return sum(row[0] for row in database.rows(counted)) > job.committed(feed.topic)

    kill_between(job, feed, is_ahead, kills)
    rows = feed.rows()
    if by_key:
        rows = sorted(
            {key: (partition, *more, key, value) for partition, *more, key, value in rows}.values()
        )
    found = f'SELECT partition, "offset", key, value FROM {table} ORDER BY 1, 2'
    assert database.rows(found) == rows


def test_a_batch_that_is_late_changes_nothing(
    database: postgres.PostgresServer, spark: SparkSession, broker: Broker
) -> None:
    """An executor that outlives its driver commits after those of the next driver."""
    topic = f"late-{uuid.uuid4().hex[:6]}"
    broker.create_topic(topic)
    produce(broker, topic, 0, [(b"a", b"1"), (b"b", b"1"), (None, b"no key"), (b"a", b"2")])
    produce(broker, topic, 0, [(b"b", None), (b"a", b"3")])
    reader = spark.read.format("kafka08").option("kafka.bootstrap.servers", broker.address)
    reader = reader.option("subscribe", topic)

    def batch(start: int, end: int) -> Any:
        options = {"startingOffsets": start, "endingOffsets": end}
        given = {name: json.dumps({topic: {"0": offset}}) for name, offset in options.items()}
        return reader.options(**given).load()

    table = f"t_{uuid.uuid4().hex[:6]}"
    write = example("topic_to_postgres").upserts(database.dsn, table, True)
    found = f"SELECT key, value FROM {table} ORDER BY key"
    write(batch(0, 3), 0)
    assert database.rows(found) == [(b"a", b"1"), (b"b", b"1")]
    for start, end in ((3, 6), (0, 4), (3, 6)):
        write(batch(start, end), 1)
        assert database.rows(found) == [(b"a", b"3"), (b"b", None)]


@pytest.mark.slow
def test_rows_of_a_table_after_a_kill(
    database: postgres.PostgresServer,
    spark: SparkSession,
    broker: Broker,
    recipe: Callable[..., Recipe],
    tmp_path: Path,
) -> None:
    """The first run dies when some rows are in the topic; rows come between all of the runs."""
    try:
        jars = tuple(builds.jars(POSTGRES_JDBC).glob("*.jar"))
    except builds.MissingError as error:
        pytest.skip(str(error))
    table, target = f"t_{uuid.uuid4().hex[:6]}", f"rows-{uuid.uuid4().hex[:6]}"
    broker.create_topic(target, 2)
    database.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, name text)")
    rows = 0

    def insert(count: int) -> None:
        nonlocal rows
        new = f"generate_series({rows}, {rows + count - 1}) AS n"
        database.execute(f"INSERT INTO {table} SELECT n, 'name ' || n FROM {new}")
        rows += count

    def written() -> int:
        with broker.wire() as wire:
            return sum(wire.offset(target, partition) for partition in range(2))

    url = f"jdbc:postgresql://127.0.0.1:{database.port}/postgres?user={postgres.ACCOUNT}"
    arguments = [f"--to={target}", f"--url={url}", f"--table={table}", "--column=id"]
    job = recipe(
        "postgres_to_topic", *arguments, f"--progress={tmp_path / 'progress'}", stream=False
    )
    release = Release(INSTALLED.python, INSTALLED.home, jars)
    insert(200_000)
    process = job.start(release=release)
    wait_until("some rows", DEADLINE_S, lambda: written() or not process.alive)
    process.kill()
    assert not list((tmp_path / "progress").glob("*.parquet"))
    for _ in range(2):
        before = written()
        insert(1000)
        assert job.start(release=release).exit_code(DEADLINE_S) == 0
    assert written() == before + 1000, "the last run sends what is new"
    source = spark.read.format("kafka08").option("kafka.bootstrap.servers", broker.address)
    copied = source.option("subscribe", target).load().selectExpr("string(key)", "string(value)")
    assert copied.distinct().count() == rows
    expected = spark.range(rows).selectExpr(
        "string(id) key", """'{"id":' || id || ',"name":"name ' || id || '"}' value"""
    )
    assert expected.subtract(copied).count() == 0


# --- Delta Lake


@pytest.mark.slow
def test_a_table_of_delta_lake_after_a_kill(
    feed: Feed, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    try:
        python = environments.interpreter(DELTA_SPARK)
        jars = sorted(builds.jars(DELTA).glob("*.jar"))
    except builds.MissingError as error:
        pytest.skip(str(error))
    (home,) = python.parents[1].glob("lib/python3.*/site-packages/pyspark")
    release = Release(python, home, tuple(jars))
    lake = tmp_path / "lake"
    kill_between(recipe("topic_to_delta", f"--path={lake}"), feed, release=release)
    command = [*release.submit("local[2]"), str(JOBS / "delta_rows.py"), str(lake)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    found = [
        (row[0], row[1], *(each.encode() for each in row[2:])) for row in json.loads(done.stdout)
    ]
    assert found == feed.rows()
