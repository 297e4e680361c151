"""Bytes of transactions that clients and Kafka 3.9.1 exchanged, read and written again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import RequestDecoder, encode_request
from kafka08.protocol.schemas import FlexibleHeader, RequestHeader
from kafka08.protocol.types import Struct
from tests.protocol.test_modern_golden import CORRELATION_ID_BYTES, GOLDEN, check_engines

FRAMES = json.loads((GOLDEN.parent / "transactions-vectors.json").read_text())["frames"]
SERVED = [
    pytest.param(frame, id=f"{frame['api']} {frame['version']} #{number}")
    for number, frame in enumerate(FRAMES)
    if frame["version"] in APIS[frame["key"]].versions
]
decoder = RequestDecoder(APIS)


def test_every_api_of_transactions_is_among_them() -> None:
    found = {frame.values[0]["key"] for frame in SERVED}
    assert found == {0, 1, 2, 9, 10, 22, 24, 25, 26, 27, 28}


@pytest.mark.parametrize("frame", SERVED)
def test_requests(frame: dict[str, Any]) -> None:
    key, version = frame["key"], frame["version"]
    data = bytes.fromhex(frame["request"])
    header, request = decoder.decode(data)
    assert header[:2] == (key, version)
    assert header.client_id == frame["client_id"]
    assert b"".join(encode_request(request, *header[2:], version))[4:] == data
    opening = FlexibleHeader if version >= APIS[key].flexible else RequestHeader
    check_engines((Struct(opening), Struct(APIS[key].request, version)), data, 0)


@pytest.mark.parametrize("frame", SERVED)
def test_responses(frame: dict[str, Any]) -> None:
    layout = Struct(APIS[frame["key"]].response, frame["version"])
    check_engines((layout,), bytes.fromhex(frame["response"]), CORRELATION_ID_BYTES)
