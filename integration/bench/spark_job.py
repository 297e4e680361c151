"""Measures one Spark with a Kafka format: run by the interpreter whose PySpark is meant.

    python spark_job.py JSON

The argument is a ``Job``. The last line of the output is JSON too: a list of measured rows, each
[name, unit, whether more is better, values].
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from integration.bench import processes
from kafka08.spark.datasource import register

BATCHES = 5
MB = 1 << 20
# So long is a query idle before it is looked at, and looked at.
REST_S, IDLE_S = 5, 10
POLL_S = 0.05
PLAIN = "kafka08"

Measured = list[tuple[str, str, bool, list[float]]]


class Job(NamedTuple):
    """``format`` with ``options`` in a Spark of ``master``; ``cases``: batch, stream, sink, peak,
    queries. ``topic`` has ``rows`` values; values of ``size`` bytes go to the topic ``written``."""

    format: str
    options: dict[str, str]
    master: str
    cases: list[str]
    topic: str
    size: int
    rows: int
    rounds: int
    queries: list[int]
    jars: str = ""


class Bench:
    def __init__(self, job: Job, spark: Any) -> None:
        self._job = job
        self._spark = spark

    def measure(self) -> Measured:
        found: Measured = []
        for name in self._job.cases:
            found += getattr(self, name)()
        return found

    # --- rates

    def batch(self) -> Measured:
        return self._rates("batch", lambda: self._job.rows / timed(self._read_all), self._job.rows)

    def stream(self) -> Measured:
        return self._rates("stream", self._streamed, self._job.rows)

    def sink(self) -> Measured:
        rows, size = self._job.rows // 2, self._job.size
        frame = self._spark.range(0, rows, 1, 2)
        frame = frame.selectExpr(f"cast(lpad(string(id), {size}, 'x') as binary) as value").cache()
        noop(frame)
        writer = frame.write.format(self._job.format).options(**self._job.options, topic="written")
        found = self._rates("sink", lambda: rows / timed(writer.mode("append").save), rows)
        frame.unpersist()
        return found

    def _rates(self, name: str, case: Callable[[], float], rows: int) -> Measured:
        case()  # the first starts processes and warms the JVM
        rates, seconds = [], []
        for _ in range(self._job.rounds):
            begin = cpu()
            rates.append(case() / 1000)
            seconds.append((cpu() - begin) / rows * 1e6)
        return [(name, "k rows/s", True, rates), (f"{name}, CPU", "s/M rows", False, seconds)]

    def _load(self, reader: Any, **options: Any) -> Any:
        given = {**self._job.options, "subscribe": self._job.topic, **options}
        return reader.format(self._job.format).options(**given).load()

    def _read_all(self) -> None:
        noop(self._load(self._spark.read))

    def _streamed(self) -> float:
        rows = self._job.rows // BATCHES
        frame = self._load(
            self._spark.readStream, startingOffsets="earliest", maxOffsetsPerTrigger=rows
        )
        writer = frame.writeStream.format("noop")
        writer = writer.option("checkpointLocation", tempfile.mkdtemp())
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        steady = [each for each in query.recentProgress if each["numInputRows"]][1:]
        seconds = sum(each["durationMs"]["triggerExecution"] for each in steady) / 1000
        return float(sum(each["numInputRows"] for each in steady) / seconds)

    # --- memory

    def peak(self) -> Measured:
        """Of a batch query over all rows, which nothing warmed up."""
        with processes.Peak(os.getpid()) as peak:
            self._read_all()
        found: Measured = []
        for name, parts in {"RSS": peak.rss, "PSS": peak.pss}.items():
            for kind, used in {"all processes": sum(parts.values()), **parts}.items():
                found.append((f"peak {name} of {kind}", "MB", False, [used / MB]))
        return found

    # --- many queries

    def queries(self) -> Measured:
        found: Measured = []
        for count in self._job.queries:
            found += self._queries(count)
        return found

    def _queries(self, count: int) -> Measured:
        """Of ``count`` queries that read the topic to its end, and ask for more once a second. They
        are started when each has had its first batch.

        A query is started when the last one has its source: Spark gives a source in Python 10 s to
        start its process.
        """
        begin = time.monotonic()
        running = [self._start() for _ in range(count)]
        for query in running:
            while query.isActive and not query.recentProgress:
                time.sleep(POLL_S)
        seconds = time.monotonic() - begin
        time.sleep(REST_S)
        before = processes.usage(os.getpid())
        time.sleep(IDLE_S)
        after = processes.usage(os.getpid())
        for query in running:
            query.stop()
        name = f"{count} queries" if count > 1 else "1 query"
        found: Measured = [(f"{name}, start", "s", False, [seconds])]
        parts = {kind: used.pss for kind, used in after.items()}
        for kind, size in {"all processes": sum(parts.values()), **parts}.items():
            found.append((f"{name}, PSS of {kind}", "MB", False, [size / MB]))
        idle = sum(used.cpu for used in after.values()) - sum(used.cpu for used in before.values())
        found.append((f"{name}, idle CPU", "% of a core", False, [idle / IDLE_S * 100]))
        return found

    def _start(self) -> Any:
        frame = self._load(self._spark.readStream, startingOffsets="earliest")
        writer = frame.writeStream.format("noop")
        writer = writer.option("checkpointLocation", tempfile.mkdtemp())
        query = writer.trigger(processingTime="1 second").start()
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(POLL_S)
        return query


def main(text: str) -> None:
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    job = Job(**json.loads(text))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(job.master).config("spark.driver.memory", "1g")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.jars": job.jars,
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if job.format == PLAIN:
        register(spark)
    found = Bench(job, spark).measure()
    spark.stop()
    print(json.dumps(found))


def cpu() -> float:
    """User and system time of all processes until now."""
    return sum(used.cpu for used in processes.usage(os.getpid()).values())


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def timed(call: Callable[[], object]) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


if __name__ == "__main__":
    main(sys.argv[1])
