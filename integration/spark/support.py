"""Shared by the Spark tests: reasons to skip, a small Spark, drivers as processes.

Knows nothing of what is tested. One SparkContext per module: its start takes seconds.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from integration.harness import HOME, Broker, Process
from integration.wire import entry

Record = tuple[bytes | None, bytes | None]


def missing() -> str:
    """Why Spark cannot run here; empty when it can."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed"
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").exists()) and shutil.which("java") is None:
        return "no java to run Spark"
    return ""


# The first session's options are those of the JVM, which all tests of a run share. Derby would
# leave a log in the working directory.
JVM_OPTIONS = {"spark.driver.extraJavaOptions": "-Dderby.stream.error.file=/dev/null"}


def spark_conf(master: str = "local[2,4]", **settings: object) -> Any:
    """A SparkConf of this interpreter, on loopback, without UI. Names take _ for a dot."""
    from pyspark import SparkConf

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf = SparkConf().setMaster(master).setAppName("kafka08")
    conf.set("spark.ui.enabled", "false").set("spark.driver.host", "127.0.0.1")
    conf.set("spark.driver.memory", "512m").set("spark.sql.shuffle.partitions", "2")
    conf.set("spark.default.parallelism", "2").set("spark.executorEnv.PYTHONPATH", str(HOME))
    conf.setAll(list(JVM_OPTIONS.items()))
    for name, value in settings.items():
        conf.set(f"spark.{name.replace('_', '.')}", str(value))
    return conf


def driver(name: str, directory: Path, program: Path, *args: object) -> Process:
    """A Spark driver as a process of its own, started; the caller kills it."""
    command = [sys.executable, "-u", str(program), *map(str, args)]
    os.environ["PYTHONPATH"] = str(HOME)
    process = Process(name, command, directory)
    process.spawn()
    return process


def run_until(stop: Path, query: Any) -> None:
    """Say "running", then let a query of the driver run until the file ``stop`` is there."""
    print("running", flush=True)
    while query.isActive and not stop.exists():
        time.sleep(0.1)
    if query.exception() is not None:
        raise query.exception()
    query.stop()


def produce(broker: Broker, topic: str, partition: int, records: Iterable[Record]) -> int:
    """Messages in one set; the offset of the first."""
    with broker.wire() as wire:
        return wire.produce(topic, partition, b"".join(entry(*record) for record in records))
