"""A driver of a group that notes what it read: ZooKeeper, group, topic, output file, stop file.

While there is a file named as the output with ``.hold`` behind it, a batch that has noted its
values does not end.
"""

from __future__ import annotations

import os
import sys
import time
import warnings

from pyspark import SparkContext, StorageLevel
from pyspark.streaming import StreamingContext

from integration.spark.support import spark_conf
from kafka08.spark.dstream import KafkaUtils

warnings.simplefilter("ignore")


def note(path: str):  # type: ignore[no-untyped-def]
    def each(rdd):  # type: ignore[no-untyped-def]
        values = [value for _, value in rdd.collect()]
        with open(path, "a") as file:
            file.write("".join(f"{value}\n" for value in values))
        while values and os.path.exists(f"{path}.hold"):
            time.sleep(0.05)

    return each


def main(zookeeper: str, group: str, topic: str, path: str, stop: str) -> None:
    sc = SparkContext(conf=spark_conf("local[2]"))
    ssc = StreamingContext(sc, 0.5)
    params = {
        "auto.offset.reset": "smallest",
        "zookeeper.session.timeout.ms": "3000",
        "rebalance.backoff.ms": "500",
    }
    stream = KafkaUtils.createStream(
        ssc, zookeeper, group, {topic: 1}, params, StorageLevel.MEMORY_ONLY
    )
    stream.foreachRDD(note(path))
    ssc.start()
    while not os.path.exists(stop):
        time.sleep(0.1)
    ssc.stop(True, True)
    print("stopped", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
