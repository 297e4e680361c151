"""kafka08.client.log_offsets: one request to a leader, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client import log_offsets
from kafka08.common import EARLIEST_TIME, LATEST_TIME, TopicPartition
from kafka08.errors import NotLeaderForPartitionError
from kafka08.protocol import schemas
from kafka08.protocol.requests import encode_request
from tests.fakes import transactional_log
from tests.fakes.cluster import FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("t", 2)
    cluster.append("t", 0, b"a", b"b")
    cluster.starts[T0] = 1
    return cluster


def test_the_beginning_and_the_end(cluster: FakeCluster) -> None:
    call = cluster.channel("b0", 9090).call
    times = {T0: EARLIEST_TIME, T1: LATEST_TIME}
    assert log_offsets.before(call, times).checked() == {T0: 1, T1: 0}
    assert log_offsets.bounds(call, T0) == (1, 2)
    assert len(cluster.sent(schemas.OffsetsRequest)) == 3


def answer(*entries: schemas.OffsetsPartitionResponse) -> Any:
    response = schemas.OffsetsResponse([schemas.OffsetsTopicResponse("t", list(entries))])
    return lambda request: response


def test_a_log_without_such_an_offset_is_in_neither() -> None:
    nothing = schemas.OffsetsPartitionResponse(0, 0, [])
    refused = schemas.OffsetsPartitionResponse(1, 6, [])
    answers = log_offsets.before(answer(nothing, refused), {T0: 5, T1: 5})
    assert answers.values == {}
    assert list(answers.errors) == [T1]
    with pytest.raises(NotLeaderForPartitionError, match=r"No offset of \[t,1\]: "):
        answers.checked()


def test_the_first_message_since_a_time() -> None:
    entry = schemas.OffsetsPartitionResponse(0, 0, [], 20, 3)
    timeless = schemas.OffsetsPartitionResponse(1, 43, [], offset=-1)
    answers = log_offsets.since(answer(entry, timeless), {T0: 5, T1: 5})
    assert answers.checked() == {T0: 3, T1: log_offsets.NO_OFFSET}
    with pytest.raises(NotLeaderForPartitionError):
        log_offsets.since(answer(entry._replace(error=6)), {T0: 5}).checked()


def test_a_time_is_asked_for_in_a_version_that_knows_messages() -> None:
    asked: list[object] = []

    def call(request: object) -> schemas.OffsetsResponse:
        asked.append(request)
        return schemas.OffsetsResponse([])

    log_offsets.since(call, {T0: 5})
    frame = b"".join(bytes(part) for part in encode_request(asked[0], 7))
    assert frame[4:8] == b"\0\2\0\1"  # ListOffsets, version 1
    assert frame.endswith(b"\0\0\0\0\0\0\0\0\0\0\0\5"), "partition and time alone"


def test_the_end_for_readers_of_committed_transactions(cluster: FakeCluster) -> None:
    transactional_log.fill(cluster, T1)
    call = cluster.channel("b0", 9090).call
    assert log_offsets.ends(call, [T0, T1]).checked() == {T0: 2, T1: transactional_log.END}
    found = log_offsets.ends(call, [T0, T1], committed=True).checked()
    assert found == {T0: 2, T1: transactional_log.STABLE}
