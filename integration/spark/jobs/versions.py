"""Results of kafka08 on the installed release of PySpark, as one JSON object on the last line.

Arguments: broker, ZooKeeper, group, three topics of two partitions (the first one has LINES, the
others nothing), a directory.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from operator import add
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.streaming import StreamingContext

from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.spark import bulk
from kafka08.spark.dstream import KafkaUtils, OffsetRange

warnings.simplefilter("ignore")

DEADLINE_S = 180
FIELD = "at"
WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
# By partition; two are JSON with a time.
LINES = (["to be", '{"at":1404210000000}'], ["to be", '{"at":"2014-07-01T11:20:00Z"}'])
MORE = "or not"


def conf() -> SparkConf:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    found = SparkConf().setMaster("local[2,4]").setAppName("versions")
    found.set("spark.ui.enabled", "false").set("spark.driver.host", "127.0.0.1")
    # On a busy machine workers take long to start.
    found.set("spark.python.authenticate.socketTimeout", "300s")
    found.set("spark.driver.memory", "512m").set("spark.sql.shuffle.partitions", "2")
    found.set("spark.sql.session.timeZone", "Asia/Tokyo")
    found.set("spark.ui.showConsoleProgress", "false")
    return found.set("spark.driver.extraJavaOptions", "-Dderby.stream.error.file=/dev/null")


class Job:
    def __init__(self, broker: str, zookeeper: str, group: str, topics: str, root: str) -> None:
        self._broker, self._zookeeper, self._group = broker, zookeeper, group
        self._topic, self._target, self._copies = topics.split(",")
        self._root = Path(root)
        self._spark = SparkSession.builder.config(conf=conf()).getOrCreate()
        self._spark.sparkContext.setLogLevel("OFF")
        self._params = {"metadata.broker.list": broker, "auto.offset.reset": "smallest"}

    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = {"version": pyspark.__version__}
        found["rdd"] = self.ranges()
        found["bulk"] = self.exported()
        try:
            found["structured"] = self.structured()
        except ImportError as error:
            found["structured"] = str(error)
        found["group"] = self.group()
        found["direct"], found["recovered"] = self.direct()
        return found

    # --- DStreams and RDDs

    def ranges(self) -> dict[str, Any]:
        ranges = [OffsetRange(self._topic, 0, 1, 2), OffsetRange(self._topic, 1, 0, 1)]
        rdd = KafkaUtils.createRDD(self._spark.sparkContext, self._params, ranges)
        offsets = [[each.fromOffset, each.untilOffset] for each in rdd.offsetRanges()]
        return {"values": rdd.map(lambda pair: pair[1]).collect(), "ranges": offsets}

    def group(self) -> list[Any]:
        """All lines, as a member of the group."""
        seen: list[str] = []
        ssc = StreamingContext(self._spark.sparkContext, 0.5)
        params = {"auto.offset.reset": "smallest"}
        stream = KafkaUtils.createStream(
            ssc, self._zookeeper, self._group, {self._topic: 1}, params
        )
        stream.foreachRDD(lambda rdd: seen.extend(value for _, value in rdd.collect()))
        ssc.start()
        wait(ssc, lambda: len(seen) >= sum(map(len, LINES)))
        ssc.stop(False, True)
        return sorted(seen)

    def direct(self) -> list[Any]:
        """Words counted over a checkpoint; and again, with one line more, after a recovery."""
        checkpoint, out = str(self._root / "checkpoint"), self._root / "counts"

        def write(rdd: Any) -> None:
            out.write_text(json.dumps(dict(rdd.collect())))

        def create() -> StreamingContext:
            ssc = StreamingContext(self._spark.sparkContext, 0.5)
            ssc.checkpoint(checkpoint)
            stream = KafkaUtils.createDirectStream(ssc, [self._topic], self._params)
            words = stream.flatMap(lambda pair: pair[1].split()).map(lambda word: (word, 1))
            counts = words.reduceByKey(add).updateStateByKey(lambda new, old: sum(new) + (old or 0))
            counts.foreachRDD(write)
            return ssc

        def counted(words: int) -> dict[str, int]:
            ssc = StreamingContext.getOrCreate(checkpoint, create)
            ssc.start()
            found: dict[str, int] = {}

            def done() -> bool:
                nonlocal found
                found = json.loads(out.read_text() or "{}") if out.exists() else {}
                return sum(found.values()) >= words

            wait(ssc, done)
            ssc.stop(False, True)
            return found

        first = counted(6)
        self.send(MORE)
        return [first, counted(8)]

    def send(self, value: str) -> None:
        with KafkaProducer({"bootstrap.servers": self._broker, "acks": "all"}) as producer:
            producer.send(self._topic, value.encode(), partition=0)

    # --- bulk

    def exported(self) -> dict[str, Any]:
        """Of each format the number of messages, the rows, and the buckets of those with a time;
        and how many messages were loaded back."""
        found: dict[str, Any] = {}
        for format in bulk.FORMATS:
            root = str(self._root / format)
            unload = partial(bulk.unload, self._spark, self._broker, [self._topic], root)
            run = unload(format=format, timestamp_field=FIELD)
            assert run is not None
            assert unload(format=format) is None
            frame = self._spark.read.format(format).load(root).orderBy("partition", "offset")
            rows = [(row, text(row.value)) for row in frame.collect()]
            found[format] = {
                "count": sum(run.counts.values()),
                "rows": [(row.partition, row.offset, value) for row, value in rows],
                "buckets": [str(row.bucket) for row, value in rows if FIELD in value],
            }
        names = {self._topic: self._target}
        root = str(self._root / "json")
        found["loaded"] = bulk.load(self._spark, self._broker, root, topics=names)
        return found

    # --- Structured Streaming

    def structured(self) -> dict[str, Any]:
        """Rows that batch queries read, of the topic and of copies that a stream makes of it: at
        first, after one row more, and after nothing new."""
        importlib.import_module("kafka08.spark.datasource").register(self._spark)
        began = int(time.time() * 1000)
        found: dict[str, Any] = {"batch": self.rows(self._target)}
        read = self.source(self._spark.read, self._target).load()
        times = read.selectExpr("unix_millis(timestamp) AS ms").collect()
        found["times"] = all(began <= row.ms <= time.time() * 1000 for row in times)
        self.copy()
        found["copied"] = [self.rows(self._copies)]
        self.write("more")
        for _ in range(2):
            self.copy()
            found["copied"].append(self.rows(self._copies))
        found["batches"] = len(list((self._root / "copy" / "commits").glob("[0-9]")))
        found["killed"] = self.killed("late", False)
        found["wrapped"] = self.killed("later", True)
        found["limited"] = self.limited()
        return found

    def source(self, reader: Any, topic: str) -> Any:
        options = {"kafka.bootstrap.servers": self._broker, "startingOffsets": "earliest"}
        return reader.format("kafka08").options(**options, subscribe=topic)

    def sink(self, writer: Any, topic: str) -> Any:
        options = {"kafka.bootstrap.servers": self._broker, "topic": topic}
        return writer.format("kafka08").options(**options)

    def rows(self, topic: str) -> list[Any]:
        """(partition, offset, value) of each message."""
        frame = self.source(self._spark.read, topic).load().orderBy("partition", "offset")
        return [(row.partition, row.offset, text(row.value)) for row in frame.collect()]

    def write(self, value: str) -> None:
        schema = "key string, value string, partition int"
        row = self._spark.createDataFrame([(None, value, 1)], schema)
        self.sink(row.write, self._target).mode("append").save()

    def copy(self) -> None:
        rows = self.source(self._spark.readStream, self._target).load()
        writer = self.sink(rows.select("key", "value", "partition").writeStream, self._copies)
        writer = writer.option("checkpointLocation", str(self._root / "copy"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def killed(self, value: str, wrapper: bool) -> list[list[Any]]:
        """The copies after one and two starts of the query, whose last batch was not committed, and
        which has a row more to read."""
        self._spark.conf.set(WRAPPER, str(wrapper).lower())
        commits = self._root / "copy" / "commits"
        last = max(int(path.name) for path in commits.glob("[0-9]*"))
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink()
        self.write(value)
        found = []
        for _ in range(2):
            self.copy()
            found.append(self.rows(self._copies))
        return found

    def limited(self) -> list[int] | str:
        """The sizes of batches under a limit, or why there is none."""
        sizes: list[int] = []
        reader = self.source(self._spark.readStream, self._target)
        rows = reader.option("maxOffsetsPerTrigger", 2).load()
        writer = rows.writeStream.foreachBatch(lambda frame, _: sizes.append(frame.count()))
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        except PySparkException as error:
            return str(error)
        return sizes


def wait(ssc: StreamingContext, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError("no result of the stream")
        ssc.awaitTerminationOrTimeout(0.2)


def text(value: bytes | str) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


if __name__ == "__main__":
    print(json.dumps(Job(*sys.argv[1:]).run()))
