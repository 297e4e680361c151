"""The streaming source as it would be without Arrow: one Python tuple a row.

For comparison only; the format ``kafka08`` never makes rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import StructType

from kafka08.spark.columns import NO_TIMESTAMP_TYPE
from kafka08.spark.datasource import Kafka08DataSource
from kafka08.spark.reader import RangeReader
from kafka08.spark.source import StreamReader

FORMAT = "kafka08tuples"


class TupleSource(Kafka08DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> TupleStreamReader:
        return TupleStreamReader(self._source_options(schema, True))


class TupleStreamReader(StreamReader):
    """Plans as its base does, reads message by message."""

    def __reduce__(self) -> tuple[Any, ...]:
        return TupleStreamReader, (self._options,)

    def read(self, partition: Any) -> Iterator[Any]:
        wanted, leader = partition.value
        with RangeReader(self._options.endpoints) as reader:
            for messages in reader.read(wanted, leader):
                for each in messages:
                    yield (
                        each.key, each.value, wanted.topic, wanted.partition, each.offset,
                        None, NO_TIMESTAMP_TYPE,
                    )  # fmt: skip
