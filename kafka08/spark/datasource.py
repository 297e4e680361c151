"""The format ``kafka08`` of Structured Streaming and of batch queries: ``register(spark)`` first.

Options, columns and rules are those of Spark's own Kafka source and sink, as far as 0.8.2.2's
protocol reaches (docs/spark.md). Needs pyarrow on the driver and on the executors.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import SparkFiles
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka08.errors import ConfigError
from kafka08.spark.structured.source import BatchReader, SourceStreamReader
from kafka08.spark.structured.source_options import SourceOptions, source_options, wants_headers
from kafka08.spark.versions.sources import DataSource
from kafka08.spark.versions.streams import stream_reader

if TYPE_CHECKING:
    from kafka08.spark.structured.sink import BatchWriter, StreamWriter
    from kafka08.spark.structured.sink_options import SinkOptions

# Imported by name where something is written or read: each streaming query has a process that plans
# it, which imports this module.
_SINK = "kafka08.spark.structured.sink"
_SINK_OPTIONS = "kafka08.spark.structured.sink_options"
FORMAT = "kafka08"
COLUMNS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
HEADERS_TYPE = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
WITH_HEADERS = StructType([*COLUMNS, StructField("headers", HEADERS_TYPE)])


def register(spark: SparkSession) -> None:
    """Make ``format("kafka08")`` known to the session.

    Raises ConfigError when Spark's Python workers do not have pyarrow, as a stream would hang.
    """
    context = getattr(spark, "sparkContext", None)
    if context is not None:
        check_python(context.pythonExec)
        show_py_files(Path(SparkFiles.getRootDirectory()))
    spark.dataSource.register(Kafka08DataSource)


def check_python(python: str) -> None:
    """Raises ConfigError if the interpreter exists on this machine but cannot import pyarrow."""
    found = shutil.which(python)
    # By name: the interpreter of a virtual environment is a link to another's.
    if found is None or os.path.abspath(found) == os.path.abspath(sys.executable):
        return
    done = subprocess.run(
        [found, "-c", "import pyarrow"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConfigError(
            f"PYSPARK_PYTHON (spark.pyspark.python) has value {python}, an interpreter that cannot "
            f"import pyarrow: {done.stderr.strip().rpartition(chr(10))[2] or done.returncode}"
        )


def show_py_files(directory: Path) -> None:
    """Let the process that plans streams import the files of ``--py-files``.

    Spark keeps those files in ``directory``, but has that process look for them in
    ``streaming_job`` below it, which stays empty.
    """
    with contextlib.suppress(FileExistsError):
        (directory / "streaming_job").symlink_to(".")


class Kafka08DataSource(DataSource):
    """Gives Spark readers and writers; all methods raise ConfigError for a wrong option."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return WITH_HEADERS if wants_headers(self.options) else COLUMNS

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(self._source_options(schema, False))

    def streamReader(self, schema: StructType) -> SourceStreamReader:
        return stream_reader(self._source_options(schema, True), self.options)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        if overwrite:
            raise ConfigError('mode("overwrite") is not possible for a topic: use mode("append")')
        writer: BatchWriter = import_module(_SINK).BatchWriter(self._sink_options(schema))
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        writer: StreamWriter = import_module(_SINK).StreamWriter(self._sink_options(schema))
        return writer

    def _sink_options(self, schema: StructType) -> SinkOptions:
        types = {field.name: field.dataType.simpleString() for field in schema}
        options: SinkOptions = import_module(_SINK_OPTIONS).sink_options(self.options, types)
        return options

    def _source_options(self, schema: StructType, streaming: bool) -> SourceOptions:
        asked, has = schema.simpleString(), self.schema().simpleString()
        if asked != has:
            raise ConfigError(f"The schema {asked} was asked for, but the source always has {has}")
        return source_options(self.options, streaming=streaming)
