"""A driver with pyarrow whose workers' interpreter, in PYSPARK_PYTHON, lacks it."""

from __future__ import annotations

import sys
import warnings

from pyspark.sql import SparkSession

from kafka08.errors import ConfigError
from kafka08.spark.datasource import register
from kafka08.spark.dstream import KafkaUtils, OffsetRange

warnings.simplefilter("ignore")


def main(brokers: str, topic: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        register(spark)
    except ConfigError as error:
        print("REFUSED", error)
    # The API that needs no pyarrow works there nevertheless.
    params = {"metadata.broker.list": brokers}
    rdd = KafkaUtils.createRDD(spark.sparkContext, params, [OffsetRange(topic, 0, 0, 10)])
    print("ROWS", rdd.count(), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
