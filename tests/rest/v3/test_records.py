"""kafka08.rest.v3.records."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.rest.world import PLAIN, RestWorld

RECORDS = "/v3/clusters/c/topics/t/records"


def world_with(**settings: str) -> RestWorld:
    world = RestWorld(rest__cluster__id="c", **settings)
    world.topic("t", 2)
    return world


def post(world: RestWorld, body: str | bytes) -> tuple[int, list[Any]]:
    answer = world.client.post(RECORDS, data=body, content_type=PLAIN)
    return answer.status_code, [json.loads(line) for line in answer.text.splitlines()]


def one(world: RestWorld, **fields: object) -> tuple[int, Any]:
    status, [found] = post(world, json.dumps(fields))
    return status, found


@pytest.mark.parametrize(
    ("kind", "data", "stored"),
    [
        ("JSON", {"a": [1, "é"]}, '{"a":[1,"é"]}'.encode()),
        ("STRING", "é", "é".encode()),
        ("BINARY", base64.b64encode(b"\xff").decode(), b"\xff"),
        ("json", "text", b'"text"'),
    ],
)
def test_each_type(kind: str, data: object, stored: bytes) -> None:
    world = world_with()
    part = {"type": kind, "data": data}
    assert one(world, partition_id=1, key=part, value=part) == (
        200,
        {
            "error_code": 200,
            "cluster_id": "c",
            "topic_name": "t",
            "partition_id": 1,
            "offset": 0,
            "timestamp": None,
            "key": {"type": kind.upper(), "size": len(stored)},
            "value": {"type": kind.upper(), "size": len(stored)},
        },
    )
    [message] = world.brokers.messages("t", 1)
    assert (message.key, message.value) == (stored, stored)


def test_nulls() -> None:
    world = world_with()
    status, found = one(world, partition_id=0, key={"type": "STRING", "data": "k"}, value=None)
    assert (status, found["value"]) == (200, None)
    assert one(world, partition_id=0, value={"type": "JSON", "data": None})[1]["value"] is None
    assert [each.value for each in world.brokers.messages("t", 0)] == [None, None]


def test_headers_and_a_time() -> None:
    world = world_with(**{"api.versions.request": "true"})
    headers = [{"name": "trace", "value": "aWQ="}, {"name": "none"}]
    value = {"type": "STRING", "data": "v"}
    status, found = one(
        world, partition_id=0, headers=headers, value=value, timestamp="2026-11-29T10:30:00+01:00"
    )
    assert (status, found["timestamp"]) == (200, "2026-11-29T09:30:00.000Z")
    [message] = world.brokers.messages("t", 0)
    assert message.headers == (("trace", b"id"), ("none", None))
    assert message.timestamp == 1795944600000


def test_headers_need_a_producer_that_sends_them() -> None:
    world = world_with()
    status, found = one(world, partition_id=0, headers=[{"name": "a", "value": "aWQ="}])
    assert status == 500
    assert "api.versions.request=true" in found["message"]
    assert world.brokers.messages("t", 0) == []


def test_several_records_in_a_body() -> None:
    """As of a client that goes on sending: an answer for each, in their order."""
    world = world_with()
    record = json.dumps({"partition_id": 0, "value": {"type": "STRING", "data": "v"}})
    wrong = json.dumps({"partition_id": 0, "value": {"type": "AVRO", "data": "v"}})
    status, found = post(world, f"{record}\n{wrong}{record} {record}")
    assert status == 200
    assert [each["error_code"] for each in found] == [200, 422, 200, 200]
    assert [each.get("offset") for each in found] == [0, None, 1, 2]
    assert "registry of schemas" in found[1]["message"]


def test_what_came_before_nonsense_is_stored() -> None:
    world = world_with()
    record = json.dumps({"partition_id": 0, "value": {"type": "STRING", "data": "v"}})
    status, found = post(world, f"{record}{{{record}")
    assert (status, [each["error_code"] for each in found]) == (200, [200, 400])
    assert len(world.brokers.messages("t", 0)) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 422),
        (" ", 422),
        ("[]", 422),
        ("{", 400),
        ("\udcff".encode("utf-8", "surrogatepass"), 400),
        ("[" * 100_000, 400),
        ('{"value": {"type": "JSON", "data": NaN}}', 400),
        ('{"value": "text"}', 422),
        ('{"value": {"data": 1}}', 422),
        ('{"value": {"type": "BINARY", "data": "*"}}', 422),
        ('{"value": {"type": "STRING", "data": 1}}', 422),
        ('{"partition_id": -1}', 422),
        ('{"partition_id": "0"}', 422),
        ('{"unknown": 0}', 422),
        ('{"timestamp": "yesterday"}', 422),
        ('{"timestamp": "2026-11-29T10:30:00"}', 422),
        ('{"headers": [{"value": "aWQ="}]}', 422),
        ('{"headers": [{"name": "a", "value": "*"}]}', 422),
        ('{"headers": "a"}', 422),
    ],
)
def test_a_wrong_record_is_refused_and_not_stored(body: str | bytes, status: int) -> None:
    world = world_with()
    found = world.client.post(RECORDS, data=body, content_type=PLAIN)
    assert (found.status_code, found.get_json(force=True)["error_code"]) == (status, status)
    assert not world.brokers.messages("t", 0) and not world.brokers.messages("t", 1)


def test_a_partition_that_does_not_exist() -> None:
    status, found = one(world_with(), partition_id=7, value={"type": "STRING", "data": "v"})
    assert (status, found["error_code"]) == (500, 50002)
    assert "7" in found["message"]


def test_who_may_write_where() -> None:
    body = {"value": {"type": "STRING", "data": "v"}}
    world = world_with(rest__produce__topics="other")
    assert world.code("POST", RECORDS, body, PLAIN) == (403, 403)
    world = world_with(rest__read__only="true")
    assert world.code("POST", RECORDS, body, PLAIN)[0] == 403
    path = "/v3/clusters/other/topics/t/records"
    assert world_with().code("POST", path, body, PLAIN) == (404, 404)
    assert world_with().code("POST", "/v3/clusters/c/topics/..%21/records", body, PLAIN) == (
        422,
        422,
    )
