"""OffsetForLeaderEpoch, and what requests with a leader epoch are compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.protocol.later_schemas import (
    EpochPartition,
    EpochTopic,
    OffsetForLeaderEpochRequest,
)
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
    RequestHeader,
)
from kafka08.server.apis.fetch import FetchApi
from kafka08.server.apis.leader_epochs import OffsetForLeaderEpochApi
from kafka08.server.apis.offsets import OffsetsApi
from kafka08.server.rebuild.view import ConsumerView
from tests.message.batches import batch, simple
from tests.server.support import PEER, Rig

ONE = batch(simple(b"v"))
EPOCHS = [(-1, 0), (4, 74), (5, 0), (6, 75)]


@pytest.fixture
def led(tmp_path: Path) -> Rig:
    """Epochs 3 and 5 begin at 0 and 2."""
    rig = Rig(tmp_path)
    for epoch, count in ((3, 2), (5, 1)):
        rig.lead(leader_epoch=epoch)
        for _ in range(count):
            rig.produce(("t", 0, ONE))
    return rig


def ask(rig: Rig, epoch: int, current: int = -1, topic: str = "t") -> tuple[int, int, int]:
    api = OffsetForLeaderEpochApi(rig.runtime, rig.replicas)
    request = OffsetForLeaderEpochRequest([EpochTopic(topic, [EpochPartition(0, epoch, current)])])
    found = api.handle(RequestHeader(23, 3, 1, "c"), request).topics[0].partitions[0]
    return found.error, found.leader_epoch, found.end_offset


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(2, (0, 2, 0)), (3, (0, 3, 2)), (4, (0, 3, 2)), (5, (0, 5, 3)), (6, (0, -1, -1))],
)
def test_where_an_epoch_ends(led: Rig, epoch: int, expected: tuple[int, int, int]) -> None:
    assert ask(led, epoch) == expected


def test_refusals(led: Rig) -> None:
    for current, code in EPOCHS:
        assert ask(led, 3, current)[0] == code
    assert ask(led, 3, topic="u") == (3, -1, -1)
    led.follow(leader_epoch=6)
    assert ask(led, 3) == (6, -1, -1)
    api = OffsetForLeaderEpochApi(led.runtime, led.replicas)
    request = OffsetForLeaderEpochRequest([EpochTopic("t", [EpochPartition(0, 1)])])
    assert api.failure(RequestHeader(23, 3, 1, "c"), request, -1).topics[0].partitions[0][:3] == (
        -1,
        0,
        -1,
    )


@pytest.mark.parametrize(("epoch", "code"), EPOCHS)
def test_a_fetch_with_another_epoch_is_refused(led: Rig, epoch: int, code: int) -> None:
    api = FetchApi(led.runtime, led.replicas, ConsumerView(led.runtime))
    asked = FetchPartition(0, 0, 1 << 20, current_leader_epoch=epoch)
    request = FetchRequest(-1, 0, 1, [FetchTopic("t", [asked])], max_bytes=1 << 20)
    answer = api.handle(RequestHeader(1, 9, 1, "c"), request).topics[0].partitions[0]
    assert answer.error == code
    assert (answer.high_watermark == 3) is (code == 0)


@pytest.mark.parametrize(("epoch", "code"), EPOCHS)
def test_an_offset_comes_with_its_epoch(led: Rig, epoch: int, code: int) -> None:
    api = OffsetsApi(led.runtime, led.replicas, ConsumerView(led.runtime).long_work)

    def found(time: int) -> tuple[int, int, int]:
        asked = OffsetsPartition(0, time, current_leader_epoch=epoch)
        request = OffsetsRequest(-1, [OffsetsTopic("t", [asked])])
        answer = api.handle(RequestHeader(2, 5, 1, "c"), request).topics[0].partitions[0]
        return answer.error, answer.offset, answer.leader_epoch

    assert found(-2) == ((0, 0, 3) if not code else (code, -1, -1))
    assert found(-1) == ((0, 3, 5) if not code else (code, -1, -1))


def test_followers_copy_the_epochs(led: Rig) -> None:
    led.lead(leader_epoch=7, replicas=[1, PEER])
    led.produce(("t", 0, ONE))
    data = bytes(led.fetch(("t", 0, 3, 1 << 20), replica_id=PEER)["t", 0][2])
    assert int.from_bytes(data[12:16], "big") == 7
