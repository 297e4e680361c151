"""A query's progress shown as the offsets of a consumer group, for the tools that show lags.

A query resumes only from its checkpoint; the offsets stored here are for monitoring. It runs in
the user's driver, after each batch that ended.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
)

from kafka08.client.security import runtime_for
from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.group import zookeeper_session
from kafka08.consumer.offset_store import OffsetStore
from kafka08.errors import ConfigError
from kafka08.spark.structured.source_offsets import from_json
from zk.client import ZkClient
from zk.registry import live_brokers

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

    ``properties``: ``zookeeper.connect`` and, as a consumer has them, ``offsets.storage``
    (``zookeeper`` or ``kafka``), ``dual.commit.enabled`` and others. ``names``: the queries to
    show, all when empty. A failure is logged and the next batch tries again. Raises ConfigError.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group: str = "",
        *,
        names: Collection[str] = (),
        commit: Commit | None = None,
    ) -> None:
        given = {**properties, **({"group.id": group} if group else {})}
        self._config = ConsumerConfig.from_properties(given)
        self._names = frozenset(names)
        self._lock = threading.Lock()
        self._opened: tuple[OffsetStore, ZkClient] | None = None
        self._commit = commit or self._store_offsets

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
            self.close()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def _store_offsets(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._lock:
            if self._opened is None:
                runtime = runtime_for(self._config)
                zk = zookeeper_session(self._config, runtime)
                brokers = partial(live_brokers, zk, self._config.security_protocol)
                self._opened = OffsetStore(self._config, zk, brokers, runtime=runtime), zk
            if not self._opened[0].commit(offsets, self._config.offsets_commit_max_retries):
                raise OSError("no coordinator took them")

    def close(self) -> None:
        """Disconnect; a later batch connects again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            store, zk = opened
            store.close()
            zk.close()


def _offsets(text: str | None) -> dict[TopicPartition, int]:
    """The offsets at a source's end; empty for sources of other kinds."""
    try:
        return from_json(json.loads(text or ""))
    except (ValueError, ConfigError):
        return {}
