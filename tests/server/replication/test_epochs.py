"""Epochs that ZooKeeper does not know do not keep the real controller out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.schemas import (
    LeaderAndIsrRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from tests.server.support import BROKERS, LATEST_CONTROLLER, ME, PEER, Rig, partition_state
from zk import znodes
from zk.errors import ZkConnectionError
from zk.znodes import PartitionStateNode

T = TopicPartition("t", 0)
FALSE = 2**31 - 1
REQUESTS = [
    lambda epoch: UpdateMetadataRequest(9, epoch, [partition_state("t")], BROKERS),
    lambda epoch: LeaderAndIsrRequest(9, epoch, [partition_state("t")], BROKERS),
    lambda epoch: StopReplicaRequest(9, epoch, True, [StopReplicaPartition("t", 0)]),
]

every_request = pytest.mark.parametrize(
    "request_of", REQUESTS, ids=["UpdateMetadata", "LeaderAndIsr", "StopReplica"]
)


@pytest.fixture
def reads(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes that are read from now on."""
    read: list[str] = []
    get = rig.zk.get_if_exists

    def noting(path: str) -> Any:
        read.append(path)
        return get(path)

    monkeypatch.setattr(rig.zk, "get_if_exists", noting)
    return read


@every_request
def test_a_controller_that_is_not_there(rig: Rig, request_of: Callable[[int], Any]) -> None:
    rig.lead()
    with pytest.raises(ConnectionClosed, match="no controller of epoch"):
        rig.call(request_of(FALSE))
    assert rig.replicas.partitions[T].is_leader
    assert T in rig.logs.logs
    assert rig.cache.topics() == []
    # The real one goes on.
    rig.know(partition_state("u"))
    rig.follow()


@every_request
def test_a_new_controller_costs_one_read(
    rig: Rig, reads: list[str], request_of: Callable[[int], Any]
) -> None:
    for _ in range(3):
        rig.call(request_of(LATEST_CONTROLLER))
    assert reads == [znodes.CONTROLLER_EPOCH]
    assert rig.roles.controller_epoch == LATEST_CONTROLLER


@every_request
def test_without_zookeeper_the_controller_sends_again(
    rig: Rig, request_of: Callable[[int], Any]
) -> None:
    rig.zk.fails[znodes.CONTROLLER_EPOCH] = ZkConnectionError()
    with pytest.raises(ConnectionClosed, match="cannot be read"):
        rig.call(request_of(LATEST_CONTROLLER))
    assert rig.roles.controller_epoch == 0
    assert rig.call(request_of(LATEST_CONTROLLER))[0] == 0


def test_a_known_controller_needs_no_zookeeper(rig: Rig) -> None:
    rig.know()
    rig.zk.fails[znodes.CONTROLLER_EPOCH] = ZkConnectionError()
    rig.know(partition_state("t"))
    assert znodes.CONTROLLER_EPOCH in rig.zk.fails


def test_a_server_that_is_behind_is_asked_to_catch_up(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def catch_up(path: str) -> None:
        rig.zk.set(path, znodes.encode_controller_epoch(LATEST_CONTROLLER + 1))

    monkeypatch.setattr(rig.zk, "sync", catch_up)
    assert rig.call(UpdateMetadataRequest(9, LATEST_CONTROLLER + 1, [], BROKERS)) == (0,)


class TestLeaderEpochs:
    @staticmethod
    def role(rig: Rig, leader_epoch: int, leader: int = ME) -> int:
        state = partition_state(
            "t", 0, leader=leader, leader_epoch=leader_epoch, replicas=[ME, PEER]
        )
        ((_, _, error),) = rig.call(LeaderAndIsrRequest(9, 1, [state], BROKERS)).partitions
        return int(error)

    @staticmethod
    def store(rig: Rig, leader_epoch: int) -> None:
        data = znodes.encode_partition_state(PartitionStateNode(ME, leader_epoch, 1, (ME,)))
        rig.zk.create(znodes.partition_state_path(*T), data, makepath=True)

    def test_a_false_one_lasts_until_the_controllers_next_request(self, rig: Rig) -> None:
        self.store(rig, 7)
        assert self.role(rig, FALSE, leader=PEER) == 0
        assert self.role(rig, 7) == 0
        assert rig.replicas.partitions[T].is_leader
        assert rig.replicas.partitions[T].leader_epoch == 7

    def test_a_late_request_is_still_refused(self, rig: Rig) -> None:
        self.store(rig, 8)
        assert self.role(rig, 8, leader=PEER) == 0
        assert self.role(rig, 7) == 13
        assert rig.replicas.partitions[T].leader_epoch == 8

    def test_a_server_that_is_behind_does_not_confirm_a_late_one(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.store(rig, 7)

        def catch_up(path: str) -> None:
            rig.zk.set(path, znodes.encode_partition_state(PartitionStateNode(ME, 8, 1, (ME,))))

        monkeypatch.setattr(rig.zk, "sync", catch_up)
        assert self.role(rig, 8, leader=PEER) == 0
        assert self.role(rig, 7) == 13
        assert rig.replicas.partitions[T].leader_epoch == 8

    def test_a_repeated_one_costs_no_read(self, rig: Rig, reads: list[str]) -> None:
        assert self.role(rig, 7) == 0
        reads.clear()
        assert self.role(rig, 7) == 13
        assert self.role(rig, 8) == 0
        assert reads == []

    def test_without_zookeeper_the_controller_sends_again(self, rig: Rig) -> None:
        self.store(rig, 7)
        assert self.role(rig, FALSE, leader=PEER) == 0
        rig.zk.fails[znodes.partition_state_path(*T)] = ZkConnectionError()
        with pytest.raises(ConnectionClosed, match="cannot be read"):
            self.role(rig, 7)
        assert self.role(rig, 7) == 0
