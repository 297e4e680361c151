"""Sales and shipments in, reorders and price adjustments out, with data that comes late.

    spark-submit --py-files dist/kafka08-spark.zip docs/examples/reorders.py \
        --bootstrap-server localhost:9092 --checkpoint /var/spark/reorders

Topics ``sales`` and ``shipments`` hold JSON:

    {"sku": "a1", "quantity": 2, "time": "2014-07-01T10:00:00Z"}

Per hour and article, more sold than shipped is reordered; what hardly sells becomes cheaper, what
is torn from the shelves dearer. The hour is that of the event. A row may be late by
``--lateness``; an hour is decided on once, when nothing in time can come for it any more.

``--sample`` first writes sales and shipments of five hours, and shows the decisions at the end.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from pyspark import SparkConf
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka08.producer.kafka_producer import KafkaProducer

EVENT = "sku string, quantity long, time timestamp"


def events(frame: DataFrame, lateness: str) -> DataFrame:
    """Messages as rows; what is no event is left out."""
    parsed = F.from_json(F.col("value").cast("string"), EVENT).alias("event")
    rows = frame.select(parsed).select("event.*").where("sku IS NOT NULL AND time IS NOT NULL")
    return rows.withWatermark("time", lateness)


def decisions(
    sales: DataFrame, shipments: DataFrame, lateness: str, percent: int, suffix: str = ""
) -> DataFrame:
    """topic, key and value of what follows. The same on streams and on tables."""
    none = F.lit(0).cast("long")
    sold = events(sales, lateness).select("sku", "time", F.col("quantity").alias("sold"))
    came = events(shipments, lateness).select("sku", "time", none.alias("sold"), "quantity")
    both = sold.withColumn("shipped", none).union(came)
    totals = both.groupBy(F.window("time", "1 hour"), "sku").agg(
        F.sum("sold").alias("sold"), F.sum("shipped").alias("shipped")
    )
    sold_total, shipped_total = F.col("sold"), F.col("shipped")
    change = F.when(sold_total > 2 * shipped_total, percent).when(
        2 * sold_total < shipped_total, -percent
    )
    missing = F.when(sold_total > shipped_total, sold_total - shipped_total)
    found = F.array(
        message("reorders" + suffix, missing.alias("quantity")),
        message("price-adjustments" + suffix, change.alias("percent")),
    )
    each = totals.select("sku", F.explode(found).alias("m")).where("m.value IS NOT NULL")
    return each.select("m.topic", F.col("sku").cast("binary").alias("key"), "m.value")


def message(topic: str, decision: Column) -> Column:
    hour = F.date_format("window.start", "yyyy-MM-dd'T'HH:mm").alias("hour")
    value = F.to_json(F.struct("sku", hour, decision)).cast("binary")
    return F.struct(F.lit(topic).alias("topic"), F.when(decision.isNotNull(), value).alias("value"))


def write_sample(address: str) -> None:
    """Five hours of a shop, in random order. A last row, hours later, ends them."""
    import topics  # beside this file; without --sample the job runs without it

    for topic in ("sales", "shipments", "reorders", "price-adjustments"):
        topics.make(address, topic)
    chance = random.Random(1)
    rows = [("sales", minute, 4) for minute in range(300)]
    rows += [("shipments", minute, 60) for minute in range(0, 300, 8)]
    chance.shuffle(rows)
    with KafkaProducer(bootstrap_servers=address, acks="all") as producer:
        for topic, minute, most in (*rows, ("sales", 400, 1), ("shipments", 400, 1)):
            time = datetime(2014, 7, 1, 8) + timedelta(minutes=minute)
            event = {"sku": f"a{chance.randint(1, 5)}", "quantity": chance.randint(1, most)}
            producer.send(topic, json.dumps({**event, "time": f"{time.isoformat()}Z"}).encode())


def show(spark: SparkSession, brokers: str, suffix: str) -> None:
    """Print all decisions so far. One that was written twice is one row."""
    source = spark.read.format("kafka08").option("kafka.bootstrap.servers", brokers)
    found = source.option("subscribe", f"reorders{suffix},price-adjustments{suffix}").load()
    fields = "hour string, sku string, quantity long, percent long"
    rows = found.select(F.from_json(F.col("value").cast("string"), fields).alias("d")).select("d.*")
    last = (F.max("quantity").alias("reorder"), F.max("percent").alias("price change %"))
    rows.groupBy("hour", "sku").agg(*last).orderBy("hour", "sku").show(1000, truncate=False)


def read(spark: SparkSession, brokers: str, topic: str) -> DataFrame:
    source = spark.readStream.format("kafka08").option("kafka.bootstrap.servers", brokers)
    return source.option("subscribe", topic).option("startingOffsets", "earliest").load()


def run(spark: SparkSession, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--lateness", default="10 minutes")
    parser.add_argument("--percent", type=int, default=10, help="how much prices change")
    parser.add_argument("--suffix", default="", help="after the names of the topics written")
    parser.add_argument("--once", action="store_true", help="end when all there is was read")
    parser.add_argument("--sample", action="store_true", help="run once, with data of its own")
    args = parser.parse_args(argv)
    if args.sample:
        write_sample(args.bootstrap_server)
    sales, shipments = (read(spark, args.bootstrap_server, t) for t in ("sales", "shipments"))
    found = decisions(sales, shipments, args.lateness, args.percent, args.suffix)
    writer = (
        found.writeStream.format("kafka08")
        .option("kafka.bootstrap.servers", args.bootstrap_server)
        .option("checkpointLocation", args.checkpoint)
        .outputMode("append")
    )
    trigger = (
        {"availableNow": True} if args.once or args.sample else {"processingTime": "5 seconds"}
    )
    writer.trigger(**trigger).start().awaitTermination()
    if args.sample:
        show(spark, args.bootstrap_server, args.suffix)


if __name__ == "__main__":
    from kafka08.spark.datasource import register

    # Spark's default of 200 tasks a shuffle takes minutes for a few rows. --conf wins.
    conf = SparkConf().setIfMissing("spark.sql.shuffle.partitions", "4")
    session = SparkSession.builder.appName("reorders").config(conf=conf).getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session)
    run(session)
