"""The recipes of docs/spark-recipes.md, killed in the middle of a stream and started again.

Messages are produced all the while. Afterwards each of them is in the result, and once.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from integration import builds
from integration.harness import HOME, Broker
from integration.spark import environments
from integration.spark.scene import SPARK_WARNINGS
from integration.spark.support import missing, produce
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")
pytest.importorskip("psycopg")

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from integration.spark import postgres
from integration.spark.recipes import (
    DEADLINE_S,
    INSTALLED,
    Feed,
    Recipe,
    Release,
    Row,
    example,
    kill_between,
)
from integration.spark.sessions import utc_session
from integration.spark.standalone import StandaloneCluster, variables
from kafka08.spark import package

pytestmark = SPARK_WARNINGS
JOBS = Path(__file__).parent / "jobs"
POSTGRES_JDBC = "org.postgresql:postgresql:42.7.14"
DELTA, DELTA_SPARK = "io.delta:delta-spark_4.2_2.13:4.4.0", "4.2.1"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with utc_session() as session:
        yield session


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


# --- lines of text


def test_lines_of_files_and_back_as_the_page_says(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The blocks of docs/spark-connectors.md: files -> topic -> files."""
    broker.create_topic("lines")
    into_files, into_topic = BLOCK.findall((HOME / "docs" / "spark-connectors.md").read_text())
    rotated = tmp_path / "var" / "log" / "rotated"
    rotated.mkdir(parents=True)
    reader = spark.readStream.format("kafka08").option("subscribe", "lines")
    reader = reader.option("kafka.bootstrap.servers", broker.address)
    reader = reader.option("startingOffsets", "earliest")

    def run(block: str) -> None:
        block = block.replace('"/', f'"{tmp_path}/').replace("localhost:9092", broker.address)
        program = tmp_path / "block.py"
        program.write_text(block)
        query = runpy.run_path(str(program), {"spark": spark, "reader": reader})["query"]
        query.processAllAvailable()
        query.stop()

    for number in range(2):
        (rotated / f"{number}.log").write_text(f"first {number}\nsecond {number}\n")
        run(into_topic)
        run(into_files)
    found = spark.read.text(str(tmp_path / "lake" / "lines")).collect()
    expected = [f"{which} {number}" for which in ("first", "second") for number in range(2)]
    assert sorted(row.value for row in found) == expected


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
    assert process.alive, process.log[-5000:]
    process.kill()
    assert 0 < written() < rows
    assert not list((tmp_path / "progress").glob("*.parquet"))
    for _ in range(2):
        before = written()
        insert(1000)
        process = job.start(release=release)
        assert process.exit_code(DEADLINE_S) == 0, process.log[-5000:]
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
