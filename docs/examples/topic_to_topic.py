"""A topic into another one, with keys; each copy says where its message was, to find repeats by.

    spark-submit --py-files dist/kafka08-spark.zip docs/examples/topic_to_topic.py \
        --bootstrap-server localhost:9092 --topic clicks \
        --to clicks-checked --checkpoint /var/spark/clicks-checked

After a kill the last batch is sent again. ``once`` reads a copied topic without the repeats;
docs/spark-recipes.md says how other readers leave them out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ORIGIN = "origin"  # the header with topic/partition/offset of the message that was copied


def copies(rows: DataFrame) -> DataFrame:
    """key, value and headers of the messages to write."""
    origin = F.concat_ws("/", "topic", "partition", "offset").cast("binary")
    added = F.array(F.struct(F.lit(ORIGIN).alias("key"), origin.alias("value")))
    headers = F.coalesce(F.concat("headers", added), added)  # a message without headers has null
    return rows.select("key", "value", headers.alias("headers"))


def once(copied: DataFrame) -> DataFrame:
    """Of a batch query on a copied topic, with ``includeHeaders``: the rows without repeats."""
    last = F.element_at(F.filter("headers", lambda header: header["key"] == ORIGIN), -1)
    return copied.withColumn(ORIGIN, last["value"].cast("string")).dropDuplicates([ORIGIN])


def run(spark: SparkSession, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", required=True, help="the topic of the copies")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE, of the source")
    parser.add_argument("--every", default="0 seconds", help="how often a batch begins")
    parser.add_argument("--once", action="store_true", help="end when all there is was read")
    args = parser.parse_args(argv)
    brokers = {"kafka.bootstrap.servers": args.bootstrap_server}

    reader = spark.readStream.format("kafka08").options(**brokers, includeHeaders="true")
    reader = reader.option("subscribe", args.topic).option("startingOffsets", "earliest")
    reader = reader.options(**dict(each.split("=", 1) for each in args.option))

    writer = copies(reader.load()).writeStream.format("kafka08").options(**brokers, topic=args.to)
    # Retries then neither double nor reorder the messages of a partition.
    writer = writer.option("kafka.enable.idempotence", "true")
    writer = writer.option("checkpointLocation", args.checkpoint)
    trigger = {"availableNow": True} if args.once else {"processingTime": args.every}
    writer.trigger(**trigger).start().awaitTermination()


if __name__ == "__main__":
    from kafka08.spark.datasource import register

    session = SparkSession.builder.appName("topic-to-topic").getOrCreate()
    register(session)
    run(session)
