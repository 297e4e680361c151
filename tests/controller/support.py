"""Shared by the tests of controllers: partitions, states and a cluster of three."""

from __future__ import annotations

from typing import Any

from kafka08.common import TopicPartition
from tests.controller.cluster import ControllerCluster
from zk import znodes

T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))


def node(leader: int, leader_epoch: int, controller_epoch: int, *isr: int) -> Any:
    return znodes.PartitionStateNode(leader, leader_epoch, controller_epoch, isr)


def three(**settings: str) -> ControllerCluster:
    cluster = ControllerCluster(**settings)
    cluster.start(1, 2, 3)
    return cluster
