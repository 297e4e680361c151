"""A query's progress shown as the offsets of a consumer group, for the tools that show lags.

A query resumes only from its checkpoint; the offsets stored here are for monitoring. It runs in
the user's driver, after each batch that ended.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
)

from kafka08.common import TopicPartition
from kafka08.errors import ConfigError
from kafka08.spark.group_offsets import GroupOffsets
from kafka08.spark.structured.source_offsets import from_json

logger = logging.getLogger("kafka08.spark.listener")

Commit = Callable[[Mapping[TopicPartition, int]], object]


def offsets_behind_latest(source: SourceProgress) -> dict[str, str]:
    """How many messages a query has still to read, from a source of its progress
    (``query.lastProgress.sources[0]``).

    Names and values are those of the metrics of Spark's own Kafka source:
    ``minOffsetsBehindLatest``, ``maxOffsetsBehindLatest``, ``avgOffsetsBehindLatest``, each over
    the partitions that were read. Empty for sources of other kinds.
    """
    end, latest = _offsets(source.endOffset), _offsets(source.latestOffset)
    behind = [max(latest.get(tp, 0) - offset, 0) for tp, offset in end.items()]
    if not behind or not latest:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(sum(behind) / len(behind)),
    }


class GroupOffsetsListener(StreamingQueryListener):
    """Stores the ends of batches as offsets of ``group``; ``spark.streams.addListener`` it.

    ``properties`` are those of GroupOffsets. ``names``: the queries to show, all when empty. A
    failure is logged and the next batch tries again. Raises ConfigError.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group: str = "",
        *,
        names: Collection[str] = (),
        commit: Commit | None = None,
    ) -> None:
        self._group = GroupOffsets(properties, group)
        self._names = frozenset(names)
        self._commit = commit or self._group.store

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if self._names and progress.name not in self._names:
            return
        offsets: dict[TopicPartition, int] = {}
        for source in progress.sources:
            offsets.update(_offsets(source.endOffset))
        if not offsets:
            return
        try:
            self._commit(offsets)
        except Exception as error:
            logger.warning("The group's offsets were not stored: %s", error)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def close(self) -> None:
        """Disconnect; a later batch connects again."""
        self._group.close()


def _offsets(text: str | None) -> dict[TopicPartition, int]:
    """The offsets at a source's end; empty for sources of other kinds."""
    try:
        return from_json(json.loads(text or ""))
    except (ValueError, ConfigError):
        return {}
