"""APIs 4 to 7, between brokers: LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown.

All are idempotent, because controllers resend: also what could not be carried out while ZooKeeper
was away, whose connection is closed without an answer. A stale controller epoch
is answered 11 with an empty list on 4 and 5, -1 on 6. ControlledShutdown is answered by the
controller only.
"""

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.controller.controller import Controller
from kafka08.errors import NO_ERROR, StaleControllerEpochError, UnknownError
from kafka08.network.server import ConnectionClosed
from kafka08.protocol import schemas as s
from kafka08.protocol.schemas import Message, RequestHeader
from kafka08.server.replication.epochs import EpochCheck
from kafka08.server.replication.partition_retries import PartitionRetries
from kafka08.server.replication.roles import Roles
from zk.errors import ZkError


class _ReplicaApi:
    response: type[Message]

    def __init__(self, roles: Roles, retries: PartitionRetries, epochs: EpochCheck) -> None:
        self._roles = roles
        self._retries = retries
        self._epochs = epochs

    def failure(self, header: RequestHeader, request: Message, code: int) -> Message:
        if code == StaleControllerEpochError.code:
            return self.response(code, [])
        failed = [s.PartitionError(each.topic, each.partition, code) for each in request.partitions]
        return self.response(NO_ERROR, failed)


class LeaderAndIsrApi(_ReplicaApi):
    key = 4
    last_version = 0
    response = s.LeaderAndIsrResponse

    def handle(
        self, header: RequestHeader, request: s.LeaderAndIsrRequest
    ) -> s.LeaderAndIsrResponse:
        self._epochs.check_controller(request.controller_epoch)
        if request.controller_epoch >= self._roles.controller_epoch:
            self._epochs.check_leaders(request)
        try:
            response = self._roles.become_leader_or_follower(request)
        except ZkError as error:
            # The original waits for ZooKeeper. Controllers ignore errors in an answer, so one of
            # ours would leave a replica out for good; without an answer they send again.
            raise ConnectionClosed(f"the settings of a topic cannot be read: {error}") from error
        self._retries.answered(request, response)
        return response


class StopReplicaApi(_ReplicaApi):
    key = 5
    last_version = 0
    response = s.StopReplicaResponse

    def handle(self, header: RequestHeader, request: s.StopReplicaRequest) -> s.StopReplicaResponse:
        self._epochs.check_controller(request.controller_epoch)
        keys = [TopicPartition(*each) for each in request.partitions]
        response = self._roles.stop_replicas(request)
        self._retries.forget(keys)
        if request.delete_partitions:
            self._roles.replicas.sync_deletions(keys)
        return response


class UpdateMetadataApi:
    key = 6
    last_version = 0

    def __init__(self, roles: Roles, epochs: EpochCheck) -> None:
        self._roles = roles
        self._epochs = epochs

    def handle(
        self, header: RequestHeader, request: s.UpdateMetadataRequest
    ) -> s.UpdateMetadataResponse:
        self._epochs.check_controller(request.controller_epoch)
        self._roles.update_metadata(request)
        return s.UpdateMetadataResponse(NO_ERROR)

    def failure(
        self, header: RequestHeader, request: s.UpdateMetadataRequest, code: int
    ) -> s.UpdateMetadataResponse:
        return s.UpdateMetadataResponse(UnknownError.code)


class ControlledShutdownApi:
    key = 7
    last_version = 0

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def handle(
        self, header: RequestHeader, request: s.ControlledShutdownRequest
    ) -> s.ControlledShutdownResponse:
        remaining = self._controller.controlled_shutdown(request.broker_id)
        return s.ControlledShutdownResponse(
            NO_ERROR, [s.StopReplicaPartition(*partition) for partition in remaining]
        )

    def failure(
        self, header: RequestHeader, request: s.ControlledShutdownRequest, code: int
    ) -> s.ControlledShutdownResponse:
        return s.ControlledShutdownResponse(UnknownError.code, [])
