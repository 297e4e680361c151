"""Bytes that later clients and Kafka 3.9.1 exchanged, read and written again by both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.protocol import codec
from kafka08.protocol.later_schemas import UnsupportedApiVersionsRequest
from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import RequestDecoder, encode_request
from kafka08.protocol.schemas import FlexibleHeader, RequestHeader
from kafka08.protocol.types import Records, Struct, fields_of

GOLDEN = Path(__file__).parents[1] / "golden" / "modern-vectors.json"
VECTORS = json.loads(GOLDEN.read_text(encoding="utf-8"))["vectors"]
ENGINES = [codec.plain_decoder, *([codec.native.decoder] if codec.native else [])]
ENCODERS = [codec.plain_encoder, *([codec.native.encoder] if codec.native else [])]
decoder = RequestDecoder(APIS)

CORRELATION_ID_BYTES = 4
# Kafka 3.9.1 answers an error with a null set, which version 0 does not know.
NULL_IN_VERSION_0 = "raw: fetch v0 of zstd"


def known(direction: str) -> list[Any]:
    chosen = [
        pytest.param(vector, id=f"{vector['name']} #{number}")
        for number, vector in enumerate(VECTORS)
        if vector["direction"] == direction
        and vector["key"] in APIS
        and vector["version"] in APIS[vector["key"]].versions
        and isinstance(vector["decoded"], dict)
        and "_as_version" not in (vector["decoded"]["body"] or ())
        and vector["name"] != NULL_IN_VERSION_0
    ]
    assert len(chosen) > 150
    return chosen


def leaves(value: Any, version: int) -> Iterator[Any]:
    """The values of the fields in wire order; "records" for message sets."""
    if hasattr(value, "_fields"):
        for field in fields_of(type(value), version):
            inner = getattr(value, field.name)
            is_set = isinstance(field.kind, Records) and field.kind.name == "message set"
            if field.name in ("tags", "header_tags"):
                continue
            yield from ["records"] if is_set else leaves(inner, version)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, version)
    else:
        yield "0x" + value.hex() if isinstance(value, (bytes, memoryview)) else value


def told(decoded: Any) -> Iterator[Any]:
    """The same of a vector's decoded body."""
    if isinstance(decoded, dict):
        for name, inner in decoded.items():
            if not name.startswith("#"):
                yield from ["records"] if name == "Records" else told(inner)
    elif isinstance(decoded, list):
        for inner in decoded:
            yield from told(inner)
    else:
        yield decoded


@pytest.mark.parametrize("vector", known("request"))
def test_requests(vector: dict[str, Any]) -> None:
    key, version = vector["key"], vector["version"]
    frame = bytes.fromhex(vector["hex"])
    header, request = decoder.decode(frame)
    assert header == (key, version, *vector["decoded"]["header"].values())
    assert list(leaves(request, version)) == list(told(vector["decoded"]["body"]))
    assert b"".join(encode_request(request, *header[2:], version))[4:] == frame
    opening = FlexibleHeader if version >= APIS[key].flexible else RequestHeader
    check_engines((Struct(opening), Struct(APIS[key].request, version)), frame, 0)


@pytest.mark.parametrize("vector", known("response"))
def test_responses(vector: dict[str, Any]) -> None:
    layout = Struct(APIS[vector["key"]].response, vector["version"])
    frame = bytes.fromhex(vector["hex"])
    response = check_engines((layout,), frame, CORRELATION_ID_BYTES)[0]
    assert list(leaves(response, layout.version)) == list(told(vector["decoded"]["body"]))


def check_engines(layouts: tuple[Struct, ...], frame: bytes, position: int) -> tuple[Any, ...]:
    """Both engines read the same to the end, and write it again."""
    values: tuple[Any, ...] = ()
    for make in ENGINES:
        *values_read, end = make(layouts)(memoryview(frame), position)
        assert end == len(frame)
        assert not values or values == tuple(values_read)
        values = tuple(values_read)
    for make in ENCODERS:
        assert b"".join(make(layouts)(*values)) == without_tags(frame)[position:]
    return values


def without_tags(frame: bytes) -> bytes:
    """Without the one tagged field that 3.9.1 sends: FinalizedFeaturesEpoch of ApiVersions 3."""
    return frame.replace(bytes.fromhex("0101080000000000000000"), b"\0")


def test_every_version_of_the_vectors_that_is_too_high_is_answered() -> None:
    too_high = [
        vector
        for vector in VECTORS
        if vector["key"] == 18 and vector["direction"] == "request" and vector["version"] > 3
    ]
    assert {vector["version"] for vector in too_high} == {4, 5, 9}
    for vector in too_high:
        header, request = decoder.decode(bytes.fromhex(vector["hex"]))
        assert header == (18, 0, *vector["decoded"]["header"].values())
        assert request == UnsupportedApiVersionsRequest()
