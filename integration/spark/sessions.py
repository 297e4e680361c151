"""Spark sessions of tests. Imports Spark: to be imported where it is known to be there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from integration.spark.support import spark_conf
from kafka08.spark.datasource import register


@contextmanager
def utc_session(master: str = "local[2]") -> Iterator[SparkSession]:
    """A session with our source and sink, whose times are those of UTC."""
    conf = spark_conf(master).set("spark.sql.session.timeZone", "UTC")
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()
