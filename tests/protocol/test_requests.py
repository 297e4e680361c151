from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol import schemas as s
from kafka08.protocol.registry import APIS, api_of, request_schema
from kafka08.protocol.requests import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tests.protocol.values import REQUESTS, RESPONSES, check_framing, values

int32s = st.integers(-(2**31), 2**31 - 1)
ALL_REQUESTS = st.sampled_from(REQUESTS).flatmap(values)
ALL_RESPONSES = st.sampled_from(RESPONSES).flatmap(values)


class Slice:
    def __len__(self) -> int:
        return 5


@settings(max_examples=60)
@given(ALL_REQUESTS, int32s, st.none() | st.text(max_size=5))
def test_requests_round_trip(request: Any, correlation_id: int, client_id: str | None) -> None:
    frame = check_framing(b"".join(encode_request(request, correlation_id, client_id)))
    header, decoded = decode_request(memoryview(frame))
    key, version, _ = api_of(request)
    known_id = None if key == 7 else client_id
    assert header == (key, version, correlation_id, known_id)
    assert decoded == request
    assert type(decoded) is type(request)
    assert decode_request(memoryview(frame + b"\0more")) == (header, request)


@settings(max_examples=60)
@given(ALL_RESPONSES, int32s)
def test_responses_round_trip(response: Any, correlation_id: int) -> None:
    frame = check_framing(b"".join(encode_response(correlation_id, response)))
    assert decode_response(type(response), frame) == (correlation_id, response)
    for cut in range(4):
        with pytest.raises(ProtocolError):
            decode_response(type(response), frame[:cut])


@given(st.integers(-1, 13), st.binary(max_size=80))
def test_arbitrary_frames_raise_nothing_but_protocol_error(key: int, data: bytes) -> None:
    try:
        header, request = decode_request(memoryview(struct.pack(">h", key) + data))
    except ProtocolError:
        return
    assert api_of(request)[0] == header.api_key == key


@pytest.mark.parametrize("key", [-1, 13, 16, 18, 32767])
def test_unknown_keys(key: int) -> None:
    with pytest.raises(ProtocolError, match=f"Wrong request type {key}"):
        request_schema(key, 0)


@pytest.mark.parametrize("version", [-1, 1, 7])
def test_versions_are_not_checked(version: int) -> None:
    frame = bytearray(b"".join(encode_request(s.ConsumerMetadataRequest("g"), 4, "c"))[4:])
    struct.pack_into(">h", frame, 2, version)
    expected = ((10, version, 4, "c"), s.ConsumerMetadataRequest("g"))
    assert decode_request(memoryview(frame)) == expected


@pytest.mark.parametrize("version", [-1, 2])
def test_except_on_offset_commit(version: int) -> None:
    assert request_schema(8, 0) is s.OffsetCommitRequestV0
    assert request_schema(8, 1) is s.OffsetCommitRequestV1
    with pytest.raises(ProtocolError, match="Version"):
        request_schema(8, version)


@pytest.mark.parametrize("version", [-1, 1, 2])
def test_offset_fetch_that_is_not_version_0_asks_the_coordinator(version: int) -> None:
    assert request_schema(9, 0) is s.OffsetFetchRequestV0
    assert request_schema(9, version) is s.OffsetFetchRequest


def test_controlled_shutdown_has_no_client_id() -> None:
    frame = b"".join(encode_request(s.ControlledShutdownRequest(3), 9, "ignored"))
    assert frame == bytes.fromhex("0000000c 0007 0000 00000009 00000003")
    assert decode_request(memoryview(frame)[4:]) == ((7, 0, 9, None), (3,))


def test_every_request_and_response_is_found_by_its_api() -> None:
    assert list(APIS) == [*range(13), 15, 19, 20, 32, 33, 37]
    for api in APIS.values():
        for version, (request, response) in api.versions.items():
            assert api_of(request) == (api.key, version, response)
    with pytest.raises(KeyError):
        api_of(s.HeartbeatResponse(0))


def test_response_size_counts_slices() -> None:
    partition = s.FetchPartitionResponse(0, 0, 9, Slice())
    response = s.FetchResponse([s.FetchTopicResponse("t", [partition])])
    head, records = encode_response(-7, response)
    assert records is partition.message_set
    assert struct.unpack_from(">ii", head) == (len(head) - 4 + 5, -7)


@pytest.mark.parametrize("correlation_id", [1 << 31, -(1 << 31) - 1])
def test_a_correlation_id_that_does_not_fit(correlation_id: int) -> None:
    with pytest.raises(ProtocolError, match="cannot encode"):
        encode_request(s.MetadataRequest([]), correlation_id)
