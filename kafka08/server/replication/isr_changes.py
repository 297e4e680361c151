"""Reports changed isrs to the controller, so that the Metadata of every broker shows them.

The partitions are listed in a node below /isr_change_notification, in the form of 0.9. The
controller deletes the node when it has read it. Until then later changes are added to the same
node: an original controller reads none, and finds one node per broker at most. The node ends
with the session.
"""

from __future__ import annotations

import logging

from kafka08.common import TopicPartition
from zk import znodes
from zk.client import ZkClient
from zk.errors import NoNodeError, ZkError

logger = logging.getLogger("kafka.cluster.Partition")

# A node may hold 1 MiB, and the name of a topic 255 bytes.
MOST = 3000


class IsrChanges:
    """The changes that are still to be announced. Owned by the task that writes isrs."""

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk
        self._path: str | None = None
        self._listed: set[TopicPartition] = set()
        self._untold: set[TopicPartition] = set()

    def add(self, partition: TopicPartition) -> bool:
        """Add ``partition``, whose isr was written; returns whether it is time to announce."""
        self._untold.add(partition)
        return len(self._untold) >= MOST

    def announce(self) -> None:
        """Write the added partitions. If ZooKeeper fails, they stay and are due again."""
        if not self._untold:
            return
        try:
            if self._path is None or not self._extend(self._path):
                self._path = self._create()
        except ZkError as error:
            logger.warning("Changes of isrs not announced yet: %s", error)
        else:
            self._untold.clear()

    def _extend(self, path: str) -> bool:
        """Add to a node that has not been read; False if it has been."""
        listed = self._listed | self._untold
        if len(listed) > MOST:
            # No controller reads the nodes. The older changes are dropped; 0.8.2.2 announces none.
            listed = set(self._untold)
        try:
            self._zk.set(path, znodes.encode_partitions(sorted(listed)))
        except NoNodeError:
            return False
        self._listed = listed
        return True

    def _create(self) -> str:
        data = znodes.encode_partitions(sorted(self._untold))
        prefix = znodes.isr_change_path_prefix()
        path = self._zk.create(prefix, data, ephemeral=True, sequence=True, makepath=True)
        self._listed = set(self._untold)
        return path
