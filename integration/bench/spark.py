"""Rows a second between Spark and one broker on the same machine: `make bench WHAT=spark`.

Values of 100 bytes, CRCs checked, topics filled beforehand. Steady means without the first batch
of a query, which starts processes:

- source: a stream in batches of a fifth of the data into Spark's no-op sink, as Arrow columns;
- batch: the same data in one query;
- direct DStream: keys and values as Python bytes, counted in Python, batches after the first;
- sink: generated rows into a topic, every replica's acknowledgement awaited.

Sources are measured for 1, 2 and 4 partitions, and for 4 partitions on executors of their own.
Nothing is asserted: numbers depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.streaming import StreamingContext

from integration.bench.machine import described
from integration.bench.table import Row, markdown
from integration.harness import Broker, ZooKeeper, kill_everything
from integration.spark.support import missing, spark_conf
from kafka08.message.sets import encode_set
from kafka08.spark.datasource import register
from kafka08.spark.dstream import KafkaUtils

VALUE_BYTES = 100
SET_ROWS = 5000
BATCHES = 5
PARTITIONS = (1, 2, 4)
KIND = "ours"


class Bench:
    """`rows` in all partitions of a topic together; results gather in `results`."""

    def __init__(self, broker: Broker, directory: Path, rows: int) -> None:
        self.broker = broker
        self.rows = rows
        self.results: list[Row] = []
        self._directory = directory

    def fill(self, partitions: int) -> str:
        topic = f"bench-{partitions}"
        self.broker.create_topic(topic, partitions)
        values = [(None, os.urandom(VALUE_BYTES)) for _ in range(SET_ROWS)]
        data = encode_set(values)
        with self.broker.wire() as wire:
            for number in range(self.rows // SET_ROWS):
                wire.produce(topic, number % partitions, data)
        return topic

    def note(self, name: str, rate: float) -> None:
        print(f"{name}: {rate:,.0f} rows/s", file=sys.stderr, flush=True)
        self.results.append(Row(name, "k rows/s", True, {KIND: [rate / 1000]}))

    def checkpoint(self) -> str:
        return tempfile.mkdtemp(dir=self._directory)

    # --- structured

    def load(self, reader: Any, topic: str, **options: Any) -> Any:
        given = {"kafka.bootstrap.servers": self.broker.address, "subscribe": topic, **options}
        return reader.format("kafka08").options(**given).load()

    def stream(self, spark: Any, topic: str, name: str) -> None:
        frame = self.load(
            spark.readStream,
            topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=self.rows // BATCHES,
        )
        writer = frame.writeStream.format("noop").option("checkpointLocation", self.checkpoint())
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        steady = [p for p in query.recentProgress if p["numInputRows"]][1:]
        seconds = sum(p["durationMs"]["triggerExecution"] for p in steady) / 1000
        self.note(name, sum(p["numInputRows"] for p in steady) / seconds)

    def batch(self, spark: Any, topic: str, name: str) -> None:
        frame = self.load(spark.read, topic)
        self.note(name, self.rows / timed(lambda: noop(frame)))

    def sink(self, spark: Any, partitions: int) -> None:
        topic = f"sink-{partitions}"
        self.broker.create_topic(topic, partitions)
        frame = spark.range(0, self.rows // 2, 1, 2)
        frame = frame.selectExpr("cast(lpad(string(id), 100, 'x') as binary) as value").cache()
        noop(frame)
        target = {"kafka.bootstrap.servers": self.broker.address, "topic": topic}

        def write() -> None:
            frame.write.format("kafka08").options(**target).mode("append").save()

        write()
        name = f"sink, 2 tasks, {partitions} partitions"
        self.note(name, self.rows // 2 / timed(write))
        frame.unpersist()

    # --- DStreams

    def direct(self, spark: Any, topic: str, partitions: int, name: str) -> None:
        sc = spark.sparkContext
        rate = self.rows // BATCHES // partitions
        sc._conf.set("spark.streaming.kafka.maxRatePerPartition", str(rate))
        found: list[tuple[int, float]] = []

        def count(rdd: Any) -> None:
            begin = time.monotonic()
            rows = rdd.count()
            if rows:
                found.append((rows, time.monotonic() - begin))

        ssc = StreamingContext(sc, 1)
        params = {"metadata.broker.list": self.broker.address, "auto.offset.reset": "smallest"}
        decoders = {"keyDecoder": as_it_is, "valueDecoder": as_it_is}
        KafkaUtils.createDirectStream(ssc, [topic], params, **decoders).foreachRDD(
            lambda rdd: count(rdd)
        )
        ssc.start()
        while sum(rows for rows, _ in found) < self.rows:
            time.sleep(0.2)
        ssc.stop(False, False)
        steady = found[1:]
        self.note(name, sum(rows for rows, _ in steady) / sum(seconds for _, seconds in steady))


def as_it_is(data: Any) -> Any:
    return data


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def timed(call: Callable[[], object]) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


@contextmanager
def session(master: str) -> Iterator[Any]:
    conf = spark_conf(master, executor_memory="512m", ui_showConsoleProgress="false")
    conf.set("spark.driver.memory", "1g")
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    try:
        yield spark
    finally:
        spark.stop()


def measure(bench: Bench, workers: bool) -> None:
    topics = {number: bench.fill(number) for number in PARTITIONS}
    with session("local[4]") as spark:
        noop(bench.load(spark.read, topics[1]).limit(1000))
        for number, topic in topics.items():
            bench.stream(spark, topic, f"source, {number} partitions")
        bench.batch(spark, topics[2], "batch, 2 partitions")
        for number, topic in topics.items():
            bench.direct(spark, topic, number, f"direct DStream, {number} partitions")
        bench.sink(spark, 2)
    if not workers:
        return
    for count in (1, 2):
        with session(f"local-cluster[{count},1,512]") as spark:
            noop(bench.load(spark.read, topics[4]).limit(1000))
            bench.stream(spark, topics[4], f"source, 4 partitions, {count} executors of one core")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="in each topic")
    parser.add_argument("--no-workers", action="store_true", help="without local-cluster")
    args = parser.parse_args(argv)
    if missing():
        print(f"Not measured: {missing()}", file=sys.stderr)
        return 0
    warnings.simplefilter("ignore")
    directory = Path(tempfile.mkdtemp(prefix="kafka08-bench-spark-"))
    try:
        zookeeper = ZooKeeper(directory / "zookeeper").start()
        broker = Broker("ours", directory / "broker", f"{zookeeper.connect}/bench").start()
        bench = Bench(broker, directory, args.rows)
        measure(bench, not args.no_workers)
    finally:
        kill_everything()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{described()}, {args.rows:,} rows\n")
    print(markdown(bench.results, [KIND]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
