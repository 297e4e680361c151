"""The stream reader that suits what the installed Spark tells a source."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark

from kafka08.errors import ConfigError
from kafka08.spark.structured.source import SourceStreamReader
from kafka08.spark.structured.source_offsets import OffsetsJson, from_json, to_json
from kafka08.spark.structured.source_options import (
    MAX_DELAY,
    MAX_OFFSETS,
    MIN_OFFSETS,
    SourceOptions,
)
from kafka08.spark.versions.sources import READ_LIMITS, InputPartition, ReadAllAvailable

LIMITS = (MAX_OFFSETS, MIN_OFFSETS, MAX_DELAY)


def stream_reader(
    options: SourceOptions, given: Mapping[str, str], *, limits: bool = READ_LIMITS
) -> SourceStreamReader:
    """``given``: the options as texts. Raises ConfigError for those that need a later Spark."""
    if limits:
        return SourceStreamReader(options)
    texts = {key.lower(): value for key, value in given.items()}
    for name in LIMITS:
        if name.lower() in texts:
            raise ConfigError(
                f"{name} has value {texts[name.lower()]}, which needs Spark 4.2 or later: Spark "
                f"{pyspark.__version__} does not tell a source where its query stands"
            )
    return UnlimitedStreamReader(options)


class UnlimitedStreamReader(SourceStreamReader):
    """For Spark before 4.2, which asks for the ends of the logs and tells nothing.

    The query stands where the last batch that was planned here ends; after a restart Spark names
    that batch first.
    """

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._seen: OffsetsJson | None = None

    def initialOffset(self) -> OffsetsJson:
        if self._initial is None:
            start = self._planner.initial()
            if self._seen is not None:
                # A new query is asked for its end first, and cannot begin after it.
                ends = from_json(self._seen)
                start = {tp: min(offset, ends[tp]) for tp, offset in start.items() if tp in ends}
            self._initial = self._seen = to_json(start)
        return self._initial

    def latestOffset(self) -> OffsetsJson:  # type: ignore[override]
        self._seen = super().latestOffset(self._seen or {}, ReadAllAvailable())
        return self._seen

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> list[InputPartition]:
        self._seen = end
        return super().partitions(start, end)
