"""Reading a planned range on an executor, as record batches, with the source's rule of losses.

No Spark here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from kafka08.client.cluster import ClusterClient
from kafka08.client.security import runtime_for
from kafka08.common import Broker
from kafka08.errors import UnknownTopicOrPartitionError
from kafka08.message.entry import BytesLike
from kafka08.runtime import Runtime
from kafka08.spark.errors import DataLossError, EndedEarlyError, naming
from kafka08.spark.planner import Range
from kafka08.spark.structured.columns import record_batch
from kafka08.spark.structured.source_options import SourceOptions
from kafka08.spark.structured.source_plan import report_loss

logger = logging.getLogger("kafka08.spark.source_read")


def read_range(
    options: SourceOptions,
    wanted: Range,
    leader: Broker | None = None,
    *,
    timestamp_ms: int | None,
    cluster: ClusterClient | None = None,
    runtime: Runtime | None = None,
) -> Iterator[pa.RecordBatch]:
    """One batch a fetch, with ``timestamp_ms`` as the time of messages that have none.

    Raises what RangeReader raises; with ``fail_on_data_loss`` false, what is lost is warned of and
    left out.
    """
    position = wanted.start
    params, settings = options.params, options.settings
    runtime = runtime or runtime_for(params.security)

    def decode(data: BytesLike, part: Range) -> tuple[pa.RecordBatch | None, int | None]:
        nonlocal position
        found, following = record_batch(data, part, timestamp_ms, headers=settings.include_headers)
        position = max(position, following or 0)
        return found, following

    with naming(params.option, params.endpoints), cluster or params.client(runtime) as client:
        reader = params.ranges(client, settings.retries, runtime)
        offsets = params.offsets(client, settings.retries, runtime)
        while position < wanted.end:
            try:
                yield from reader.read_as(decode, wanted._replace(start=position), leader)
                return
            except UnknownTopicOrPartitionError:
                if not offsets.gone([wanted.topic_partition]):
                    raise
                report_loss(options, f"{wanted} cannot be read: the partition is gone")
                return
            except DataLossError as error:
                if settings.fail_on_data_loss:
                    raise type(error)(
                        f"{error}; set failOnDataLoss to false to continue without them"
                    ) from None
                logger.warning("%s", error)
                if isinstance(error, EndedEarlyError):
                    return
                (earliest,) = offsets.earliest([wanted.topic_partition]).values()
                if earliest <= position:
                    return  # the log ends before the range begins
                position = earliest
