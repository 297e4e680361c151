"""The high watermarks in each data directory: read at the start, written by a timer and at the end.

Mirrors ReplicaManager.checkpointHighWatermarks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.disk import DiskFailure, tried
from kafka08.log.manager import LogManager
from kafka08.runtime import Runtime

HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"


class HwCheckpoints:
    """The high watermarks last known of all logs, also of those that the controller has not
    assigned to this broker yet."""

    def __init__(self, runtime: Runtime, log_manager: LogManager) -> None:
        self._runtime = runtime
        self._log_manager = log_manager
        self._checkpoints = {
            directory: OffsetCheckpoint(os.path.join(directory, HIGH_WATERMARK_CHECKPOINT))
            for directory in log_manager.log_dirs
        }
        self._recorded = {
            topic_partition: offset
            for checkpoint in self._checkpoints.values()
            for topic_partition, offset in checkpoint.read().items()
        }

    def recorded(self, key: TopicPartition) -> int:
        """The last high watermark written for ``key``; 0 if there is none."""
        return self._recorded.get(key, 0)

    def forget(self, key: TopicPartition) -> None:
        """The partition has been deleted: another of its name starts at 0."""
        self._recorded.pop(key, None)

    def checkpoint_high_watermarks(
        self, partitions: Mapping[TopicPartition, Partition]
    ) -> list[DiskFailure]:
        """Write every high watermark to the checkpoint of the directory its log is in.

        Files are written by another thread. Returns the directories that could not be written.
        """
        for key, partition in partitions.items():
            self._recorded[key] = partition.high_watermark
        by_directory: dict[str, dict[TopicPartition, int]] = {
            directory: {} for directory in self._log_manager.log_dirs
        }
        for key, log in self._log_manager.logs.items():
            if key in self._recorded:
                by_directory[log.data_dir][key] = self._recorded[key]
        blocking = self._runtime.blocking
        return tried(
            (directory, partial(blocking, self._checkpoints[directory].write, offsets))
            for directory, offsets in by_directory.items()
        )
