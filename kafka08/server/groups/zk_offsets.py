"""Committed offsets in ZooKeeper, for version 0 of OffsetCommit and OffsetFetch."""

from __future__ import annotations

import logging
import re

from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR, UnknownError, UnknownTopicOrPartitionError
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError

logger = logging.getLogger("kafka.server.KafkaApis")

# Paths that ZooKeeper's own client refuses (PathUtils.validatePath). Without this check some groups
# would name another node: "" names the parent of all groups.
_ILLEGAL = re.compile(
    "//|/\\.{1,2}(?:/|$)|[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]"
)


class ZkOffsets:
    """Reads and writes /consumers/GROUP/offsets/TOPIC/PARTITION."""

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk

    def commit(self, group: str, key: TopicPartition, offset: int) -> int:
        """Write an offset; the wire code."""
        path = znodes.consumer_offset_path(group, *key)
        try:
            check_path(path)
            self._zk.create_or_set(path, znodes.encode_offset(offset))
        except ZkError as error:
            logger.warning("Could not write %s: %s", path, error)
            return UnknownError.code
        return NO_ERROR

    def fetch(self, group: str, key: TopicPartition) -> tuple[int, int]:
        """(offset, 0), or -1 with 3 when none is stored, -1 with -1 when it cannot be read."""
        path = znodes.consumer_offset_path(group, *key)
        try:
            check_path(path)
            found = self._zk.get_if_exists(path)
            if found is None:
                return -1, UnknownTopicOrPartitionError.code
            return znodes.decode_offset(path, found[0]), NO_ERROR
        except (ZkError, znodes.MalformedNodeError) as error:
            logger.warning("Could not read %s: %s", path, error)
            return -1, UnknownError.code


def check_path(path: str) -> None:
    """Raises ZkError for what could be another node's path."""
    if _ILLEGAL.search(path):
        raise ZkError(f"{path!r} is not a path", path=path)
