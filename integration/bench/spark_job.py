"""Measures one Spark with a Kafka format, in rows a second: a program apart from this project.

    python spark_job.py FORMAT BROKERS ROWS ROUNDS [JAR,...]

Reads the topic ``filled`` of ``ROWS`` rows, writes half as many to ``written``, in local[2]. Prints
JSON: name -> for each round rows a second, and the CPU seconds of a million rows. Run as a file by
the interpreter whose PySpark is meant.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    from kafka08.spark.datasource import register
except ImportError:  # for the other format, by an interpreter that does not have this project
    pass

BATCHES = 5


def main(kind: str, brokers: str, rows: int, rounds: int, jars: str = "") -> None:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.jars": jars,
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if kind == "kafka08":
        register(spark)
    address = {"kafka.bootstrap.servers": brokers}

    def load(reader: Any, **options: Any) -> Any:
        return reader.format(kind).options(**address, subscribe="filled", **options).load()

    half = spark.range(0, rows // 2, 1, 2)
    half = half.selectExpr("cast(lpad(string(id), 100, 'x') as binary) as value").cache()

    def batch() -> float:
        return rows / timed(lambda: noop(load(spark.read)))

    def stream() -> float:
        options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": rows // BATCHES}
        writer = load(spark.readStream, **options).writeStream.format("noop")
        writer = writer.option("checkpointLocation", tempfile.mkdtemp())
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        steady = [each for each in query.recentProgress if each["numInputRows"]][1:]
        seconds = sum(each["durationMs"]["triggerExecution"] for each in steady) / 1000
        return float(sum(each["numInputRows"] for each in steady) / seconds)

    def sink() -> float:
        writer = half.write.format(kind).options(**address, topic="written").mode("append")
        return rows // 2 / timed(writer.save)

    noop(half)
    cases = {"batch": (batch, rows), "stream": (stream, rows), "sink": (sink, rows // 2)}
    for case, _ in cases.values():  # the first of each starts processes and warms the JVM
        case()
    found = {
        name: [with_cpu(case, count) for _ in range(rounds)]
        for name, (case, count) in cases.items()
    }
    spark.stop()
    print(json.dumps(found))


def with_cpu(case: Callable[[], float], rows: int) -> tuple[float, float]:
    """A case's rate, and what a million rows cost."""
    begin = cpu_seconds(os.getpid())
    rate = case()
    return rate, (cpu_seconds(os.getpid()) - begin) / rows * 1e6


def cpu_seconds(root: int) -> float:
    """User and system time of a process and of all below it, ended ones included."""
    parents, ticks = {}, {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(directory.name)] = int(fields[1])
        ticks[int(directory.name)] = sum(map(int, fields[11:15]))

    def is_below(process: int) -> bool:
        while process != root and process in parents:
            process = parents[process]
        return process == root

    return sum(ticks[process] for process in parents if is_below(process)) / os.sysconf(
        "SC_CLK_TCK"
    )


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def timed(call: Callable[[], object]) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
