from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import ProtocolError
from kafka08.protocol import codec
from kafka08.protocol import group_schemas as g
from kafka08.protocol import schemas as s
from kafka08.protocol.codec import COPY_BELOW, decode, encode, encode_parts
from kafka08.protocol.types import Struct, minimum_size
from tests.protocol.values import REQUESTS, RESPONSES, FileOf, check_every_cut, values

OTHERS = [s.RequestHeader, s.AnonymousHeader, s.FlexibleHeader, s.OffsetKey, s.OffsetValue]
layouts = st.sampled_from([*REQUESTS, *RESPONSES, *map(Struct, OTHERS)])


@settings(max_examples=150)
@given(data=st.data())
def test_round_trip(data: st.DataObject) -> None:
    schema, version = data.draw(layouts)
    value = data.draw(values(schema, version))
    assert check_every_cut(schema, encode(value, version), version) == value


@given(layout=layouts, data=st.binary(max_size=120))
def test_arbitrary_bytes_raise_nothing_but_protocol_error(layout: Struct, data: bytes) -> None:
    try:
        value, end = decode(layout.schema, data, version=layout.version)
    except ProtocolError:
        return
    assert type(value) is layout.schema
    assert minimum_size(layout) <= end <= len(data)


@given(data=st.data())
def test_damaged_bytes_raise_nothing_but_protocol_error(data: st.DataObject) -> None:
    schema, version = data.draw(layouts)
    damaged = bytearray(encode(data.draw(values(schema, version)), version))
    for _ in range(data.draw(st.integers(1, 3)) if damaged else 0):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    try:
        decode(schema, damaged, version=version)
    except ProtocolError:
        pass


@pytest.mark.parametrize("count", [4, 0x7FFFFFFF])
@pytest.mark.parametrize(
    ("schema", "head"),
    [
        (s.MetadataRequest, b""),
        (s.FetchRequest, b"\xff" * 12),
        (s.FetchTopic, b"\0\1t"),
        (s.OffsetFetchTopic, b"\0\1t"),
        (s.OffsetsPartitionResponse, bytes(6)),
    ],
)
def test_a_count_beyond_the_bytes_left_is_refused(schema: Any, head: bytes, count: int) -> None:
    with pytest.raises(ProtocolError, match="missing"):
        decode(schema, head + struct.pack(">i", count) + bytes(7))


def test_negative_counts_are_empty_arrays() -> None:
    assert decode(s.ProduceResponse, b"\x80\0\0\0") == (s.ProduceResponse([]), 4)
    assert decode(s.OffsetFetchTopic, b"\0\1t\xff\xff\xff\xff")[0] == s.OffsetFetchTopic("t", [])


@pytest.mark.parametrize(
    ("schema", "head"), [(s.MetadataRequest, b""), (g.JoinGroupStubRequest, b"\0\1g" + bytes(4))]
)
def test_but_not_where_0_8_2_2_refuses_them(schema: Any, head: bytes) -> None:
    with pytest.raises(ProtocolError, match="a length of -1"):
        decode(schema, head + b"\xff\xff\xff\xff")


@pytest.mark.parametrize("size", [b"\xff\xff", b"\x80\x00"])
def test_null_strings(size: bytes) -> None:
    assert decode(s.ConsumerMetadataRequest, size) == (s.ConsumerMetadataRequest(""), 2)
    header, _ = decode(s.RequestHeader, bytes(8) + size)
    assert header.client_id is None
    with pytest.raises(ProtocolError, match="a length of"):
        decode(g.HeartbeatRequest, size + bytes(6))


def test_null_and_empty_metadata_differ() -> None:
    for metadata in (None, ""):
        commit = s.OffsetCommitPartition(1, 2, metadata)
        assert decode(s.OffsetCommitPartition, encode(commit))[0] == commit


def test_bad_utf8_is_read_with_replacements() -> None:
    group = decode(s.ConsumerMetadataRequest, b"\0\3a\xffb")[0].group
    assert group == "a\N{REPLACEMENT CHARACTER}b"


def test_a_lone_surrogate_is_written_as_java_does() -> None:
    assert encode(s.ConsumerMetadataRequest("\ud800")) == b"\0\1?"


def test_negative_message_set_size_is_refused() -> None:
    with pytest.raises(ProtocolError, match="a length of -1"):
        decode(s.ProducePartition, bytes(4) + b"\xff\xff\xff\xff")


@pytest.mark.parametrize(("byte", "expected"), [(0, False), (1, True)])
def test_booleans(byte: int, expected: bool) -> None:
    data = bytes(8) + bytes([byte]) + bytes(4)
    assert decode(s.StopReplicaRequest, data)[0].delete_partitions is expected


@pytest.mark.parametrize("byte", [2, 0x7F, 0xFF])
def test_booleans_are_0_or_1(byte: int) -> None:
    with pytest.raises(ProtocolError, match="not a boolean"):
        decode(s.StopReplicaRequest, bytes(8) + bytes([byte]) + bytes(4))


def test_decoded_message_sets_are_writable_slices_of_the_buffer() -> None:
    frame = bytearray(encode(s.ProducePartition(3, memoryview(b"abc"))))
    partition, _ = decode(s.ProducePartition, memoryview(frame))
    partition.message_set[0] = ord("x")
    assert bytes(frame) == b"\0\0\0\3\0\0\0\3xbc"


@pytest.mark.parametrize(
    "value",
    [
        s.ConsumerMetadataRequest("g" * 32768),
        s.ConsumerMetadataRequest("é" * 16384),
        s.ConsumerMetadataRequest(None),  # type: ignore[arg-type]
        g.HeartbeatResponse(1 << 15),
        g.HeartbeatResponse(None),  # type: ignore[arg-type]
        g.JoinGroupStubTopic("t", [1 << 31]),
        s.FetchTopic("t", [s.FetchPartition(0, 1 << 63, 0)]),
    ],
)
def test_values_that_do_not_fit_are_refused(value: Any) -> None:
    with pytest.raises(ProtocolError, match="cannot encode " + type(value).__name__):
        encode(value)


def test_the_longest_string() -> None:
    longest = s.ConsumerMetadataRequest("g" * 32767)
    assert decode(s.ConsumerMetadataRequest, encode(longest)) == (longest, 32769)


def test_parts_keep_file_slices_and_large_sets_as_they_are() -> None:
    sets: list[Any] = [FileOf(10), FileOf(0), b"small", memoryview(bytes(COPY_BELOW)), FileOf(1)]
    response = s.FetchResponse(
        [
            s.FetchTopicResponse("a", [s.FetchPartitionResponse(0, 0, 7, x) for x in sets[:2]]),
            s.FetchTopicResponse("b", [s.FetchPartitionResponse(0, 0, 7, x) for x in sets[2:]]),
        ]
    )
    parts = encode_parts(response)
    assert parts[1] is sets[0]
    assert parts[3] is sets[3]
    assert parts[5] is sets[4]
    assert len(parts) == 6
    as_bytes = b"".join(bytes(len(x)) if isinstance(x, FileOf) else x for x in parts)
    decoded, end = decode(s.FetchResponse, as_bytes)
    assert end == sum(map(len, parts))
    lengths = [len(p.message_set) for topic in decoded.topics for p in topic.partitions]
    assert lengths == [10, 0, 5, COPY_BELOW, 1]


def test_nested_structures_are_laid_out_in_place() -> None:
    class Outer(s.NamedTuple):
        first: s.int32
        inner: s.StopReplicaPartition
        last: s.int16

    Outer.__annotations__.update(first=s.int32, inner=s.StopReplicaPartition, last=s.int16)
    data = b"\0\0\0\1" + b"\0\1t\0\0\0\2" + b"\0\3"
    assert check_every_cut(Outer, data) == (1, ("t", 2), 3)


@pytest.mark.parametrize("make", [codec.plain_decoder, codec.native and codec.native.decoder])
@pytest.mark.parametrize("version", [1, 2])
def test_a_key_type_that_is_left_out_is_a_group(make: Any, version: int) -> None:
    if make is None:
        pytest.skip("kafka08._native is not built: there is no C compiler")
    decode = make((Struct(s.ConsumerMetadataRequest, version),))
    for rest, key_type in ((b"", 0), (b"\0", 0), (b"\1", 1), (b"\1more", 1)):
        found = decode(memoryview(b"\0\2g1" + rest), 0)
        assert found == (s.ConsumerMetadataRequest("g1", key_type), 4 + len(rest[:1]))
    with pytest.raises(ProtocolError, match="1 bytes are missing"):
        decode(memoryview(b"\0\2g"), 0)
