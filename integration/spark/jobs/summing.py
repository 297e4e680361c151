"""A driver that sums what it reads, to be killed: checkpoint, output directory, brokers, topic.

Each batch writes one file per range, named by the range, with its values; the running sum of all
goes to `sum`. While there is a file `hold`, batches wait after their output is half written.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from pathlib import Path

from integration.spark.support import spark_conf

warnings.simplefilter("ignore")


def write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def output(out: str):  # type: ignore[no-untyped-def]
    def each(rdd):  # type: ignore[no-untyped-def]
        parts = rdd.map(lambda pair: int(pair[1])).glom().collect()
        for found, values in zip(rdd.offsetRanges(), parts, strict=True):
            if found.fromOffset < found.untilOffset:
                name = f"{found.topic}-{found.partition}-{found.fromOffset}-{found.untilOffset}"
                with open(f"{out}/planned", "a") as planned:
                    planned.write(name + "\n")
                while os.path.exists(f"{out}/hold"):
                    time.sleep(0.05)
                write(Path(out, name), " ".join(map(str, values)))

    return each


def total(out: str):  # type: ignore[no-untyped-def]
    def each(rdd):  # type: ignore[no-untyped-def]
        for _, value in rdd.collect():
            write(Path(out, "sum"), str(value))

    return each


def add(new: list[int], old: int | None) -> int:
    return sum(new) + (old or 0)


def main(checkpoint: str, out: str, brokers: str, topic: str, master: str = "local[2,4]") -> None:
    from pyspark import SparkContext
    from pyspark.streaming import StreamingContext

    from kafka08.spark.dstream import KafkaUtils

    def create() -> StreamingContext:
        conf = spark_conf(master, streaming_kafka_maxRatePerPartition=100)
        ssc = StreamingContext(SparkContext(conf=conf), 0.5)
        params = {"metadata.broker.list": brokers, "auto.offset.reset": "smallest"}
        stream = KafkaUtils.createDirectStream(ssc, [topic], params)
        stream.foreachRDD(output(out))
        pairs = stream.map(lambda pair: ("all", int(pair[1])))
        pairs.updateStateByKey(add).foreachRDD(total(out))
        ssc.checkpoint(checkpoint)
        return ssc

    ssc = StreamingContext.getOrCreate(checkpoint, create)
    ssc.start()
    print("running", flush=True)
    while not os.path.exists(f"{out}/stop"):
        time.sleep(0.1)
    ssc.stop(True, True)


if __name__ == "__main__":
    main(*sys.argv[1:])
