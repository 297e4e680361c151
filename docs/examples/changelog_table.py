"""Orders joined with customers, where the customers are a table kept as a topic: a change log.

    spark-submit --py-files dist/kafka08-spark.zip docs/examples/changelog_table.py \
        --bootstrap-server localhost:9092 --checkpoint /var/spark/orders

``customers`` is compacted (``cleanup.policy=compact``): each message replaces the row of its key, a
null value removes it. Read from its start, such a topic is the table, so nothing else has to keep
it: every batch of ``orders`` (JSON with a field "customer", the key of a row) reads it anew. That
suits tables that are read in seconds. Orders of unknown customers come out with "row": null.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark import SparkConf
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def table(changes: DataFrame) -> DataFrame:
    """The rows that a change log amounts to: key, row. A key keeps to its partition, so offsets
    tell the order of its changes."""
    last = changes.groupBy("key").agg(F.max_by("value", "offset").alias("row"))
    return last.where("row IS NOT NULL").select(
        F.col("key").cast("string").alias("customer"), F.col("row").cast("string")
    )


def joined(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """key and value of each order with its customer's row."""
    order = F.col("value").cast("string")
    found = orders.select("key", order.alias("order")).withColumn(
        "customer", F.get_json_object("order", "$.customer")
    )
    pair = F.struct("order", "row")
    return found.join(customers, "customer", "left").select(
        "key", F.to_json(pair, {"ignoreNullFields": "false"}).cast("binary").alias("value")
    )


def run(spark: SparkSession, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--once", action="store_true", help="end when all there is was read")
    args = parser.parse_args(argv)
    brokers = {"kafka.bootstrap.servers": args.bootstrap_server}

    def enrich(orders: DataFrame, batch: int) -> None:
        session = orders.sparkSession
        changes = session.read.format("kafka08").options(**brokers, subscribe="customers").load()
        found = joined(orders, table(changes))
        found.write.format("kafka08").options(**brokers, topic="orders-named").mode("append").save()

    orders = spark.readStream.format("kafka08").options(**brokers, subscribe="orders")
    writer = (
        orders.option("startingOffsets", "earliest")
        .load()
        .writeStream.foreachBatch(enrich)
        .option("checkpointLocation", args.checkpoint)
    )
    trigger = {"availableNow": True} if args.once else {"processingTime": "5 seconds"}
    writer.trigger(**trigger).start().awaitTermination()


if __name__ == "__main__":
    from kafka08.spark.datasource import register

    # Spark's default of 200 tasks a shuffle takes minutes for a few rows. --conf wins.
    conf = SparkConf().setIfMissing("spark.sql.shuffle.partitions", "4")
    session = SparkSession.builder.appName("changelog-table").config(conf=conf).getOrCreate()
    register(session)
    run(session)
