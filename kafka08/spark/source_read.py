"""Reading a planned range on an executor, as record batches, with the source's rule of losses.

No Spark here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kafka08.client.security import runtime_for
from kafka08.common import Broker
from kafka08.errors import UnknownTopicOrPartitionError
from kafka08.spark.columns import record_batch
from kafka08.spark.errors import DataLossError, EndedEarlyError, naming
from kafka08.spark.offsets import OffsetReader
from kafka08.spark.planner import Range
from kafka08.spark.reader import RangeReader
from kafka08.spark.source_options import BOOTSTRAP, SourceOptions
from kafka08.spark.source_plan import report_loss

logger = logging.getLogger("kafka08.spark.source_read")


def read_range(
    options: SourceOptions,
    wanted: Range,
    leader: Broker | None = None,
    *,
    timestamp_ms: int,
    reader: RangeReader | None = None,
    offsets: OffsetReader | None = None,
) -> Iterator[pa.RecordBatch]:
    """One batch a fetch, with ``timestamp_ms`` as the time of messages that have none.

    Raises what RangeReader raises; with ``fail_on_data_loss`` false, what is lost is warned of and
    left out.
    """
    position = wanted.start

    def decode(data: Any, part: Range) -> tuple[pa.RecordBatch | None, int | None]:
        nonlocal position
        found, following = record_batch(data, part, timestamp_ms, headers=options.include_headers)
        position = max(position, following or 0)
        return found, following

    with naming(BOOTSTRAP, options.endpoints), reader or _range_reader(options) as source:
        while position < wanted.end:
            try:
                yield from source.read_as(decode, wanted._replace(start=position), leader)
                return
            except UnknownTopicOrPartitionError:
                with offsets or _offset_reader(options) as asked:
                    if not asked.gone([wanted.topic_partition]):
                        raise
                report_loss(options, f"{wanted} cannot be read: the partition is gone")
                return
            except DataLossError as error:
                if options.fail_on_data_loss:
                    raise type(error)(
                        f"{error}; set failOnDataLoss to false to continue without them"
                    ) from None
                logger.warning("%s", error)
                if isinstance(error, EndedEarlyError):
                    return
                with offsets or _offset_reader(options) as asked:
                    (earliest,) = asked.earliest([wanted.topic_partition]).values()
                if earliest <= position:
                    return  # the log ends before the range begins
                position = earliest


def _range_reader(options: SourceOptions) -> RangeReader:
    return RangeReader(
        options.endpoints,
        client_id=options.client_id,
        fetch_bytes=options.fetch_bytes,
        max_fetch_bytes=options.max_fetch_bytes,
        retries=options.retries,
        backoff_ms=options.backoff_ms,
        timeout_ms=options.timeout_ms,
        api_versions=options.api_versions,
        runtime=runtime_for(options.security),
    )


def _offset_reader(options: SourceOptions) -> OffsetReader:
    return OffsetReader(
        options.endpoints,
        client_id=options.client_id,
        retries=options.retries,
        backoff_ms=options.backoff_ms,
        timeout_ms=options.timeout_ms,
        runtime=runtime_for(options.security),
    )
