"""The rows of a table of Delta Lake that a recipe wrote, as JSON: partition, offset, key, value."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def main(path: str) -> None:
    spark = SparkSession.builder.config(map=SETTINGS).getOrCreate()
    rows = spark.read.format("delta").load(path).orderBy("partition", "offset")
    found = rows.selectExpr("partition", "offset", "string(key)", "string(value)").collect()
    print(json.dumps([list(row) for row in found]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
