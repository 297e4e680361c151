"""The Spark session of a process, started when something first needs it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping

from pyspark.sql import SparkSession

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

    Only what starts first can set jars and the master.
    """
    given = {key: value for key, value in properties.items() if key.startswith("spark.")}
    settings = {**DEFAULTS, **given}
    if jar:
        settings["spark.jars"] = ",".join(filter(None, (settings.get("spark.jars"), jar)))
        settings.setdefault("spark.driver.extraClassPath", jar)
    # Workers would take python3 of the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _lock:
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
