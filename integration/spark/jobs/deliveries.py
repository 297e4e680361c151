"""Sales joined with the shipments that follow within a quarter of an hour, counted by window.

A driver of it, to be killed: checkpoint, output directory, brokers, topic of sales, topic of
shipments. Each batch writes its rows to `batch-` and its number, and when it has ended what Spark
tells of it to `progress-` and its number. While there is a file `hold`, batches that have written
do not end; it ends when there is a file `stop`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from integration.spark.support import run_until, spark_conf
from kafka08.spark.datasource import register

warnings.simplefilter("ignore")

EVENT = "sku string, quantity long, time timestamp"
LATENESS = "10 minutes"


def deliveries(sales: Any, shipments: Any) -> Any:
    """The same on streams and on tables."""

    def events(frame: Any, quantity: str, time: str, sku: str) -> Any:
        parsed = F.from_json(F.col("value").cast("string"), EVENT).alias("e")
        rows = frame.select(parsed).selectExpr(
            f"e.sku {sku}", f"e.quantity {quantity}", f"e.time {time}"
        )
        return rows.withWatermark(time, LATENESS)

    sold = events(sales, "sold", "sold_at", "sku")
    came = events(shipments, "shipped", "shipped_at", "shipped_sku")
    after = "sku = shipped_sku AND shipped_at BETWEEN sold_at AND sold_at + INTERVAL 15 MINUTES"
    counts = (
        sold.join(came, F.expr(after))
        .groupBy(F.window("sold_at", "10 minutes"), "sku")
        .agg(
            F.sum("sold").alias("sold"), F.sum("shipped").alias("shipped"), F.count("*").alias("n")
        )
    )
    start = F.date_format("window.start", "HH:mm").alias("start")
    return counts.select(start, "sku", "sold", "shipped", "n")


def write(path: Path, value: object) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value))
    temporary.replace(path)


class Progress(StreamingQueryListener):
    """Writes what Spark tells of each batch to ``out``."""

    def __init__(self, out: str) -> None:
        self._out = out

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        found = event.progress
        dropped = sum(each.numRowsDroppedByWatermark for each in found.stateOperators)
        value = {"dropped": dropped, "watermark": found.eventTime.get("watermark", "")}
        write(Path(self._out, f"progress-{found.batchId}"), value)

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...


def main(checkpoint: str, out: str, brokers: str, *topics: str) -> None:
    def batch(frame: Any, number: int) -> None:
        write(Path(out, f"batch-{number}"), [list(row) for row in frame.collect()])
        while os.path.exists(f"{out}/hold"):
            time.sleep(0.05)

    conf = spark_conf("local[2,4]").set("spark.sql.session.timeZone", "UTC")
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    register(spark)
    spark.streams.addListener(Progress(out))
    source = spark.readStream.format("kafka08").option("kafka.bootstrap.servers", brokers)
    source = source.option("startingOffsets", "earliest")
    sales, shipments = (source.option("subscribe", topic).load() for topic in topics)
    writer = deliveries(sales, shipments).writeStream.foreachBatch(batch)
    query = writer.option("checkpointLocation", checkpoint).start()
    run_until(Path(out, "stop"), query)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
