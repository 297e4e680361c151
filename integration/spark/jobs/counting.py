"""A driver without any settings that counts the messages of a topic: brokers, topic, file.

The file has the number of messages counted. It ends when there is a file with `.stop` behind its
name, or with the first error.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from pyspark import RDD, SparkContext
from pyspark.streaming import StreamingContext

from integration.spark.support import spark_conf
from kafka08.spark.dstream import KafkaUtils

warnings.simplefilter("ignore")


def main(brokers: str, topic: str, file: str) -> None:
    total = 0

    def count(rdd: RDD[tuple[str, str]]) -> None:
        nonlocal total
        total += rdd.map(lambda pair: pair[1]).count()
        temporary = Path(f"{file}.tmp")
        temporary.write_text(str(total))
        temporary.replace(file)

    ssc = StreamingContext(SparkContext(conf=spark_conf("local[2]")), 1)
    params = {"metadata.broker.list": brokers, "auto.offset.reset": "smallest"}
    KafkaUtils.createDirectStream(ssc, [topic], params).foreachRDD(count)
    ssc.start()
    while not Path(f"{file}.stop").exists():
        ssc.awaitTerminationOrTimeout(0.2)
    ssc.stop(True, True)


if __name__ == "__main__":
    main(*sys.argv[1:])
