"""A driver that counts the messages of a topic by their time of reading, to be killed: checkpoint,
output directory, brokers, topic.

Each batch puts the counts of its windows into `counts`, by the window, as a job does with a table
that has the window as its key. Then it adds its number to `written`, and waits while there is a
file `hold`: Spark has not committed the batch yet. It ends when there is a file `stop`.
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


def main(checkpoint: str, out: str, brokers: str, topic: str) -> None:
    def write(frame: DataFrame, batch: int) -> None:
        path = Path(out, "counts")
        counts = json.loads(path.read_text()) if path.exists() else {}
        counts.update({str(row["start"]): row["count"] for row in frame.collect()})
        temporary = Path(out, "counts.tmp")
        temporary.write_text(json.dumps(counts))
        temporary.replace(path)
        with open(f"{out}/written", "a") as written:
            written.write(f"{batch}\n")
        while os.path.exists(f"{out}/hold"):
            time.sleep(0.05)

    conf = spark_conf().set("spark.sql.shuffle.partitions", "1")
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    register(spark)
    reader = spark.readStream.format("kafka08").option("kafka.bootstrap.servers", brokers)
    rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    counts = rows.groupBy(F.window("timestamp", "1 second")).count()
    writer = counts.select("window.start", "count").writeStream.outputMode("update")
    query = writer.foreachBatch(write).option("checkpointLocation", checkpoint).start()
    run_until(Path(out, "stop"), query)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
