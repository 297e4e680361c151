from __future__ import annotations

from kafka08.client import requests
from kafka08.client.offsets import stored_offsets
from kafka08.client.reading import fetch
from kafka08.common import TopicPartition
from kafka08.protocol import schemas
from kafka08.protocol.requests import decode_request, encode_request

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def round_trip(request: object) -> object:
    frame = b"".join(bytes(part) for part in encode_request(request, 7, "c"))
    return decode_request(memoryview(bytearray(frame[4:])))[1]


def test_fetch_request_nests_by_topic() -> None:
    asked: list[object] = []

    def call(request: object) -> schemas.FetchResponse:
        asked.append(request)
        return schemas.FetchResponse([])

    assert fetch(call, {T0: 5, U0: 6, T1: 7}, 100, max_wait_ms=9, min_bytes=1) == {}
    [request] = asked
    assert request == schemas.FetchRequest(
        -1,
        9,
        1,
        [
            schemas.FetchTopic(
                "t", [schemas.FetchPartition(0, 5, 100), schemas.FetchPartition(1, 7, 100)]
            ),
            schemas.FetchTopic("u", [schemas.FetchPartition(0, 6, 100)]),
        ],
    )
    assert round_trip(request) == request


def test_commit_requests() -> None:
    v0 = requests.commit_request("g", {T0: 5}, "m", version=0)
    v1 = requests.commit_request("g", {T0: 5})
    assert round_trip(v0) == v0
    assert round_trip(v1) == v1
    assert (v1.generation, v1.member_id) == (-1, "")
    assert v1.topics[0].partitions[0] == schemas.OffsetCommitPartition(0, 5, "")


def test_offset_fetch_carries_its_version() -> None:
    asked: list[object] = []

    def call(request: object) -> schemas.OffsetFetchResponse:
        asked.append(request)
        return schemas.OffsetFetchResponse([])

    stored_offsets(call, "g", [T0], version=0)
    stored_offsets(call, "g", [T0, T1])
    old, request = asked
    assert isinstance(old, schemas.OffsetFetchRequestV0)
    assert not isinstance(request, schemas.OffsetFetchRequestV0)
    assert round_trip(request) == request


def test_results_are_flat() -> None:
    response = schemas.OffsetFetchResponse(
        [
            schemas.OffsetFetchTopicResponse(
                "t", [schemas.OffsetFetchPartitionResponse(1, 9, "m", 0)]
            )
        ]
    )
    stored = stored_offsets(lambda request: response, "g", [T1])
    assert stored == {T1: requests.StoredOffset(9, "m", 0)}
