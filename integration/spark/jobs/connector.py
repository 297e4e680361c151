"""Spark's own ``format("kafka")`` at work: a program apart from this project.

    python connector.py BROKERS SOURCE TARGET JARS

Reads all of SOURCE twice, as a batch and as a stream that writes to TARGET, and adds
three rows with headers to TARGET. Prints the rows of the batch as JSON, one a line. Run as a file
by the interpreter whose PySpark is meant.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from typing import Any


def main(brokers: str, source: str, target: str, jars: str) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import Row

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "512m")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.jars": jars,
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    given = {"kafka.bootstrap.servers": brokers, "includeHeaders": "true"}
    read = {**given, "subscribe": source, "startingOffsets": "earliest"}
    write = {**given, "topic": target}

    for row in spark.read.format("kafka").options(**read).load().collect():
        print(json.dumps(shown(row)), flush=True)

    stream = spark.readStream.format("kafka").options(**read).load()
    writer = stream.select("key", "value", "headers").writeStream.format("kafka").options(**write)
    writer = writer.option("checkpointLocation", tempfile.mkdtemp())
    writer.trigger(availableNow=True).start().awaitTermination()

    rows = [(b"batch", b"%d" % n, [Row(key="n", value=b"%d" % n)]) for n in range(3)]
    kind = "key binary, value binary, headers array<struct<key: string, value: binary>>"
    spark.createDataFrame(rows, kind).write.format("kafka").options(**write).save()
    spark.stop()


def shown(row: Any) -> list[Any]:
    """Bytes in base64; the timestamp in ms."""
    headers = [[header.key, text(header.value)] for header in row.headers or []]
    time = round(row.timestamp.timestamp() * 1000)
    return [row.offset, text(row.key), text(row.value), time, row.timestampType, headers]


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


if __name__ == "__main__":
    main(*sys.argv[1:])
