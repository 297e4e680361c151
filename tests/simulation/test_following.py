"""The lines of one partition, among those of all."""

from __future__ import annotations

import logging

import pytest

from kafka08.common import TopicPartition
from tests.simulation.following import Follower
from tests.simulation.scheduler import SECOND, Scheduler


@pytest.mark.parametrize(
    "line",
    [
        "    1.000000 broker1/x#3: Broker 1 leads [t,0]",
        "    1.000000 broker1/x#3: INFO Truncating /d/t-0 to 7",
        "    1.000000 zookeeper: [t,0] has a leader",
        "    1.000000 producer/loop#3: partition 0: error 6",
        "    1.000000 fault: kill",
        "    1.000000 network: from a to b nothing arrives",
        "    1.000000 broker1: is killed",
        "    1.000000 broker1/main#2: has started",
    ],
)
def test_lines_about_a_partition_are_shown(line: str) -> None:
    shown: list[str] = []
    Follower(TopicPartition("t", 0), shown.append).tell(line)
    assert shown == [line]


@pytest.mark.parametrize(
    "line",
    [
        "    1.000000 broker1/x#3: Broker 1 leads [t,1]",
        "    1.000000 broker1/x#3: Broker 1 leads [tt,0]",
        "    1.000000 broker1/x#3: Truncating /d/t-01 to 7",
        "    1.000000 producer/loop#3: partition 10: error 6",
        "    1.000000 broker1/main#2: runs",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    shown: list[str] = []
    Follower(TopicPartition("t", 0), shown.append).tell(line)
    assert shown == []
    Follower(None, shown.append).tell(line)
    assert shown == [line]


def test_what_is_logged_has_the_time_of_the_run() -> None:
    shown: list[str] = []
    follower = Follower(TopicPartition("t", 0), shown.append)
    follower.scheduler = Scheduler(1)
    follower.scheduler.now = 2 * SECOND
    follower.handle(logging.makeLogRecord({"levelname": "INFO", "msg": "[t,0] is well"}))
    assert shown == ["    2.000000 world: INFO [t,0] is well"]
