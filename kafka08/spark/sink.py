"""Spark's side of the ``kafka08`` sink: rows become messages, acknowledged before a task ends.

At least once: a task that is tried again, and a batch that is run again, send again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kafka08.errors import KafkaError, RequestTimedOutError
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.spark.sink_options import BOOTSTRAP, SinkOptions

logger = logging.getLogger("kafka08.spark.sink")


@dataclass
class Written(WriterCommitMessage):
    """What a task sent."""

    rows: int


def send_all(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    """Send all rows and wait for all acknowledgements. Raises what the first failed one failed
    with, and KafkaError for a row without a topic."""
    failures: list[BaseException] = []

    def ended(metadata: Any, error: BaseException | None) -> None:
        if error is not None:
            failures.append(error)

    rows = 0
    with KafkaProducer(options.producer) as producer:
        for row in _rows(options, batches):
            producer.send(*row, ended)
            rows += 1
            if failures:
                break  # each further row might wait for what failed
        producer.flush()
    if failures:
        raise _named(failures[0], options)
    return Written(rows)


def _named(error: BaseException, options: SinkOptions) -> BaseException:
    """Of brokers that did not answer in time, which ones were asked."""
    if not isinstance(error, RequestTimedOutError):
        return error
    return type(error)(f"{error}. {BOOTSTRAP} has value {options.producer['bootstrap.servers']}")


def _rows(
    options: SinkOptions, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[str, bytes | None, bytes | None, int | None]]:
    """Topic, value, key, partition."""
    for batch in batches:
        yield from zip(
            _topics(options, batch),
            _bytes(batch, "value"),
            _bytes(batch, "key"),
            _plain(batch, "partition"),
            strict=True,
        )


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    number = batch.schema.get_field_index(name)
    return None if number < 0 else batch.column(number)


def _plain(batch: pa.RecordBatch, name: str) -> list[Any]:
    column = _column(batch, name)
    return [None] * batch.num_rows if column is None else column.to_pylist()


def _bytes(batch: pa.RecordBatch, name: str) -> list[bytes | None]:
    column = _column(batch, name)
    if column is None:
        return [None] * batch.num_rows
    return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]


def _topics(options: SinkOptions, batch: pa.RecordBatch) -> list[str]:
    if options.topic is not None:
        return [options.topic] * batch.num_rows
    topics: list[str] = _plain(batch, "topic")
    if None in topics:
        raise KafkaError(
            "Column topic is null in a row: give each row a topic, or set option topic"
        )
    return topics


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return send_all(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        logger.info("%d messages written", _count(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        logger.warning("A write failed; %d messages of it stay written", _count(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return send_all(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        logger.info("Batch %d: %d messages written", batchId, _count(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        logger.warning("Batch %d failed; %d messages of it stay written", batchId, _count(messages))


def _count(messages: list[WriterCommitMessage | None]) -> int:
    return sum(each.rows for each in messages if isinstance(each, Written))
