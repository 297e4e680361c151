from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from tests.fakes import transactional_log
from tests.rest.world import BINARY_V2, JSON_V2, V1, V2, RestWorld

ZERO = {"topic": "t", "partition": 0}


@pytest.fixture
def world() -> RestWorld:
    world = RestWorld()
    world.topic("t")
    world.brokers.append("t", 0, *[b"%d" % n for n in range(10)])
    return world


def create(world: RestWorld, **fields: Any) -> str:
    settings = {"auto_offset_reset": "earliest", "auto_commit_enable": "false", **fields}
    return world.create(type=V2, **settings)


def post(world: RestWorld, path: str, body: Any) -> None:
    response = world.send("POST", path, body, V2)
    assert response.status_code == 204, response.json
    assert response.data == b""


def assigned(world: RestWorld, **fields: Any) -> str:
    path = create(world, **fields)
    post(world, f"{path}/assignments", {"partitions": [ZERO]})
    return path


def subscribed(world: RestWorld, **fields: Any) -> str:
    path = create(world, **fields)
    post(world, f"{path}/subscription", {"topics": ["t"]})
    return path


def read(world: RestWorld, path: str, query: str = "") -> list[int]:
    status, found = world.call("GET", f"{path}/records{query}", Accept=BINARY_V2)
    assert status == 200, found
    return [each["offset"] for each in found]


def committed(world: RestWorld, path: str) -> list[dict[str, Any]]:
    body = {"partitions": [ZERO]}
    status, found = world.call("GET", f"{path}/offsets", body, V2, Accept=V2)
    assert status == 200
    offsets: list[dict[str, Any]] = found["offsets"]
    return offsets


@pytest.mark.scenario("ops-42")
@pytest.mark.parametrize("begin", [assigned, subscribed])
def test_the_offset_posted_is_that_of_the_last_message(world: RestWorld, begin: Any) -> None:
    path = begin(world)
    assert committed(world, path) == []
    body = {"offsets": [{**ZERO, "offset": 4}]}
    assert world.call("POST", f"{path}/offsets", body, V2) == (200, [])
    assert committed(world, path) == [{**ZERO, "offset": 5, "metadata": ""}]
    assert read(world, path) == [5, 6, 7, 8, 9]


@pytest.mark.scenario("ops-42")
@pytest.mark.parametrize("begin", [assigned, subscribed])
def test_positions(world: RestWorld, begin: Any) -> None:
    path = begin(world)
    assert len(read(world, path)) == 10
    post(world, f"{path}/positions", {"offsets": [{**ZERO, "offset": 5}]})
    assert read(world, path) == [5, 6, 7, 8, 9]
    post(world, f"{path}/positions/beginning", {"partitions": [ZERO]})
    assert read(world, path, "?max_bytes=3") == [0, 1, 2]
    post(world, f"{path}/positions/end", {"partitions": [ZERO]})
    assert read(world, path) == []
    world.brokers.append("t", 0, b"10")
    assert read(world, path) == [10]


@pytest.mark.parametrize("begin", [assigned, subscribed])
def test_without_a_body_all_that_was_read_is_committed(world: RestWorld, begin: Any) -> None:
    path = begin(world)
    assert read(world, path, "?max_bytes=3") == [0, 1, 2]
    assert world.call("POST", f"{path}/offsets", type=V2) == (200, [])
    assert committed(world, path) == [{**ZERO, "offset": 3, "metadata": ""}]
    assert world.send("DELETE", path).status_code == 204
    assert read(world, begin(world)) == [3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("begin", [assigned, subscribed])
def test_auto_commit_is_the_default(world: RestWorld, begin: Any) -> None:
    path = begin(world, auto_commit_enable=None)
    assert read(world, path, "?max_bytes=3") == [0, 1, 2]
    world.send("DELETE", path)
    assert read(world, begin(world)) == [3, 4, 5, 6, 7, 8, 9]


def test_records_have_their_topic(world: RestWorld) -> None:
    path = assigned(world, format="json")
    response = world.send("GET", f"{path}/records?max_bytes=1", Accept=JSON_V2)
    assert response.content_type == JSON_V2
    assert response.json == [{"topic": "t", "key": None, "value": 0, "partition": 0, "offset": 0}]
    assert world.code("GET", f"{path}/records", Accept=BINARY_V2) == (406, 40601)


@pytest.mark.scenario("ops-43")
def test_a_pattern_takes_topics_that_come_later(world: RestWorld) -> None:
    path = create(world, auto_commit_enable=None)
    post(world, f"{path}/subscription", {"topic_pattern": "t.*"})
    assert world.call("GET", f"{path}/subscription") == (200, {"topics": ["t"]})
    assert len(read(world, path)) == 10
    world.topic("t2")
    world.brokers.append("t2", 0, b"x")
    found = world.call("GET", f"{path}/records")[1]
    assert [(each["topic"], each["offset"]) for each in found] == [("t2", 0)]
    assert world.call("GET", f"{path}/subscription") == (200, {"topics": ["t", "t2"]})


@pytest.mark.scenario("ops-43")
def test_what_excludes_each_other(world: RestWorld) -> None:
    both = {"topics": ["t"], "topic_pattern": "t"}
    path = create(world)
    assert world.code("POST", f"{path}/subscription", both, V2) == (409, 40903)
    post(world, f"{path}/subscription", {"topics": ["t"]})
    partitions = {"partitions": [ZERO]}
    assert world.code("POST", f"{path}/assignments", partitions, V2) == (409, 40903)
    other = assigned(world)
    assert world.code("POST", f"{other}/subscription", {"topics": ["t"]}, V2) == (409, 40903)
    assert world.send("DELETE", f"{path}/subscription").status_code == 204
    post(world, f"{path}/assignments", partitions)


@pytest.mark.scenario("ops-43")
def test_positions_of_what_is_not_assigned(world: RestWorld) -> None:
    one = {"topic": "t", "partition": 1}
    for path in (assigned(world), subscribed(world), create(world)):
        body: dict[str, Any] = {"offsets": [{**one, "offset": 0}]}
        assert world.code("POST", f"{path}/positions", body, V2) == (409, 40903)
        body = {"partitions": [one]}
        assert world.code("POST", f"{path}/positions/end", body, V2) == (409, 40903)
    assert world.code("GET", f"{create(world)}/records") == (409, 40903)


def test_assignments(world: RestWorld) -> None:
    world.topic("t", 2)
    path = create(world)
    assert world.call("GET", f"{path}/assignments") == (200, {"partitions": []})
    post(world, f"{path}/assignments", {"partitions": [ZERO]})
    assert read(world, path, "?max_bytes=2") == [0, 1]
    both = {"partitions": [ZERO, {"topic": "t", "partition": 1}]}
    post(world, f"{path}/assignments", both)
    assert world.call("GET", f"{path}/assignments/") == (200, both)
    assert read(world, path, "?max_bytes=1") == [2]  # goes on where it was
    wrong = {"partitions": [{"topic": "t", "partition": 9}]}
    assert world.code("POST", f"{path}/assignments", wrong, V2) == (404, 40402)


@pytest.mark.scenario("ops-43")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("subscription", {"topics": "t"}),
        ("subscription", {"topics": []}),
        ("subscription", {"topics": [1]}),
        ("subscription", {}),
        ("subscription", {"topic_pattern": "("}),
        ("subscription", {"topic_pattern": ""}),
        ("assignments", {"partitions": [{"topic": "t"}]}),
        ("assignments", {"partitions": [{"topic": "t", "partition": "0"}]}),
        ("positions", {"offsets": [ZERO]}),
        ("positions", {"offsets": [{**ZERO, "offset": -1}]}),
        ("offsets", {"offsets": "all"}),
        ("offsets", {"positions": []}),
    ],
)
def test_wrong_bodies(world: RestWorld, path: str, body: Any) -> None:
    instance = create(world)
    assert world.code("POST", f"{instance}/{path}", body, V2) == (422, 422)


def test_offsets_of_no_partitions(world: RestWorld) -> None:
    assert world.code("GET", f"{assigned(world)}/offsets") == (404, 40402)


def test_instances_belong_to_their_version(world: RestWorld) -> None:
    first, second = world.create(type=V1), create(world)
    assert world.code("GET", f"{first}/records") == (404, 40403)
    assert world.code("GET", f"{second}/topics/t") == (404, 40403)
    assert world.code("POST", f"{first}/subscription", {"topics": ["t"]}, V2) == (404, 40403)
    assert world.code("POST", f"{second}/subscription", {"topics": ["t"]}, V1) == (415, 415)
    assert world.call("POST", f"{first}/offsets")[0] == 200
    assert world.code("POST", "/consumers/g/instances/none/offsets") == (404, 40403)


@pytest.mark.parametrize(
    "fields",
    [
        {"fetch.min.bytes": -2},
        {"fetch.min.bytes": 10_000_001},
        {"fetch.min.bytes": "x"},
        {"consumer.request.timeout.ms": -1},
    ],
)
def test_settings_out_of_bounds(world: RestWorld, fields: dict[str, Any]) -> None:
    assert world.code("POST", "/consumers/g", fields, V2) == (422, 40001)


def test_the_wait_is_the_shorter_of_the_two(world: RestWorld) -> None:
    path = assigned(world, consumer_request_timeout_ms=400)
    assert len(read(world, path)) == 10
    for query, seconds in (("", 0.4), ("?timeout=100", 0.1), ("?timeout=9000", 0.4)):
        begin = world.runtime.clock.now
        assert read(world, path, query) == []
        assert world.runtime.clock.now - begin == pytest.approx(seconds, abs=0.06)


def test_a_read_waits_for_the_bytes_that_were_asked_for(world: RestWorld) -> None:
    path = assigned(world, fetch_min_bytes=12)
    more = [lambda: world.brokers.append("t", 0, b"10")]
    world.runtime.while_waiting = [lambda: None] * 8 + more  # type: ignore[list-item]
    assert read(world, path) == list(range(11))


@pytest.mark.parametrize("begin", [assigned, subscribed])
def test_an_instance_may_read_committed_transactions_alone(begin: Any) -> None:
    everything = [0, 1, 2, 3, 6, 8, 10, 11]  # without the markers
    of_committed = [offset for offset, _ in transactional_log.COMMITTED]
    cases = [
        ({}, {}, everything),
        ({}, {"isolation_level": "read_committed"}, of_committed),
        ({"isolation__level": "read_committed"}, {}, of_committed),
        (
            {"isolation__level": "read_committed"},
            {"isolation_level": "read_uncommitted"},
            everything,
        ),
    ]
    for settings, fields, expected in cases:
        world = RestWorld(**settings)
        world.topic("t")
        transactional_log.fill(world.brokers, TopicPartition("t", 0))
        assert read(world, begin(world, **fields)) == expected


def test_an_isolation_that_there_is_not(world: RestWorld) -> None:
    for value in ("committed", "", 1):
        fields = {"isolation.level": value}
        assert world.call("POST", "/consumers/g", fields, V2)[0] == 422, value
