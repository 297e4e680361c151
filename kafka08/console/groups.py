"""Groups as the console shows and changes them, by the code of kafka-consumer-groups.sh."""

from __future__ import annotations

from kafka08.lag.collector import KAFKA, GroupLag
from tools.groups.members import GroupMembers, read_group
from tools.groups.service import GroupService
from zk.client import ZkClient


class Groups:
    """``service`` must see ZooKeeper, through ``zk``. Calls raise OSError and KafkaError."""

    def __init__(self, service: GroupService, zk: ZkClient) -> None:
        self._service = service
        self._zk = zk

    def members(self, group: str, lag: GroupLag) -> GroupMembers:
        """The live members. Brokers are asked about groups that commit there only: for others the
        question alone would make the cluster create its offsets topic."""
        if KAFKA not in lag.storages:
            return read_group(self._zk, group)
        return self._service.members(group) or read_group(self._zk, group)
