"""Spark's side of the ``kafka08`` sink: rows become messages, acknowledged before a task ends.

At least once: a task that is tried again, and a batch that is run again, send again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from kafka08.errors import KafkaError, RequestTimedOutError
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.spark.structured.sink_options import BOOTSTRAP, HEADERS, SinkOptions
from kafka08.spark.versions.sources import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

logger = logging.getLogger("kafka08.spark.sink")

# The values of a column, of the types that the option says.
Cells: TypeAlias = list[Any]


@dataclass
class Written(WriterCommitMessage):
    """The number of rows that a task sent."""

    rows: int


def send_all(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    """Send all rows and wait for all acknowledgements. Raises what the first failed one failed
    with, and KafkaError for a row without a topic."""
    failures: list[BaseException] = []

    def ended(metadata: object, error: BaseException | None) -> None:
        if error is not None:
            failures.append(error)

    rows = 0
    with KafkaProducer(options.producer) as producer:
        try:
            for part in _records(options, batches):
                producer.send_many(
                    part.topic, part.values, part.keys, part.partitions, ended, headers=part.headers
                )
                rows += len(part.values)
                if failures:
                    break  # what follows might wait for what failed
        except KafkaError as error:
            failures.append(error)
        producer.flush()
    if failures:
        raise _named(failures[0], options)
    return Written(rows)


def _named(error: BaseException, options: SinkOptions) -> BaseException:
    """Of brokers that did not answer in time, which ones were asked."""
    if not isinstance(error, RequestTimedOutError):
        return error
    return type(error)(f"{error}. {BOOTSTRAP} has value {options.producer['bootstrap.servers']}")


class _Part(NamedTuple):
    """Rows for one topic; a column in which no row has anything is None."""

    topic: str
    values: Cells
    keys: Cells | None
    partitions: Cells | None
    headers: Cells | None


def _records(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Iterator[_Part]:
    for batch in batches:
        values = _cells(batch, "value") or [None] * batch.num_rows
        columns = _cells(batch, "key"), _cells(batch, "partition"), _header_cells(batch)
        if options.topic is not None:
            yield _Part(options.topic, values, *columns)
            continue
        rows: dict[str | None, list[int]] = {}
        for row, topic in enumerate(_cells(batch, "topic") or [None] * batch.num_rows):
            rows.setdefault(topic, []).append(row)
        if None in rows:
            raise KafkaError(
                "Column topic is null in a row: give each row a topic, or set option topic"
            )
        for topic, its in rows.items():
            some = [_some(cells, its) for cells in columns]
            yield _Part(str(topic), [values[row] for row in its], *some)


def _some(cells: Cells | None, rows: list[int]) -> Cells | None:
    return None if cells is None else [cells[row] for row in rows]


def _header_cells(batch: pa.RecordBatch) -> Cells | None:
    cells = _cells(batch, HEADERS)
    if cells is None:
        return None
    return [pairs and [(pair["key"], pair["value"]) for pair in pairs] for pairs in cells]


def _cells(batch: pa.RecordBatch, name: str) -> Cells | None:
    """None for a column that is not there or holds nothing but nulls."""
    number = batch.schema.get_field_index(name)
    if number < 0:
        return None
    column = batch.column(number)
    if column.null_count == batch.num_rows:
        return None
    if name in ("key", "value"):
        column = column.cast(pa.binary())
    return column.to_pylist()  # type: ignore[no-any-return]


class TaskWriter:
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return send_all(self._options, iterator)


class BatchWriter(TaskWriter, DataSourceArrowWriter):
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        logger.info("%d messages written", _count(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        logger.warning("A write failed; %d messages of it stay written", _count(messages))


class StreamWriter(TaskWriter, DataSourceStreamArrowWriter):
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        logger.info("Batch %d: %d messages written", batchId, _count(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        logger.warning("Batch %d failed; %d messages of it stay written", batchId, _count(messages))


def _count(messages: list[WriterCommitMessage | None]) -> int:
    return sum(each.rows for each in messages if isinstance(each, Written))
