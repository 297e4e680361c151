"""Bytes that independent client libraries wrote, read and written again."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol.registry import ORIGINAL_APIS, api_of
from kafka08.protocol.requests import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kafka08.protocol.schemas import OffsetKey, OffsetValue, RequestHeader
from kafka08.protocol.types import Struct
from tests.protocol.values import as_json, check_every_cut, check_framing

GOLDEN = Path(__file__).parents[1] / "golden" / "vectors.json"
VECTORS = json.loads(GOLDEN.read_text(encoding="utf-8"))["vectors"]

# Names the vectors have for our fields.
OUR_NAMES = {
    "consumer_id": "member_id",
    "fetch_offset": "offset",
    "generation_id": "generation",
    "partition_states": "partitions",
    "live_leaders": "leaders",
    "alive_brokers": "live_brokers",
}


def vectors(*directions: str, known: bool = True) -> list[Any]:
    chosen = [v for v in VECTORS if v["direction"] in directions and known is ("expect" not in v)]
    assert chosen
    return [pytest.param(v, id=v["name"]) for v in chosen]


def ours(decoded: Any) -> Any:
    if isinstance(decoded, list):
        return [ours(inner) for inner in decoded]
    if not isinstance(decoded, dict):
        return decoded
    if "coordinator" in decoded:
        at = decoded["coordinator"]
        more = {"coordinator_id": at["node_id"], "host": at["host"], "port": at["port"]}
        return {"error": decoded["error"], **more}
    return {
        OUR_NAMES.get(name, name): shallow_entries(inner) if name == "message_set" else ours(inner)
        for name, inner in decoded.items()
    }


def shallow_entries(decoded: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    return [
        (entry["offset"], entry["size"], entry["crc"])
        if "crc" in entry
        else (entry["partial_bytes"],)
        for entry in decoded
    ]


def walk(message_set: bytes) -> list[tuple[int, ...]]:
    entries: list[tuple[int, ...]] = []
    position = 0
    while position < len(message_set):
        if len(message_set) - position < 16:
            return [*entries, (len(message_set) - position,)]
        offset, size, crc = struct.unpack_from(">qiI", message_set, position)
        if position + 12 + size > len(message_set):
            return [*entries, (len(message_set) - position,)]
        entries.append((offset, size, crc))
        position += 12 + size
    return entries


def walked(value: Any) -> Any:
    """as_json, but message sets as their shallow entries."""
    if isinstance(value, dict):
        return {
            name: walk(bytes.fromhex(inner)) if name == "message_set" else walked(inner)
            for name, inner in value.items()
        }
    return [walked(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.scenario("modern-5")
@pytest.mark.parametrize("vector", vectors("request"))
def test_requests(vector: dict[str, Any]) -> None:
    frame = bytes.fromhex(vector["hex"])
    header, request = decode_request(check_framing(frame))
    version = vector["api_version"]
    assert api_of(request)[0] == vector["api_key"]
    assert header._asdict() == {"client_id": None, **vector["decoded"]["header"]}
    assert walked(as_json(request, version)) == ours(vector["decoded"]["body"])
    again = encode_request(request, header.correlation_id, header.client_id, version)
    assert b"".join(again) == frame
    for cut in range(len(frame) - 4):
        with pytest.raises(ProtocolError):
            decode_request(frame[4 : 4 + cut])


@pytest.mark.scenario("modern-5")
@pytest.mark.parametrize("vector", vectors("response"))
def test_responses(vector: dict[str, Any]) -> None:
    frame = bytes.fromhex(vector["hex"])
    layout = Struct(ORIGINAL_APIS[vector["api_key"]].response, vector["api_version"])
    correlation_id, response = decode_response(layout, check_framing(frame))
    assert correlation_id == vector["decoded"]["header"]["correlation_id"]
    assert walked(as_json(response, layout.version)) == ours(vector["decoded"]["body"])
    assert b"".join(encode_response(correlation_id, response, layout.version)) == frame
    check_every_cut(layout.schema, frame[8:], layout.version)


@pytest.mark.parametrize("vector", vectors("request", known=False))
def test_keys_and_versions_that_close(vector: dict[str, Any]) -> None:
    frame = check_framing(bytes.fromhex(vector["hex"]))
    with pytest.raises(ProtocolError, match=r"Wrong request type 1\d|Version 2 is invalid"):
        decode_request(frame)


@pytest.mark.parametrize("vector", vectors("offsets_topic_key", "offsets_topic_value"))
def test_stored_offsets(vector: dict[str, Any]) -> None:
    schema = OffsetKey if vector["direction"] == "offsets_topic_key" else OffsetValue
    assert as_json(check_every_cut(schema, bytes.fromhex(vector["hex"]))) == vector["decoded"]


def test_a_header_alone_is_what_the_unknown_key_carries() -> None:
    vector = next(v for v in VECTORS if v["name"] == "list_groups_req_v0_unknown_key")
    header = check_every_cut(RequestHeader, bytes.fromhex(vector["hex"])[4:])
    assert header._asdict() == vector["decoded"]["header"]
