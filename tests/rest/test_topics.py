from __future__ import annotations

import threading
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.message.compression import GZIP
from kafka08.producer.partitioners import murmur2_partitioner
from kafka08.protocol import schemas
from tests.rest.world import BINARY_V1, BINARY_V2, JSON_V1, PLAIN, V1, V2, RestWorld


@pytest.fixture
def world() -> RestWorld:
    world = RestWorld()
    world.topic("t", 2)
    return world


def stored(partition: int | None, offset: int | None) -> dict[str, Any]:
    return {"partition": partition, "offset": offset, "error_code": None, "error": None}


# --- metadata


def test_brokers_topics_and_partitions(world: RestWorld) -> None:
    world.topic("a")
    one = {
        "partition": 0,
        "leader": 0,
        "replicas": [{"broker": 0, "leader": True, "in_sync": True}],
    }
    assert world.call("GET", "/") == (200, {})
    assert world.call("POST", "/") == (200, {})
    assert world.call("GET", "/brokers") == (200, {"brokers": [0]})
    assert world.call("GET", "/topics/") == (200, ["a", "t"])
    expected = {"name": "a", "configs": {}, "partitions": [one]}
    assert world.call("GET", "/topics/a") == (200, expected)
    assert world.call("GET", "/topics/t/partitions") == (200, [one, {**one, "partition": 1}])
    assert world.call("GET", "/topics/t/partitions/1/") == (200, {**one, "partition": 1})


@pytest.mark.scenario("ops-32")
def test_unknown_topics_and_partitions(world: RestWorld) -> None:
    world.topic("leaderless", leader=-1)
    assert world.code("GET", "/topics/none") == (404, 40401)
    assert world.code("GET", "/topics/..") == (404, 40401)
    assert world.code("GET", "/topics/none/partitions") == (404, 40401)
    assert world.code("GET", "/topics/none/partitions/0/messages") == (404, 40401)
    assert world.code("GET", "/topics/t/partitions/7") == (404, 40402)
    assert world.code("GET", "/topics/t/partitions/-1") == (404, 40402)
    assert world.code("GET", "/topics/t/partitions/7/messages") == (404, 40402)
    assert world.code("GET", "/topics/leaderless/partitions/0/messages") == (404, 40404)
    assert world.code("GET", "/topics/t/partitions/x") == (404, 404)


def test_zookeeper_away(world: RestWorld) -> None:
    world.zk.down = True
    status, found = world.call("GET", "/topics")
    assert (status, found["error_code"]) == (500, 50001)
    assert found["message"].startswith("Zookeeper error: ")


# --- writing


@pytest.mark.scenario("ops-29")
def test_offsets_come_in_the_order_asked(world: RestWorld) -> None:
    records = [
        {"value": "YQ==", "partition": 1},
        {"key": "a2V5", "value": "Yg==", "partition": 0},
        {"value": None, "key": "a2V5", "partition": 1},
        {"value": "Yw==", "partition": 1},
    ]
    body = {"records": records, "value_schema": None}
    status, found = world.call("POST", "/topics/t", body, BINARY_V1)
    assert status == 200
    assert found["offsets"] == [stored(1, 0), stored(0, 0), stored(1, 1), stored(1, 2)]
    assert (found["key_schema_id"], found["value_schema_id"]) == (None, None)
    assert world.brokers.values("t", 0) == [b"b"]
    assert world.brokers.values("t", 1) == [b"a", None, b"c"]  # null is a tombstone
    assert world.brokers.messages("t", 1)[1].key == b"key"


def test_records_with_the_same_key_are_in_the_partition_of_the_java_producer(
    world: RestWorld,
) -> None:
    body = {"records": [{"key": "a2V5", "value": "YQ=="}] * 3}
    found = world.call("POST", "/topics/t", body, V1)[1]["offsets"]
    assert [each["partition"] for each in found] == [murmur2_partitioner(b"key", 2)] * 3


def test_json_is_stored_as_compact_text(world: RestWorld) -> None:
    value = {"name": "Ö", "list": [1, 2.5, None, True]}
    body = {"records": [{"key": 7, "value": value}]}
    assert world.call("POST", "/topics/t/partitions/1", body, JSON_V1)[0] == 200
    message = world.brokers.messages("t", 1)[0]
    assert message.value == '{"name":"Ö","list":[1,2.5,null,true]}'.encode()
    assert message.key == b"7"


@pytest.mark.scenario("ops-30")
@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"{}", 422, 422),
        (b'{"records":[]}', 422, 422),
        (b'{"records":[{"value":"aGVsbG8=="}]}', 422, 422),
        (b'{"records":[{"value":"a"}]}', 422, 422),
        (b'{"records":[{"value":7}]}', 422, 422),
        (b'{"records":[{"value":"YQ==","more":1}]}', 422, 422),
        (b'{"records":[{"value":"YQ=="}],"more":1}', 422, 422),
        (b'{"records":[{"value":"YQ==","partition":-1}]}', 422, 422),
        (b'{"records":[{"value":"YQ==","partition":true}]}', 422, 422),
        (b'{"records":["YQ=="]}', 422, 422),
        (b"[]", 422, 422),
        (b"", 422, 422),
        (b'{"records":[{"value":"YQ=="}]', 400, 400),
        (b'{"records":[{"value":NaN}]}', 400, 400),
        (b"\xff\xfe", 400, 400),
        (b"[" * 100_000, 400, 400),
    ],
)
def test_wrong_bodies_write_nothing(world: RestWorld, data: bytes, status: int, code: int) -> None:
    response = world.send("POST", "/topics/t", content_type=BINARY_V1, data=data)
    assert response.status_code == status
    assert response.json is not None
    assert response.json["error_code"] == code
    assert world.brokers.sent(schemas.ProduceRequest) == []


def test_text_that_utf_8_does_not_have_is_refused(world: RestWorld) -> None:
    body = {"records": [{"value": "\ud800"}]}
    assert world.code("POST", "/topics/t", body, JSON_V1) == (422, 422)


@pytest.mark.scenario("ops-31")
def test_a_record_that_is_too_large_fails_alone(world: RestWorld) -> None:
    def refuse(port: int, request: Any) -> Any:
        if isinstance(request, schemas.ProduceRequest):
            part = request.topics[0].partitions[0]
            if len(part.message_set) > 1000:
                entry = schemas.ProducePartitionResponse(part.partition, 10, -1)
                return schemas.ProduceResponse([schemas.ProduceTopicResponse("t", [entry])])
        return None

    world.brokers.script = refuse
    large = "YWFh" * 1000
    records = [{"value": value, "partition": 0} for value in ("YQ==", large, "Yg==")]
    status, found = world.call("POST", "/topics/t", {"records": records}, BINARY_V1)
    assert status == 200
    first, second, third = found["offsets"]
    assert (second["partition"], second["offset"], second["error_code"]) == (None, None, 50002)
    assert (first["error_code"], third["error_code"]) == (None, None)
    assert sorted(world.brokers.values("t", 0)) == [b"a", b"b"]  # type: ignore[type-var]


def test_a_record_larger_than_a_request_may_be(world: RestWorld) -> None:
    large = "YWFh" * (400 << 10)
    body = {"records": [{"value": large, "partition": 0}]}
    found = world.call("POST", "/topics/t", body, BINARY_V1)[1]["offsets"][0]
    assert (found["partition"], found["error_code"]) == (None, 50002)
    assert "max.request.size" in found["error"]


@pytest.mark.scenario("ops-32")
def test_writing_to_what_does_not_exist(world: RestWorld) -> None:
    body = {"records": [{"value": "YQ=="}, {"value": "Yg=="}]}
    status, found = world.call("POST", "/topics/none", body, BINARY_V1)
    assert status == 200
    assert [each["error_code"] for each in found["offsets"]] == [50003, 50003]
    assert world.code("POST", "/topics/t/partitions/9", body, BINARY_V1) == (404, 40402)
    assert world.call("POST", "/topics/none/partitions/9", body, BINARY_V1)[0] == 200
    record = {"value": "YQ==", "partition": 9}
    status, found = world.call("POST", "/topics/t", {"records": [record]}, BINARY_V1)
    assert (status, found["offsets"][0]["error_code"]) == (200, 50002)
    assert world.code("POST", "/topics/a%20b", body, BINARY_V1) == (422, 422)


def test_topics_that_settings_leave_out() -> None:
    world = RestWorld(rest__produce__topics="a", rest__consume__topics="a")
    world.topic("t")
    body = {"records": [{"value": "YQ=="}]}
    assert world.code("POST", "/topics/t", body, BINARY_V1) == (403, 403)
    assert world.code("GET", "/topics/t/partitions/0/messages") == (403, 403)
    assert world.brokers.sent(schemas.ProduceRequest) == []


# --- reading by offset


def offsets(found: list[dict[str, Any]]) -> list[int]:
    return [each["offset"] for each in found]


@pytest.mark.scenario("ops-33")
def test_messages_of_a_compressed_set_from_the_offset_on(world: RestWorld) -> None:
    world.brokers.append("t", 0, *[b"%d" % n for n in range(10)])
    world.brokers.append("t", 0, *[b"%d" % n for n in range(10, 20)], codec=GZIP)
    status, found = world.call("GET", "/topics/t/partitions/0/messages?offset=15&count=3")
    assert status == 200
    assert offsets(found) == [15, 16, 17]
    assert found[0] == {"key": None, "value": "MTU=", "partition": 0, "offset": 15}
    assert offsets(world.call("GET", "/topics/t/partitions/0/messages")[1]) == [0]
    path = "/topics/t/partitions/0/messages?offset=18&count=100"
    assert offsets(world.call("GET", path)[1]) == [18, 19]


@pytest.mark.scenario("ops-33")
def test_the_next_message_after_a_gap(world: RestWorld) -> None:
    world.brokers.append("t", 0, *[b"%d" % n for n in range(10)])
    del world.brokers.logs[TopicPartition("t", 0)][3:7]
    path = "/topics/t/partitions/0/messages?offset=3&count=2"
    assert offsets(world.call("GET", path)[1]) == [7, 8]


@pytest.mark.scenario("ops-33")
def test_the_end_of_the_log_and_beyond_it(world: RestWorld) -> None:
    world.brokers.append("t", 0, b"a")
    assert world.call("GET", "/topics/t/partitions/0/messages?offset=1") == (200, [])
    assert world.call("GET", "/topics/t/partitions/0/messages?count=0") == (200, [])
    assert world.code("GET", "/topics/t/partitions/0/messages?offset=2") == (500, 50002)


def test_wrong_queries(world: RestWorld) -> None:
    for query in ("offset=x", "offset=-1", "count=1.5", "count=99999999999999999999999"):
        assert world.code("GET", f"/topics/t/partitions/0/messages?{query}") == (400, 400)


def test_messages_in_json_and_those_that_are_not(world: RestWorld) -> None:
    world.brokers.append("t", 0, b'{"a":1}', b"\xff")
    path = "/topics/t/partitions/0/messages"
    response = world.send("GET", path, Accept=JSON_V1)
    assert response.content_type == JSON_V1
    assert response.json == [{"key": None, "value": {"a": 1}, "partition": 0, "offset": 0}]
    status, found = world.call("GET", f"{path}?offset=1", Accept=JSON_V1)
    assert (status, found["error_code"]) == (500, 50002)
    assert "offset 1 of topic t partition 0" in found["message"]


def test_only_so_many_reads_by_offset_at_a_time(world: RestWorld) -> None:
    with world.cluster.consumer(world.cluster.brokers()[0]):
        assert world.call("GET", "/topics/t/partitions/0/messages")[0] == 200
        with world.cluster.consumer(world.cluster.brokers()[0]):
            assert world.code("GET", "/topics/t/partitions/0/messages") == (503, 50301)
    assert world.call("GET", "/topics/t/partitions/0/messages")[0] == 200


def test_first_and_last_offset_in_v2(world: RestWorld) -> None:
    world.brokers.append("t", 0, b"a", b"b")
    expected = {"beginning_offset": 0, "end_offset": 2}
    assert world.call("GET", "/topics/t/partitions/0/offsets", Accept=V2) == (200, expected)
    body = {"records": [{"value": "YQ=="}]}
    assert world.send("POST", "/topics/t", body, BINARY_V2).content_type == V2
    assert world.send("POST", "/topics/t", body, PLAIN).content_type == V1
    assert threading.active_count() < 100
