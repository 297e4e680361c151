"""Groups as the console shows and changes them, by the code of kafka-consumer-groups.sh."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.common import TopicPartition
from kafka08.errors import AdminOperationError
from kafka08.groups.admin import GroupAdmin
from kafka08.groups.members import GroupMembers, read_group
from kafka08.groups.storage import Where
from kafka08.lag.collector import KAFKA, ZOOKEEPER, GroupLag
from zk.client import ZkClient


class ConsoleGroups:
    """``admin`` sees ZooKeeper through ``zk``. Calls raise OSError and KafkaError."""

    def __init__(self, admin: GroupAdmin, zk: ZkClient) -> None:
        self._admin = admin
        self._zk = zk
        self.storage = admin.storage

    def members(self, group: str, lag: GroupLag) -> GroupMembers:
        """The live members. Brokers are asked about groups that commit there only: for others the
        question alone would make the cluster create its offsets topic."""
        if KAFKA not in lag.storages:
            return read_group(self._zk, group)
        return self._admin.members(group) or read_group(self._zk, group)

    def set(self, group: str, lag: GroupLag, offsets: Mapping[TopicPartition, int]) -> None:
        """Write offsets to each storage that the group uses. Raises AdminOperationError while it
        has members."""
        self.refuse_live(group, lag)
        where = Where(ZOOKEEPER in lag.storages, KAFKA in lag.storages)
        self.storage.commit(group, offsets, where)

    def refuse_live(self, group: str, lag: GroupLag) -> None:
        """Raises AdminOperationError that names a live member."""
        members = self.members(group, lag).members
        if members:
            raise AdminOperationError(
                f"Group {group} has live members: {', '.join(members[:3])}. Stop them first."
            )

    def delete(self, group: str, lag: GroupLag) -> None:
        """All there is of a group. Raises AdminOperationError."""
        self.refuse_live(group, lag)
        self._admin.delete(group)
