"""Compares epochs in requests with ZooKeeper: any peer can claim to be the controller.

0.8.2.2 believes every controller epoch above its own, and refuses the real controller from then
on. Here an epoch above the known one is compared with /controller_epoch first: one read for the
first request of each controller. To compare leader epochs as well would cost a read for each
partition. So they are believed, but ZooKeeper is asked about a lower one before it is refused: a
false epoch lasts no longer than until the controller's next request. If ZooKeeper cannot be read,
the connection is closed without an answer, and the controller, an original one too, sends again.
"""

from __future__ import annotations

import logging

from kafka08 import admin
from kafka08.common import TopicPartition
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.schemas import LeaderAndIsrRequest
from kafka08.runtime import Runtime
from kafka08.server.replication.roles import Roles
from kafka08.server.storage.replica_manager import ReplicaManager
from zk import election, znodes
from zk.client import ZkClient
from zk.errors import ZkError
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.server.KafkaApis")


class EpochCheck:
    """Asks ZooKeeper before ``roles`` believes an epoch.

    Both methods may wait, and raise ConnectionClosed where the request must not be carried out.
    """

    def __init__(
        self, zk: ZkClient, runtime: Runtime, replicas: ReplicaManager, roles: Roles
    ) -> None:
        self._zk = zk
        self._replicas = replicas
        self._roles = roles
        self._lock = runtime.lock()  # unknown peers cause one read from ZooKeeper at a time

    def check_controller(self, epoch: int) -> None:
        """Refuse a controller epoch that is not in ZooKeeper."""
        if epoch <= self._roles.controller_epoch:
            return
        with self._lock:
            if epoch <= self._roles.controller_epoch:
                return
            try:
                known = self._controller_epoch(epoch)
            except (ZkError, MalformedNodeError) as error:
                raise ConnectionClosed(f"the controller epoch cannot be read: {error}") from error
        if epoch > known:
            logger.warning("Controller epoch %d is refused: ZooKeeper has %d", epoch, known)
            raise ConnectionClosed(f"there is no controller of epoch {epoch}")

    def _controller_epoch(self, claimed: int) -> int:
        stored = election.read_epoch(self._zk)
        if stored is None or stored.epoch < claimed:
            # Our ZooKeeper server may be behind the one that accepted the new controller's epoch.
            self._zk.sync(znodes.CONTROLLER_EPOCH)
            stored = election.read_epoch(self._zk)
        return 0 if stored is None else stored.epoch

    def check_leaders(self, request: LeaderAndIsrRequest) -> None:
        """Forget leader epochs above a requested one that ZooKeeper confirms."""
        for state in request.partitions:
            key = TopicPartition(state.topic, state.partition)
            partition = self._replicas.partitions.get(key)
            if partition is None or not 0 <= state.leader_epoch < partition.leader_epoch:
                continue
            doubted = partition.leader_epoch
            try:
                # The request may be a late one, and our ZooKeeper server as far behind.
                self._zk.sync(znodes.partition_state_path(*key))
                stored = admin.fetch_partition_state(self._zk, *key)
            except (ZkError, MalformedNodeError) as error:
                raise ConnectionClosed(f"the state of {key} cannot be read: {error}") from error
            if partition.leader_epoch != doubted or stored is None:
                continue
            if stored.leader_epoch == state.leader_epoch:
                logger.warning("Leader epoch %d of %s is in no node: forgotten", doubted, key)
                partition.forget_epoch()
