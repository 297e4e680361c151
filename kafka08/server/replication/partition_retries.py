"""Retries role changes that failed: the controller does not send them again.

A log needs room on a disk and a few descriptors. Controllers ignore errors in the answer to a
LeaderAndIsr; without these tries a topic created while the disk was full would be dead until
the next change of leader or a restart (in 0.8.2.2 it is).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafka08.common import TopicPartition
from kafka08.errors import StaleControllerEpochError, UnknownError
from kafka08.protocol.schemas import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartition,
    StopReplicaRequest,
)
from kafka08.server.replication.roles import Roles
from kafka08.server.storage.replica_manager import ReplicaManager
from zk.errors import ZkError

logger = logging.getLogger("state.change.logger")


class PartitionRetries:
    """The last LeaderAndIsr of each partition that failed for want of something."""

    def __init__(self, replicas: ReplicaManager, roles: Roles) -> None:
        self._replicas = replicas
        self._roles = roles
        self._requests: dict[TopicPartition, LeaderAndIsrRequest] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def answered(self, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> None:
        """Keep the partitions that failed, and forget the others."""
        errors = {TopicPartition(*each[:2]): each.error for each in response.partitions}
        for state in request.partitions:
            key = TopicPartition(state.topic, state.partition)
            self._requests.pop(key, None)
            failed = errors.get(key) == UnknownError.code
            if failed and key not in self._replicas.log_manager.offline:
                self._requests[key] = request._replace(partitions=[state])

    def forget(self, keys: Iterable[TopicPartition]) -> None:
        """Forget partitions that the controller has taken away from this broker."""
        for key in keys:
            self._requests.pop(key, None)

    def clear(self) -> None:
        """Forget all: in a new session the controller sends the state of every partition again."""
        self._requests.clear()

    def retry(self) -> None:
        """Repeat the role changes that failed, as if the controller had sent them again."""
        for key, request in list(self._requests.items()):
            if self._requests.get(key) is request and not self._replicas.fenced:
                try:
                    self._try(key, request)
                except StaleControllerEpochError:
                    self.forget([key])  # a newer controller sends its own requests
                except ZkError as error:
                    logger.warning("%s has to wait for its topic's settings: %s", key, error)

    def _try(self, key: TopicPartition, request: LeaderAndIsrRequest) -> None:
        had_log = self._replicas.log_manager.get_log(key) is not None
        response = self._roles.become_leader_or_follower(request)
        now = self._requests.get(key)
        if now is request:
            self.answered(request, response)
        elif now is None and not any(each.error for each in response.partitions):
            # It was taken back while ZooKeeper was read.
            back = [StopReplicaPartition(*key)]
            self._roles.stop_replicas(
                StopReplicaRequest(
                    request.controller_id, request.controller_epoch, not had_log, back
                )
            )
