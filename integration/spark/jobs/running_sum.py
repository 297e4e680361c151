"""A driver with a running sum over a topic, to be killed: checkpoint, output directory, brokers,
topic, master.

Each batch writes what the sum is after it to `sum`, and a line to `history`. Before that a batch
waits while there is a file `hold-` with its number behind it. It ends when there is a file `stop`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.spark.support import run_until, spark_conf
from kafka08.spark.datasource import register

warnings.simplefilter("ignore")


def main(checkpoint: str, out: str, brokers: str, topic: str, master: str = "local[2,4]") -> None:
    def write(frame: DataFrame, batch: int) -> None:
        row = frame.first()
        text = json.dumps({"batch": batch, "sum": row["sum"] or 0, "count": row["count"]})
        with open(f"{out}/begun", "a") as begun:
            begun.write(text + "\n")
        while os.path.exists(f"{out}/hold-{batch}"):
            time.sleep(0.05)
        with open(f"{out}/history", "a") as history:
            history.write(text + "\n")
        temporary = Path(out, "sum.tmp")
        temporary.write_text(text)
        temporary.replace(Path(out, "sum"))

    conf = spark_conf(master, executor_memory="512m").set("spark.sql.shuffle.partitions", "1")
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    register(spark)
    reader = spark.readStream.format("kafka08").option("kafka.bootstrap.servers", brokers)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    values = (
        reader.option("maxOffsetsPerTrigger", 200)
        .load()
        .selectExpr("cast(string(value) as long) v")
    )
    sums = values.agg(F.sum("v").alias("sum"), F.count("*").alias("count"))
    writer = sums.writeStream.outputMode("complete").foreachBatch(write)
    query = writer.option("checkpointLocation", checkpoint).start()
    run_until(Path(out, "stop"), query)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
