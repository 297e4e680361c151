"""The rows that Spark reads of a topic with transactions: by our format, or by Spark's connector.

    python isolation.py BROKERS TOPIC JARS

prints, as JSON, the rows that the connector reads: of a batch and of a stream, by isolation level.
Run as a file by the interpreter whose PySpark is meant.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import uuid
from collections.abc import Mapping
from typing import Any

LEVELS = ("read_committed", "read_uncommitted")


def read(
    spark: Any, format: str, brokers: str, topic: str, more: Mapping[str, str]
) -> dict[str, list[list[Any]]]:
    """[offset, value] of the rows, by way of reading and isolation level. ``more``: options."""
    found = {}
    for level in LEVELS:
        options = {
            "kafka.bootstrap.servers": brokers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "kafka.isolation.level": level,
            **more,
        }
        found[f"batch {level}"] = rows(spark.read.format(format).options(**options).load())
        name = f"t{uuid.uuid4().hex}"
        stream = spark.readStream.format(format).options(**options).load()
        writer = stream.writeStream.format("memory").queryName(name)
        writer = writer.option("checkpointLocation", tempfile.mkdtemp())
        writer.trigger(availableNow=True).start().awaitTermination()
        found[f"stream {level}"] = rows(spark.table(name))
    return found


def rows(frame: Any) -> list[list[Any]]:
    chosen = frame.selectExpr("offset", "CAST(value AS STRING) AS value").orderBy("offset")
    return [[row.offset, row.value] for row in chosen.collect()]


def main(brokers: str, topic: str, jars: str) -> None:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "512m")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.jars": jars,
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps(read(spark, "kafka", brokers, topic, {})), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
