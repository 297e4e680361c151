"""A driver that sums what it reads, to be killed: checkpoint, output directory, brokers, topic,
master, seconds of an interval.

Each batch writes one file per range, named by the range, with its values; the running sum of all
goes to `sum`. `planned` has a line for each range an output began with, `tasks` one for each
attempt at one: partition, attempt, process of the executor. Files to steer it: while there is

- `hold`, batches wait before their output is written;
- `hold-tasks`, first attempts at tasks wait after they have fetched;
- `die`, the driver kills itself when a batch is in the offset log and nowhere else.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from pathlib import Path

from pyspark import SparkContext, TaskContext
from pyspark.streaming import StreamingContext

from integration.spark.support import spark_conf
from kafka08.spark.dstream import KafkaUtils
from kafka08.spark.files.offset_log import OffsetLog

warnings.simplefilter("ignore")


def write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def append(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(line + "\n")


def wait_while(path: str) -> None:
    while os.path.exists(path):
        time.sleep(0.05)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def noted(out: str):  # type: ignore[no-untyped-def]
    def each(rows):  # type: ignore[no-untyped-def]
        values = [int(value) for _, value in rows]
        context = TaskContext.get()
        if values:
            # A worker is a child of a daemon, and that of the executor.
            executor = parent_of(os.getppid())
            found = (context.partitionId(), context.attemptNumber(), executor)
            append(f"{out}/tasks", " ".join(map(str, found)))
            if context.attemptNumber() == 0:
                wait_while(f"{out}/hold-tasks")
        yield values

    return each


def output(out: str):  # type: ignore[no-untyped-def]
    def each(rdd):  # type: ignore[no-untyped-def]
        parts = rdd.mapPartitions(noted(out)).collect()
        for found, values in zip(rdd.offsetRanges(), parts, strict=True):
            if found.fromOffset < found.untilOffset:
                name = f"{found.topic}-{found.partition}-{found.fromOffset}-{found.untilOffset}"
                append(f"{out}/planned", name)
                wait_while(f"{out}/hold")
                write(Path(out, name), " ".join(map(str, values)))

    return each


def total(out: str):  # type: ignore[no-untyped-def]
    def each(rdd):  # type: ignore[no-untyped-def]
        for _, value in rdd.collect():
            write(Path(out, "sum"), str(value))

    return each


def add(new: list[int], old: int | None) -> int:
    return sum(new) + (old or 0)


def die_when_told(out: str) -> None:
    real = OffsetLog.write

    def logged(self, batch_ms, ranges):  # type: ignore[no-untyped-def]
        real(self, batch_ms, ranges)
        if os.path.exists(f"{out}/die") and any(each.size for each in ranges):
            os.killpg(os.getpgid(0), signal.SIGKILL)

    OffsetLog.write = logged  # type: ignore[method-assign]


def main(
    checkpoint: str,
    out: str,
    brokers: str,
    topic: str,
    master: str = "local[2,4]",
    seconds: str = "1",
) -> None:
    def create() -> StreamingContext:
        conf = spark_conf(master, streaming_kafka_maxRatePerPartition=50)
        ssc = StreamingContext(SparkContext(conf=conf), float(seconds))
        params = {"metadata.broker.list": brokers, "auto.offset.reset": "smallest"}
        stream = KafkaUtils.createDirectStream(ssc, [topic], params)
        stream.foreachRDD(output(out))
        pairs = stream.map(lambda pair: ("all", int(pair[1])))
        pairs.updateStateByKey(add).foreachRDD(total(out))
        ssc.checkpoint(checkpoint)
        return ssc

    die_when_told(out)
    ssc = StreamingContext.getOrCreate(checkpoint, create)
    ssc.start()
    print("running", flush=True)
    while not os.path.exists(f"{out}/stop"):
        time.sleep(0.1)
    ssc.stop(True, True)


if __name__ == "__main__":
    main(*sys.argv[1:])
