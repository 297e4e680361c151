"""New rows of a table into a topic, as JSON with the number of the row for a key; run it regularly.

    spark-submit --py-files dist/kafka08-spark.zip --packages org.postgresql:postgresql:42.7.14 \
        docs/examples/postgres_to_topic.py --bootstrap-server localhost:9092 --to orders \
        --url 'jdbc:postgresql://db/shop?user=shop' --table orders --column id \
        --progress /var/spark/orders

A row is new if its ``--column`` is greater than that of all rows of earlier runs. A run that was
killed is done again by the next one: docs/spark-connectors.md says how readers leave out repeats.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

FIRST = -(1 << 63)  # less than any number


def last_number(spark: SparkSession, progress: str) -> int:
    """The greatest number of the runs that have ended."""
    try:
        ended = spark.read.schema("last long").parquet(progress)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return FIRST  # there was no run yet
    last = ended.agg(F.max("last")).first()[0]
    return FIRST if last is None else last


def run(spark: SparkSession, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--to", required=True, help="the topic")
    parser.add_argument("--url", required=True, help="of JDBC")
    parser.add_argument("--driver", default="org.postgresql.Driver")
    parser.add_argument("--table", required=True)
    parser.add_argument("--column", required=True, help="a number that grows with new rows")
    parser.add_argument("--progress", required=True, help="a directory of this job alone")
    parser.add_argument("--tasks", type=int, default=4, help="connections at the same time")
    args = parser.parse_args(argv)
    column, new = args.column, f"{args.column} > {last_number(spark, args.progress)}"

    reader = spark.read.format("jdbc").options(url=args.url, driver=args.driver)
    reader = reader.option("fetchsize", 10_000)  # otherwise the driver holds all rows
    query = f"SELECT min({column}), max({column}) FROM {args.table} WHERE {new}"
    low, high = reader.option("dbtable", f"({query}) AS bounds (low, high)").load().first()
    if high is None:
        return
    # Rows that come while this run reads are for the next one.
    query = f"SELECT * FROM {args.table} WHERE {new} AND {column} <= {high}"
    parts = {"partitionColumn": column, "numPartitions": args.tasks}
    parts |= {"lowerBound": low, "upperBound": high + 1}
    rows = reader.options(**parts).option("dbtable", f"({query}) AS new_rows").load()
    messages = rows.select(
        F.col(column).cast("string").alias("key"), F.to_json(F.struct("*")).alias("value")
    )
    sink = messages.write.format("kafka08").option("topic", args.to).mode("append")
    sink.option("kafka.bootstrap.servers", args.bootstrap_server).save()
    # Only now: a run that dies before is done again.
    ended = spark.range(1).select(F.lit(high).cast("long").alias("last"))
    ended.coalesce(1).write.mode("append").parquet(args.progress)


if __name__ == "__main__":
    from kafka08.spark.datasource import register

    session = SparkSession.builder.appName("postgres-to-topic").getOrCreate()
    register(session)
    run(session)
