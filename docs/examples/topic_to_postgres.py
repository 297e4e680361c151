"""A topic in a PostgreSQL table by upsert: its messages, or with ``--by-key`` the last of each key.

    spark-submit --py-files dist/kafka08-spark.zip docs/examples/topic_to_postgres.py \
        --bootstrap-server localhost:9092 --topic customers \
        --database 'host=db dbname=shop' --table customers --by-key \
        --checkpoint /var/spark/customers

Needs ``psycopg[binary]`` on the driver and on the executors. docs/spark-recipes.md says why a batch
that runs again changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence

import psycopg
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

COLUMNS = ("key", "value", "topic", "partition", "offset")
CREATE = """CREATE TABLE IF NOT EXISTS {table} (
    key bytea, value bytea, topic text, partition int, "offset" bigint, PRIMARY KEY ({id}))"""
INSERT = """INSERT INTO {table} AS old (key, value, topic, partition, "offset")
    VALUES (%s, %s, %s, %s, %s) ON CONFLICT ({id}) DO """
# A row that is there comes from an earlier run of the batch.
KEEP = "NOTHING"
# An executor that outlives its driver may commit after later batches: only what is newer counts.
REPLACE = """UPDATE SET value = excluded.value, topic = excluded.topic,
    partition = excluded.partition, "offset" = excluded."offset"
    WHERE (old.topic, old.partition) <> (excluded.topic, excluded.partition)
    OR old."offset" < excluded."offset" """


def last_of_each_key(rows: DataFrame) -> DataFrame:
    """A key in one task only, and in order: tasks that lock rows never wait for each other."""
    last = F.max_by(F.struct(*COLUMNS), "offset").alias("last")
    keyed = rows.where("key IS NOT NULL").groupBy("key").agg(last)
    return keyed.select("last.*").sortWithinPartitions("key")


def upserts(database: str, table: str, by_key: bool) -> Callable[[DataFrame, int], None]:
    """For foreachBatch. Creates the table if it is missing."""
    names = {"table": table, "id": "key" if by_key else 'topic, partition, "offset"'}
    insert = INSERT.format(**names) + (REPLACE if by_key else KEEP)

    def upsert(rows: Iterable[Row]) -> None:
        """In each task, on executors: all its rows in one transaction."""
        with psycopg.connect(database) as connection, connection.cursor() as cursor:
            cursor.executemany(insert, rows)

    def write(rows: DataFrame, batch: int) -> None:
        rows = rows.select(*COLUMNS)
        (last_of_each_key(rows) if by_key else rows).foreachPartition(upsert)

    with psycopg.connect(database) as connection:
        connection.execute(CREATE.format(**names))
    return write


def run(spark: SparkSession, argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--database", required=True, help="for psycopg: host=... dbname=...")
    parser.add_argument("--table", required=True)
    parser.add_argument("--by-key", action="store_true", help="a row for each key, its last value")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE, of the source")
    parser.add_argument("--every", default="1 second", help="how often a batch begins")
    parser.add_argument("--once", action="store_true", help="end when all there is was read")
    args = parser.parse_args(argv)

    reader = spark.readStream.format("kafka08")
    reader = reader.option("kafka.bootstrap.servers", args.bootstrap_server)
    reader = reader.option("subscribe", args.topic).option("startingOffsets", "earliest")
    reader = reader.options(**dict(each.split("=", 1) for each in args.option))

    write = upserts(args.database, args.table, args.by_key)
    writer = reader.load().writeStream.foreachBatch(write)
    writer = writer.option("checkpointLocation", args.checkpoint)
    trigger = {"availableNow": True} if args.once else {"processingTime": args.every}
    writer.trigger(**trigger).start().awaitTermination()


if __name__ == "__main__":
    from kafka08.spark.datasource import register

    session = SparkSession.builder.appName("topic-to-postgres").getOrCreate()
    register(session)
    run(session)
