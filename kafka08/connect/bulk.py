"""A connector that copies topics to Parquet or JSON files by time, in periodic bulk loads on Spark.

``kafka08.spark.bulk`` defines a run and makes it atomic.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafka08.connect.interface import ConnectError, JobConnector, JobTask
from kafka08.connect.spark_session import session
from kafka08.settings.settings import LIST, LONG, dotted
from kafka08.spark.bulk import UnloadOptions, unload

logger = logging.getLogger("kafka08.connect.bulk")


class BulkSinkConfig(UnloadOptions):
    """All ``spark.*`` options go to the Spark session as well."""

    topics: tuple[str, ...] = dotted(kind=LIST, doc="the topics")
    path: str = dotted(doc="directory of the runs, by any URI that Hadoop knows")
    run_interval_ms: int = dotted(60000, LONG, 0, doc="pause between two runs")
    max_retries: int = dotted(3, low=0, doc="further tries after a run that failed")


class BulkSinkTask(JobTask):
    format = ""

    def start(self, properties: Mapping[str, str]) -> None:
        self._config = BulkSinkConfig.from_properties(properties)
        self._brokers = properties["bootstrap.servers"]
        self._spark = session(properties)
        self._failures = 0

    def run(self) -> None:
        config = self._config
        try:
            made = unload(
                self._spark,
                self._brokers,
                config.topics,
                config.path,
                format=self.format,
                **{name: getattr(config, name) for name in UnloadOptions.settings()},
            )
        except Exception as error:
            self._failures += 1
            if self._failures > config.max_retries:
                topics = ",".join(config.topics)
                raise ConnectError(
                    f"No run with topics={topics} and path={config.path}: {error}"
                ) from error
            logger.warning("A run failed and is tried again: %s", error)
            made = None
        else:
            self._failures = 0
        if made is None or not config.max_messages:
            self.context.stopping.wait(config.run_interval_ms / 1000)


class ParquetSinkTask(BulkSinkTask):
    format = "parquet"


class JsonSinkTask(BulkSinkTask):
    format = "json"


class BulkSink(JobConnector):
    settings = BulkSinkConfig


class ParquetSink(BulkSink):
    task_class = ParquetSinkTask


class JsonSink(BulkSink):
    """Values and keys as text."""

    task_class = JsonSinkTask
