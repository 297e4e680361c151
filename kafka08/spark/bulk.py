"""Copies topics to files by time, and files back to topics, in consecutive runs.

A run reads from the end of the last one to the log ends at its start, and becomes visible as a
whole (see ``run_history``): even after a kill each message is in exactly one run. Replaces Camus
and the contributed Hadoop input and output formats, on Spark.

As a program: ``spark-submit kafka08/spark/bulk.py unload|load --help``.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from pyspark import SparkContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafka08.client.security import ClientSecurity
from kafka08.common import ISOLATION_LEVELS, READ_UNCOMMITTED, Broker, TopicPartition
from kafka08.errors import ConfigError, KafkaError
from kafka08.message.entry import BytesLike
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.progress import Progress
from kafka08.runtime import Runtime, Scheduler, ThreadRuntime
from kafka08.settings.settings import Settings, dotted, one_of
from kafka08.spark.errors import DataLossError
from kafka08.spark.files.run_history import Run, RunHistory
from kafka08.spark.params import SourceParams, endpoints_in
from kafka08.spark.planner import Range, split_ranges, split_total
from kafka08.spark.rdd import Elements, make_rdd
from kafka08.spark.values import KafkaMessageAndMetadata, utf8_decoder

T = TypeVar("T")
# Topic, partition, offset, key and value.
Cells: TypeAlias = "tuple[str, int, int, bytes | str | None, bytes | str | None]"

NO_PARAMS: Mapping[str, str] = MappingProxyType({})
logger = logging.getLogger("kafka08.spark.bulk")

FORMATS = ("parquet", "json")
BUCKETS = {"day": "yyyy-MM-dd", "hour": "yyyy-MM-dd-HH", "minute": "yyyy-MM-dd-HH-mm"}
SCHEMA = "topic string, partition int, offset long, key {0}, value {0}"
IN_FLIGHT = 1000
POLL_MS = 1000


class UnloadOptions(Settings):
    """The options of ``unload`` that connectors have too, there with these keys."""

    bucket: str = dotted("hour", one_of(*BUCKETS), doc="period of time that a file covers")
    timestamp_field: str = dotted(
        "", doc="field of JSON values with the time; the default is the time of the run"
    )
    max_messages: int = dotted(0, low=0, doc="approximate limit of one run; 0: no limit")
    fail_on_data_loss: bool = dotted(
        True, doc="fail if messages were removed before they were read"
    )
    isolation_level: str = dotted(
        READ_UNCOMMITTED,
        one_of(*ISOLATION_LEVELS),
        doc="read_committed: no messages of transactions that are open or aborted",
    )


def unload(
    spark: SparkSession,
    brokers: str,
    topics: Sequence[str],
    root: str,
    *,
    format: str = "parquet",
    max_records_per_task: int = 1_000_000,
    kafka_params: Mapping[str, str] = NO_PARAMS,
    **options: Any,
) -> Run | None:
    """One run: what ``topics`` got since the last one, as files below ``root``; None without news.

    Files are in ``topic=T/bucket=TIME``: the time of the run, or that of a field of JSON values
    (ISO text or epoch ms) where a message has it. ``kafka_params``: settings of the connections,
    such as security.protocol. ``options``: those of UnloadOptions.

    Raises ConfigError, DataLossError when messages were removed before they were read (without
    ``fail_on_data_loss`` they are warned of), RunConflictError, and what Spark raises for a job.
    """
    if format not in FORMATS:
        raise ConfigError(f"format has value {format} which is not one of {', '.join(FORMATS)}.")
    chosen = UnloadOptions(**options)
    history = RunHistory(spark.sparkContext, root)
    params = SourceParams(
        endpoints_in(brokers),
        client_id="kafka08-bulk",
        option="brokers",
        security=ClientSecurity.from_properties(kafka_params),
        isolation_level=chosen.isolation_level,
    )
    last = history.last()
    ranges, leaders = plan(params, topics, last, chosen.max_messages, chosen.fail_on_data_loss)
    if not any(each.size for each in ranges):
        return None
    number = last.number + 1 if last else 1
    time_ms = int(time.time() * 1000)
    with ExitStack() as failed:
        directory = history.stage(number)
        failed.callback(history.drop, directory)
        text = format == "json"
        tasks = split_ranges(ranges, max_records=max_records_per_task)
        elements = Elements(handler=_text_row if text else _row)
        rdd = make_rdd(spark.sparkContext, params, tasks, leaders, elements)
        schema = SCHEMA.format("string" if text else "binary")
        frame = spark.createDataFrame(rdd, schema)
        frame = _with_bucket(frame, time_ms, BUCKETS[chosen.bucket], chosen.timestamp_field)
        writer = frame.write.partitionBy("topic", "bucket").format(format)
        path = history.path(directory)
        followed(spark.sparkContext, f"Run {number}", partial(writer.save, path))
        counts = _counts(spark, path, format, schema)
        files = tuple(history.staged_files(directory))
        run = Run(number, time_ms, format, tuple(ranges), counts, files)
        history.commit(directory, run)
        failed.pop_all()
    logger.info("Run %d: %d messages", number, sum(counts.values()))
    return run


def plan(
    params: SourceParams,
    topics: Sequence[str],
    last: Run | None,
    max_messages: int,
    fail_on_data_loss: bool,
) -> tuple[list[Range], Mapping[TopicPartition, Broker]]:
    """(what the next run reads, the leaders). Raises as ``unload`` does."""
    with params.offset_reader() as reader:
        partitions = reader.partitions(topics)
        before = last.ends if last else {}
        earliest = reader.earliest(partitions)
        latest = reader.latest_since(before, partitions, doubts=0)
        leaders = reader.leaders(partitions)
    start = {}
    for tp in partitions:
        start[tp] = before.get(tp, earliest[tp])
        if earliest[tp] <= start[tp] <= latest[tp]:
            continue
        text = (
            f"The last run ended at offset {start[tp]} of {tp}, but the log now has "
            f"[{earliest[tp]}, {latest[tp]})"
        )
        if fail_on_data_loss:
            raise DataLossError(f"{text}. Messages were removed, or the topic was created again")
        logger.warning("%s: going on at %d", text, earliest[tp])
        start[tp] = earliest[tp]
    ends = split_total(max_messages, start, latest) if max_messages else latest
    ranges = {tp: Range(tp.topic, tp.partition, start[tp], ends[tp]) for tp in partitions}
    for tp, end in before.items():
        ranges.setdefault(tp, Range(tp.topic, tp.partition, end, end))
    return [ranges[tp] for tp in sorted(ranges)], leaders


def _row(message: KafkaMessageAndMetadata) -> Cells:
    where = (message.topic, message.partition, message.offset)
    return *where, _bytes(message._rawKey), _bytes(message._rawMessage)


def _text_row(message: KafkaMessageAndMetadata) -> Cells:
    """Raises KafkaError for bytes that are not UTF-8, as they could not be restored."""
    topic, partition, offset = message.topic, message.partition, message.offset
    try:
        key, value = utf8_decoder(message._rawKey), utf8_decoder(message._rawMessage)
    except UnicodeDecodeError as error:
        raise KafkaError(
            f"The message at offset {offset} of {topic}-{partition} is not UTF-8 ({error}): unload "
            "this topic as parquet"
        ) from None
    return topic, partition, offset, key, value


def _with_bucket(frame: DataFrame, time_ms: int, pattern: str, field: str) -> DataFrame:
    moment = F.timestamp_millis(F.lit(time_ms))
    if field:
        # A function of the JVM's that takes the path as it is: field names may hold anything.
        text = F.get_json_object(F.col("value").cast("string"), f"$['{field}']")
        # As SQL: columns have no method try_cast before Spark 4.
        frame = frame.withColumn("bucket", text)
        number = F.expr("timestamp_millis(try_cast(bucket AS bigint))")
        moment = F.coalesce(number, F.expr("try_cast(bucket AS timestamp)"), moment)
    return frame.withColumn(
        "bucket", F.date_format(F.to_utc_timestamp(moment, F.current_timezone()), pattern)
    )


def _counts(spark: SparkSession, directory: str, format: str, schema: str) -> dict[str, int]:
    """The contents of the files."""
    frame = spark.read.format(format).schema(schema).load(directory)
    rows = frame.groupBy("topic", "partition").count().collect()
    return {f"{row['topic']}-{row['partition']}": row["count"] for row in sorted(rows)}


def load(
    spark: SparkSession,
    brokers: str,
    root: str,
    *,
    name: str = "default",
    topics: Mapping[str, str] | None = None,
    keep_partitions: bool = True,
    producer: Mapping[str, str] | None = None,
) -> int:
    """Send the runs below ``root`` that ``name`` has not loaded yet; the number of messages.

    Each partition's messages keep their order. ``topics`` names the topics to load and what they
    are called now; without it all are, under their own names. A run is marked when all of it is
    acknowledged: after a kill the run that was under way is sent again.
    """
    history = RunHistory(spark.sparkContext, root)
    todo = [number for number in history.numbers() if number not in history.loaded(name)]
    settings = {"acks": "all", "retries": "10", **(producer or {}), "bootstrap.servers": brokers}
    total = 0
    for number in todo:
        run = history.run(number)
        kind = "string" if run.format == "json" else "binary"
        frame = spark.read.format(run.format).schema(SCHEMA.format(kind))
        rows = frame.load(history.path(run.directory))
        if topics is not None:
            rows = rows.where(F.col("topic").isin(list(topics)))
        columns = [F.col(each).cast("binary") for each in ("key", "value")]
        rows = rows.repartition("topic", "partition").sortWithinPartitions(
            "topic", "partition", "offset"
        )
        rows = rows.select("topic", "partition", *columns)
        sent = rows.rdd.mapPartitions(partial(_send, settings, dict(topics or {}), keep_partitions))
        total += sum(followed(spark.sparkContext, f"Loading run {number}", sent.collect))
        history.mark_loaded(name, number)
    return total


def _send(
    settings: Mapping[str, str],
    names: Mapping[str, str],
    keep_partitions: bool,
    rows: Iterable[Row],
) -> Iterator[int]:
    """A partition of rows, on an executor; yields their number when all are acknowledged."""
    count = 0
    pending = []
    with KafkaProducer(settings) as producer:
        for topic, partition, key, value in rows:
            target = partition if keep_partitions else None
            name = names.get(topic, topic)
            pending.append(producer.send(name, _bytes(value), _bytes(key), target))
            count += 1
            if len(pending) >= IN_FLIGHT:
                for future in pending[: IN_FLIGHT // 2]:
                    future.result()
                del pending[: IN_FLIGHT // 2]
        for future in pending:
            future.result()
    yield count


def _bytes(data: BytesLike | None) -> bytes | None:
    return None if data is None else bytes(data)


# --- how far it is


def followed(
    context: SparkContext, text: str, call: Callable[[], T], runtime: Runtime | None = None
) -> T:
    """The result of ``call``, which runs Spark jobs in this thread; ``text`` says what for.

    On stderr: a bar if it is a terminal, else a line a minute.
    """
    runtime = runtime or ThreadRuntime()
    # Each job needs a group of its own: another one would take away its name.
    group = context.getLocalProperty("spark.jobGroup.id")
    before = set(context.statusTracker().getJobIdsForGroup(group))
    progress = Progress(None, text, unit="tasks", millis=runtime.clock.millis)
    scheduler = Scheduler(runtime)
    scheduler.every("job-progress", POLL_MS, partial(_show, context, group, before, progress))
    try:
        return call()
    finally:
        scheduler.stop()
        progress.close()


def _show(context: SparkContext, group: str | None, before: set[int], progress: Progress) -> None:
    done = total = 0
    tracker = context.statusTracker()
    for number in set(tracker.getJobIdsForGroup(group)) - before:
        job = tracker.getJobInfo(number)
        for stage in job.stageIds if job is not None else ():
            info = tracker.getStageInfo(stage)
            if info is not None:
                done += info.numCompletedTasks
                total += info.numTasks
    if total:
        progress.show(done, total)


# --- as a program


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    builder = SparkSession.builder.appName(f"kafka08-bulk-{args.command}")
    # Its bar would mix with ours, and is written to files too.
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        if args.command == "load":
            topics = None
            if args.topics:
                pairs = (word.partition("=") for word in args.topics.split(","))
                topics = {old: new or old for old, _, new in pairs}
            sent = load(spark, args.bootstrap_server, args.root, name=args.name, topics=topics)
            print(f"{sent} messages sent")
            return 0
        run = unload(
            spark,
            args.bootstrap_server,
            [topic for topic in args.topics.split(",") if topic],
            args.root,
            format=args.format,
            **{name: getattr(args, name) for name in UnloadOptions.settings()},
        )
        if run is None:
            print("Nothing new")
        else:
            print(f"Run {run.number}: {sum(run.counts.values())} messages, {len(run.files)} files")
        return 0
    except KafkaError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    finally:
        spark.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bulk.py", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for command, topics in (("unload", "t1,t2"), ("load", "t1,t2=new name of t2")):
        sub = commands.add_parser(command)
        sub.add_argument("--bootstrap-server", required=True, metavar="host:port,...")
        sub.add_argument("--root", required=True, metavar="URI", help="the directory of the runs")
        sub.add_argument("--topics", required=command == "unload", default="", metavar=topics)
        if command == "load":
            sub.add_argument("--name", default="default", help="whose loads are remembered")
            continue
        sub.add_argument("--format", choices=FORMATS, default="parquet")
        sub.add_argument("--bucket", choices=BUCKETS, default="hour")
        sub.add_argument("--timestamp-field", default="", help="field of JSON values with the time")
        sub.add_argument("--max-messages", type=int, default=0, help="about the most of one run")
        sub.add_argument("--isolation-level", choices=ISOLATION_LEVELS, default=READ_UNCOMMITTED)
        sub.add_argument("--ignore-data-loss", action="store_false", dest="fail_on_data_loss")
    return parser


if __name__ == "__main__":
    # By its name: what executors are sent must not be of __main__.
    from kafka08.spark import bulk

    sys.exit(bulk.main())
