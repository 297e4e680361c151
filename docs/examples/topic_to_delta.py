"""A topic in a table of Delta Lake, each message once.

    spark-submit --py-files dist/kafka08-spark.zip \
        --packages io.delta:delta-spark_4.2_2.13:4.4.0 docs/examples/topic_to_delta.py \
        --bootstrap-server localhost:9092 --topic clicks \
        --path /lake/clicks --checkpoint /lake/clicks-checkpoint

The names of the jar hold the release of Spark, here 4.2, and that of Delta Lake. The package
delta-spark is not needed. docs/spark-recipes.md says which releases go together.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark import SparkConf
from pyspark.sql import SparkSession

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


def run(spark: SparkSession, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--path", required=True, help="where the table is")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE, of the source")
    parser.add_argument("--every", default="1 minute", help="how often files are written")
    parser.add_argument("--once", action="store_true", help="end when all there is was read")
    args = parser.parse_args(argv)

    reader = spark.readStream.format("kafka08")
    reader = reader.option("kafka.bootstrap.servers", args.bootstrap_server)
    reader = reader.option("subscribe", args.topic).option("startingOffsets", "earliest")
    reader = reader.options(**dict(each.split("=", 1) for each in args.option))

    writer = reader.load().select(*COLUMNS).writeStream.format("delta")
    writer = writer.option("checkpointLocation", args.checkpoint)
    trigger = {"availableNow": True} if args.once else {"processingTime": args.every}
    writer.trigger(**trigger).start(args.path).awaitTermination()


if __name__ == "__main__":
    from kafka08.spark.datasource import register

    conf = SparkConf().setIfMissing(
        "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
    )
    conf.setIfMissing(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
    session = SparkSession.builder.appName("topic-to-delta").config(conf=conf).getOrCreate()
    register(session)
    run(session)
