"""Spark's API for data sources in Python, which 4.0 began, and 4.1 and 4.2 added to.

``READ_LIMITS``: whether Spark tells a stream where the query stands and how much to read, which
needs 4.2. Raises ImportError before 4.0.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyspark

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        InputPartition,
        WriterCommitMessage,
    )
except ImportError:
    raise ImportError(
        f'format("kafka08") needs Spark 4.0 or later, and this is {pyspark.__version__}: here are '
        "DStreams and RDDs (kafka08.spark.dstream) and bulk copies (kafka08.spark.bulk)"
    ) from None

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # before 4.1

    class DataSourceStreamArrowWriter(  # type: ignore[no-redef, misc]
        DataSourceStreamWriter, DataSourceArrowWriter
    ):
        """Workers of 4.0 give record batches to all that is a DataSourceArrowWriter."""


try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    READ_LIMITS = True
except ImportError:  # before 4.2
    READ_LIMITS = False

    class ReadLimit:  # type: ignore[no-redef]
        """How much to read."""

    @dataclass
    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """All there is."""

    @dataclass
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        max_rows: int

    @dataclass
    class ReadMinRows(ReadLimit):  # type: ignore[no-redef]
        min_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A mark."""


__all__ = [
    "READ_LIMITS",
    "DataSource",
    "DataSourceArrowWriter",
    "DataSourceReader",
    "DataSourceStreamArrowWriter",
    "DataSourceStreamReader",
    "InputPartition",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
    "WriterCommitMessage",
]
