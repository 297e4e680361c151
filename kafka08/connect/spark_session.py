"""The Spark session of a worker, started when a connector first needs it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping

from pyspark import SparkContext
from pyspark.sql import SparkSession

from kafka08.spark.errors import JobError

DEFAULTS = {
    "spark.master": "local[2]",
    "spark.app.name": "kafka08-connect",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
}
_lock = threading.Lock()


def session(properties: Mapping[str, str], jar: str = "") -> SparkSession:
    """The running one, or one with the ``spark.*`` among ``properties``, ``jar`` on its class path.

    Raises JobError when one runs without ``jar``: only what starts a session can set its jars.
    """
    given = {key: value for key, value in properties.items() if key.startswith("spark.")}
    settings = {**DEFAULTS, **given}
    jars = [each for each in (*settings.get("spark.jars", "").split(","), jar) if each]
    if jars:
        settings["spark.jars"] = ",".join(dict.fromkeys(jars))
        # Where java.sql.DriverManager looks; spark.jars are for executors.
        settings.setdefault("spark.driver.extraClassPath", ":".join(dict.fromkeys(jars)))
    # Workers would take python3 of the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _lock:
        builder = SparkSession.builder
        if SparkContext._active_spark_context is None:
            for key, value in settings.items():
                builder = builder.config(key, value)
        found = builder.getOrCreate()
    if jar and jar not in found.sparkContext.getConf().get("spark.jars", "").split(","):
        raise JobError(
            f"connection.jar has value {jar}, but Spark was started without it by another "
            "connector: name it in spark.jars of the worker's properties"
        )
    return found
