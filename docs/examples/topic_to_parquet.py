"""A topic as Parquet files, each message once; with ``--by-hour`` a directory for each hour.

    spark-submit --py-files dist/kafka08-spark.zip docs/examples/topic_to_parquet.py \
        --bootstrap-server localhost:9092 --topic clicks \
        --path /lake/clicks --checkpoint /lake/clicks-checkpoint --by-hour

docs/spark-recipes.md says what survives a kill, and how the files are read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark import SparkConf
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")


def run(spark: SparkSession, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--path", required=True, help="where the files go")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--by-hour", action="store_true", help="date=.../hour=.../, in UTC")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE, of the source")
    parser.add_argument("--every", default="1 minute", help="how often files are written")
    parser.add_argument("--once", action="store_true", help="end when all there is was read")
    args = parser.parse_args(argv)

    reader = spark.readStream.format("kafka08")
    reader = reader.option("kafka.bootstrap.servers", args.bootstrap_server)
    reader = reader.option("subscribe", args.topic).option("startingOffsets", "earliest")
    reader = reader.options(**dict(each.split("=", 1) for each in args.option))
    rows = reader.load().select(*COLUMNS)
    if args.by_hour:
        rows = rows.withColumns({"date": F.to_date("timestamp"), "hour": F.hour("timestamp")})

    writer = rows.writeStream.format("parquet").option("path", args.path)
    writer = writer.option("checkpointLocation", args.checkpoint)
    if args.by_hour:
        writer = writer.partitionBy("date", "hour")
    trigger = {"availableNow": True} if args.once else {"processingTime": args.every}
    writer.trigger(**trigger).start().awaitTermination()


if __name__ == "__main__":
    from kafka08.spark.datasource import register

    # Hours are those of UTC, whatever the machine's zone is. --conf wins.
    conf = SparkConf().setIfMissing("spark.sql.session.timeZone", "UTC")
    session = SparkSession.builder.appName("topic-to-parquet").config(conf=conf).getOrCreate()
    register(session)
    run(session)
