"""Page views in, counts by page and window of time out.

    spark-submit --py-files dist/kafka08-spark.zip docs/examples/activity_counts.py \
        --bootstrap-server localhost:9092 --checkpoint /var/spark/activity

``page-views`` holds JSON:

    {"user": "u1", "page": "/start", "time": "2014-07-01T10:00:00Z"}

A count is written each time it changes, to ``page-counts`` under the key "window page", so that a
compacted topic keeps the last one of each. A count that is written twice, after a kill, is the
same count.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark import SparkConf
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka08.spark.datasource import register

VIEW = "user string, page string, time timestamp"


def counts(views: DataFrame, window: str, lateness: str) -> DataFrame:
    """key and value of each count."""
    parsed = F.from_json(F.col("value").cast("string"), VIEW).alias("view")
    rows = views.select(parsed).select("view.*").where("page IS NOT NULL AND time IS NOT NULL")
    counted = (
        rows.withWatermark("time", lateness)
        .groupBy(F.window("time", window), "page")
        .agg(F.count("*").alias("views"), F.approx_count_distinct("user").alias("users"))
    )
    start = F.date_format("window.start", "yyyy-MM-dd'T'HH:mm:ss")
    return counted.select(
        F.concat_ws(" ", start, "page").cast("binary").alias("key"),
        F.to_json(F.struct(start.alias("from"), "page", "views", "users"))
        .cast("binary")
        .alias("value"),
    )


def run(spark: SparkSession, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--window", default="5 minutes")
    parser.add_argument("--lateness", default="1 hour")
    parser.add_argument("--once", action="store_true", help="end when all there is was read")
    args = parser.parse_args(argv)
    views = (
        spark.readStream.format("kafka08")
        .option("kafka.bootstrap.servers", args.bootstrap_server)
        .option("subscribe", "page-views")
        .option("startingOffsets", "earliest")
        .load()
    )

    def write(changed: DataFrame, batch: int) -> None:
        # A sink written in Python gets no updates from Spark, a function gets them.
        sink = changed.write.format("kafka08").mode("append")
        options = {"kafka.bootstrap.servers": args.bootstrap_server, "topic": "page-counts"}
        sink.options(**options).save()

    writer = (
        counts(views, args.window, args.lateness)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", args.checkpoint)
        .outputMode("update")
    )
    trigger = {"availableNow": True} if args.once else {"processingTime": "5 seconds"}
    writer.trigger(**trigger).start().awaitTermination()


def session() -> SparkSession:
    """Of what spark-submit gives, otherwise of this machine."""
    # Spark's default of 200 tasks a shuffle takes minutes for a few rows. --conf wins.
    conf = SparkConf().setIfMissing("spark.sql.shuffle.partitions", "4")
    made = SparkSession.builder.appName("activity-counts").config(conf=conf).getOrCreate()
    made.conf.set("spark.sql.session.timeZone", "UTC")
    register(made)
    return made


if __name__ == "__main__":
    run(session())
