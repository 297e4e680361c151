from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol import schemas as s
from kafka08.protocol.later_schemas import UnsupportedApiVersionsRequest
from kafka08.protocol.registry import APIS, api_of, served_by
from kafka08.protocol.requests import (
    RequestDecoder,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kafka08.protocol.types import Array, Kind, Struct, fields_of
from tests.protocol.values import REQUESTS, RESPONSES, FileOf, check_framing, smallest, values

int32s = st.integers(-(2**31), 2**31 - 1)
later = RequestDecoder(APIS)


@settings(max_examples=60)
@given(st.data(), int32s, st.none() | st.text(max_size=5))
def test_requests_round_trip(
    data: st.DataObject, correlation_id: int, client_id: str | None
) -> None:
    schema, version = data.draw(st.sampled_from(REQUESTS))
    request = data.draw(values(schema, version))
    encoded = encode_request(request, correlation_id, client_id, version)
    frame = check_framing(b"".join(encoded))
    header, decoded = later.decode(memoryview(frame))
    key = api_of(request)[0]
    known_id = None if key == 7 else client_id
    assert header == (key, version, correlation_id, known_id)
    assert decoded == request
    assert type(decoded) is type(request)
    assert later.decode(memoryview(frame + b"\0more")) == (header, request)


@settings(max_examples=60)
@given(st.data(), int32s)
def test_responses_round_trip(data: st.DataObject, correlation_id: int) -> None:
    layout = data.draw(st.sampled_from(RESPONSES))
    response = data.draw(values(*layout))
    encoded = encode_response(correlation_id, response, layout.version)
    frame = check_framing(b"".join(encoded))
    assert decode_response(layout, frame) == (correlation_id, response)
    for cut in range(4):
        with pytest.raises(ProtocolError):
            decode_response(layout, frame[:cut])


@given(st.integers(-1, 13), st.binary(max_size=80))
def test_arbitrary_frames_raise_nothing_but_protocol_error(key: int, data: bytes) -> None:
    try:
        header, request = decode_request(memoryview(struct.pack(">h", key) + data))
    except ProtocolError:
        return
    assert api_of(request)[0] == header.api_key == key


FEW = 3
strict = RequestDecoder({key: api._replace(most_elements=FEW) for key, api in APIS.items()})


def places_of_arrays(kind: Kind) -> Iterator[tuple[str, ...]]:
    """The names of the fields that lead to each array of a value."""
    if isinstance(kind, Array):
        yield ()
        kind = kind.element
    if isinstance(kind, Struct):
        for field in fields_of(*kind):
            for names in places_of_arrays(field.kind):
                yield (field.name, *names)


def with_elements(kind: Kind, names: tuple[str, ...], count: int) -> Any:
    """The smallest value whose array at ``names`` has ``count`` elements."""
    if isinstance(kind, Array):
        if not names:
            return [smallest(kind.element)] * count
        return [with_elements(kind.element, names, count)]
    assert isinstance(kind, Struct)
    name, *further = names
    (field,) = [field for field in fields_of(*kind) if field.name == name]
    return smallest(kind)._replace(**{name: with_elements(field.kind, tuple(further), count)})


ARRAYS = [(layout, names) for layout in REQUESTS for names in places_of_arrays(layout)]


@pytest.mark.parametrize(
    ("layout", "names"),
    ARRAYS,
    ids=[f"{at.schema.__name__}-{at.version}-{'.'.join(names)}" for at, names in ARRAYS],
)
def test_no_request_has_more_elements_than_its_api_allows(
    layout: Struct, names: tuple[str, ...]
) -> None:
    room = FEW - len(names) + 1  # each array around it has one
    for count in (room, room + 1):
        request = with_elements(layout, names, count)
        frame = b"".join(encode_request(request, 1, "", layout.version))[4:]
        if count == room:
            assert strict.decode(frame)[1] == request
        else:
            with pytest.raises(ProtocolError, match="more than 3 elements"):
                strict.decode(frame)


def test_an_array_that_is_too_long_is_not_begun() -> None:
    """The bytes are there: only the number is wrong."""
    count = APIS[3].most_elements
    body = struct.pack(">i", count + 1) + bytes(2 * (count + 1))
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match=f"more than {count} elements"):
            later.decode(request_of(3, 0, body))
        assert tracemalloc.get_traced_memory()[1] < 3 * len(body)
    finally:
        tracemalloc.stop()


def request_of(key: int, version: int, body: bytes = b"") -> memoryview:
    return memoryview(struct.pack(">hhih", key, version, 4, -1) + body)


@pytest.mark.parametrize("key", [-1, 13, 16, 18, 32767])
def test_unknown_keys(key: int) -> None:
    with pytest.raises(ProtocolError, match=f"Wrong request type {key}"):
        decode_request(request_of(key, 0))


@pytest.mark.parametrize("version", [-1, 1, 7])
def test_versions_of_originals_are_not_checked(version: int) -> None:
    """They are read and answered as the last one known."""
    expected = ((10, 0, 4, None), s.ConsumerMetadataRequest("g"))
    assert decode_request(request_of(10, version, b"\0\1g")) == expected


@pytest.mark.parametrize("version", [-1, 2])
def test_except_on_offset_commit(version: int) -> None:
    body = b"\0\1g" + bytes(20)
    assert decode_request(request_of(8, 0, body))[1] == s.OffsetCommitRequest("g", [])
    assert decode_request(request_of(8, 1, body))[1] == s.OffsetCommitRequest("g", [], 0, "")
    with pytest.raises(ProtocolError, match="Version"):
        decode_request(request_of(8, version, body))


@pytest.mark.parametrize("version", [-1, 1, 2])
def test_offset_fetch_that_is_not_version_0_asks_the_coordinator(version: int) -> None:
    body = b"\0\1g" + bytes(4)
    assert decode_request(request_of(9, 0, body))[0].api_version == 0
    assert decode_request(request_of(9, version, body))[0].api_version == 1


@pytest.mark.scenario("modern-4")
@pytest.mark.parametrize("key", [-1, 14, 34, 99])
def test_unknown_keys_close_in_the_modern_table_too(key: int) -> None:
    with pytest.raises(ProtocolError, match="Wrong request type"):
        RequestDecoder({api: APIS[api] for api in APIS if api != 14}).decode(request_of(key, 0))


@pytest.mark.scenario("modern-4")
@pytest.mark.parametrize("key", [key for key in APIS if key != 18])
def test_unknown_versions_close(key: int) -> None:
    for version in (-1, APIS[key].last + 1, 32767):
        with pytest.raises(ProtocolError, match=f"Version {version} is invalid"):
            later.decode(request_of(key, version, bytes(100)))


@pytest.mark.parametrize("version", [-1, 4, 5, 32767])
def test_an_unknown_version_of_api_versions_is_one_to_be_answered(version: int) -> None:
    """In version 0, and whatever its body is."""
    header, request = later.decode(request_of(18, version, b"\xff"))
    assert header == (18, 0, 4, None)
    assert request == UnsupportedApiVersionsRequest()


def test_only_what_has_a_handler_is_served() -> None:
    served = served_by(APIS, {3: 5, 18: 3, 1: 99})
    assert {key: api.last for key, api in served.items()} == {1: 11, 3: 5, 18: 3}
    decoder = RequestDecoder(served)
    decoder.decode(request_of(3, 5, b"\xff\xff\xff\xff\0"))
    for key, version in ((3, 6), (0, 0)):
        with pytest.raises(ProtocolError):
            decoder.decode(request_of(key, version, bytes(100)))


def test_controlled_shutdown_has_no_client_id() -> None:
    frame = b"".join(encode_request(s.ControlledShutdownRequest(3), 9, "ignored"))
    assert frame == bytes.fromhex("0000000c 0007 0000 00000009 00000003")
    assert decode_request(memoryview(frame)[4:]) == ((7, 0, 9, None), (3,))


def test_response_size_counts_slices() -> None:
    partition = s.FetchPartitionResponse(0, 0, 9, FileOf(5))
    response = s.FetchResponse([s.FetchTopicResponse("t", [partition])])
    head, records = encode_response(-7, response)
    assert records is partition.message_set
    assert struct.unpack_from(">ii", head) == (len(head) - 4 + 5, -7)


@pytest.mark.parametrize("correlation_id", [1 << 31, -(1 << 31) - 1])
def test_a_correlation_id_that_does_not_fit(correlation_id: int) -> None:
    with pytest.raises(ProtocolError, match="cannot encode"):
        encode_request(s.MetadataRequest([]), correlation_id)


def test_the_coordinator_asked_for_without_the_type_of_its_key() -> None:
    """As optiopay/kafka 2.1.1 sends it to brokers that serve version 1."""
    frame = bytes.fromhex("000a000100000007") + b"\0\x08optiopay" + b"\0\x02g1"
    header, request = later.decode(frame)
    assert header == (10, 1, 7, "optiopay")
    assert request == s.ConsumerMetadataRequest("g1", 0)
    for version in (0, 1, 2):  # answered in the version that was asked for
        again, found = later.decode(frame[:3] + bytes([version]) + frame[4:])
        assert (again.api_version, found) == (version, request)
