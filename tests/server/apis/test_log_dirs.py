"""DescribeLogDirs: directories, the replicas in them, and directories that have failed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import LaterCode
from kafka08.message.sets import encode_set
from kafka08.protocol import admin_schemas as a
from tests.server.support import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, later=True, log_dirs=f"{tmp_path}/one,{tmp_path}/two")


def described(rig: Rig, topics: Any = None) -> dict[str, tuple[int, list[Any]]]:
    """Last word of the path -> error, (topic, partition, size)."""
    response = rig.call(a.DescribeLogDirsRequest(topics))
    return {
        Path(found.path).name: (
            found.error,
            [
                (topic.topic, p.partition, p.size)
                for topic in found.topics
                for p in topic.partitions
            ],
        )
        for found in response.log_dirs
    }


def create(rig: Rig, topic: str, partition: int, messages: int) -> str:
    """A log with so many messages; its directory."""
    tp = TopicPartition(topic, partition)
    log = rig.logs.create_log(tp, rig.logs.default_config)
    if messages:
        log.append(memoryview(bytearray(encode_set([(None, b"x")] * messages))))
    return Path(log.directory).parent.name


@pytest.mark.scenario("modern-49")
def test_every_replica_is_in_its_directory(rig: Rig) -> None:
    assert described(rig) == {"one": (0, []), "two": (0, [])}
    first, second = create(rig, "t", 0, 2), create(rig, "t", 1, 0)
    assert {first, second} == {"one", "two"}
    size = rig.logs.logs[TopicPartition("t", 0)].size
    assert size > 0
    assert described(rig)[first] == (0, [("t", 0, size)])
    assert described(rig)[second] == (0, [("t", 1, 0)])


def test_only_the_partitions_asked_for(rig: Rig) -> None:
    places = [create(rig, "t", number, 0) for number in (0, 1)]
    asked = [a.LogDirsTopic("t", [1, 7]), a.LogDirsTopic("no", [0])]
    assert described(rig, asked)[places[1]] == (0, [("t", 1, 0)])
    assert described(rig, asked)[places[0]] == (0, [])
    assert described(rig, []) == {"one": (0, []), "two": (0, [])}


def test_a_directory_that_has_failed(rig: Rig) -> None:
    place = create(rig, "t", 0, 0)
    (path,) = (path for path in rig.logs.log_dirs if path.endswith(place))
    rig.logs.take_offline(path)
    found = described(rig)
    assert found[place] == (LaterCode.KAFKA_STORAGE_ERROR, [])
    assert len(found) == 2


def test_an_unexpected_failure_is_answered(rig: Rig) -> None:
    rig.logs.logs = None  # type: ignore[assignment]
    assert {error for error, _ in described(rig).values()} == {-1}


def test_the_disks_and_their_free_bytes(rig: Rig) -> None:
    """As the fourth version has them; df says the same."""
    found = rig.call(a.DescribeLogDirsRequest(None), sent_in=4)
    assert found.error == 0
    for each in found.log_dirs:
        disk = os.statvfs(each.path)
        assert each.total_bytes == disk.f_blocks * disk.f_frsize
        assert 0 < each.usable_bytes < each.total_bytes
