from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from tests.fakes.zookeeper import Session
from tests.rest.world import BINARY_V1, JSON_V1, PLAIN, V1, RestWorld


@pytest.fixture
def world() -> RestWorld:
    world = RestWorld(consumer__instance__timeout__ms="2000", id="one")
    world.topic("t")
    world.brokers.append("t", 0, b"0", b"1", b"2")
    return world


def smallest(world: RestWorld, **fields: Any) -> str:
    return world.create(auto_offset_reset="smallest", **fields)


def read(world: RestWorld, path: str, query: str = "", **headers: str) -> list[int]:
    status, found = world.call("GET", f"{path}/topics/t{query}", **headers)
    assert status == 200, found
    return [each["offset"] for each in found]


def last(offset: int) -> list[dict[str, Any]]:
    return [{"topic": "t", "partition": 0, "consumed": offset, "committed": offset}]


@pytest.mark.scenario("ops-35")
def test_create_read_commit_delete(world: RestWorld) -> None:
    status, found = world.call(
        "POST", "/consumers/g", {"auto.offset.reset": "smallest", "format": "binary"}, V1
    )
    assert status == 200
    assert found["instance_id"].startswith("rest-consumer-one-")
    path = f"/consumers/g/instances/{found['instance_id']}"
    assert found["base_uri"] == f"http://localhost{path}"
    response = world.send("GET", f"{path}/topics/t")
    assert response.content_type == BINARY_V1
    assert response.json == [
        {"key": None, "value": value, "partition": 0, "offset": offset}
        for offset, value in enumerate(["MA==", "MQ==", "Mg=="])
    ]
    assert world.offset("g", "t") is None
    assert world.call("POST", f"{path}/offsets") == (200, last(2))
    assert world.offset("g", "t") == "3"
    assert world.send("DELETE", path).status_code == 204
    assert world.code("DELETE", path) == (404, 40403)
    assert world.code("GET", f"{path}/topics/t") == (404, 40403)
    assert world.ensemble.below("/consumers/g/ids") == []
    assert world.ensemble.below("/consumers/g/owners/t") == []


@pytest.mark.scenario("ops-35")
def test_messages_that_were_not_committed_come_again(world: RestWorld) -> None:
    first = smallest(world)
    assert read(world, first) == [0, 1, 2]
    assert world.send("DELETE", first).status_code == 204
    second = smallest(world)
    assert read(world, second) == [0, 1, 2]
    world.call("POST", f"{second}/offsets")
    world.send("DELETE", second)
    world.brokers.append("t", 0, b"3")
    assert read(world, smallest(world)) == [3]


def test_a_read_without_messages_waits_and_is_empty(world: RestWorld) -> None:
    path = smallest(world)
    assert read(world, path) == [0, 1, 2]
    begin = world.runtime.clock.now
    assert read(world, path) == []
    assert world.runtime.clock.now - begin == pytest.approx(1.0, abs=0.1)


@pytest.mark.scenario("ops-37")
def test_reads_are_limited_by_bytes_and_have_one_message_at_least(world: RestWorld) -> None:
    path = smallest(world)
    assert read(world, path, "?max_bytes=2") == [0, 1]
    world.brokers.append("t", 0, b"x" * 2000)
    assert read(world, path, "?max_bytes=1000") == [2]
    assert read(world, path, "?max_bytes=1000") == [3]
    assert world.call("POST", f"{path}/offsets") == (200, last(3))


def test_a_message_that_is_larger_than_a_fetch() -> None:
    world = RestWorld(fetch__message__max__bytes="500", consumer__request__max__bytes="3000")
    world.topic("t")
    world.brokers.append("t", 0, b"0", b"x" * 2000, b"2")
    path = smallest(world)
    assert read(world, path) == [0, 1, 2]


@pytest.mark.scenario("ops-37")
def test_a_message_that_is_larger_than_the_limit_is_named_on_every_try() -> None:
    world = RestWorld(fetch__message__max__bytes="500", consumer__request__max__bytes="600")
    world.topic("t")
    world.brokers.append("t", 0, b"0", b"x" * 2000, b"2")
    path = smallest(world)
    assert read(world, path) == [0]
    for _ in range(2):
        status, found = world.call("GET", f"{path}/topics/t")
        assert (status, found["error_code"]) == (500, 50002)
        assert "topic t partition 0 at fetch offset 1" in found["message"]
        assert "consumer.request.max.bytes" in found["message"]
    assert world.send("DELETE", path).status_code == 204
    status, found = world.call("GET", "/topics/t/partitions/0/messages?offset=1")
    assert (status, found["error_code"]) == (500, 50002)
    assert "offset 1 of topic t partition 0" in found["message"]


@pytest.mark.scenario("ops-36")
def test_conflicts(world: RestWorld) -> None:
    world.topic("other")
    path = smallest(world, name="me")
    assert world.code("GET", f"{path}/topics/none") == (404, 40401)
    assert read(world, path) == [0, 1, 2]
    assert world.code("GET", f"{path}/topics/other") == (409, 40901)
    assert world.code("POST", "/consumers/g", {"name": "me"}, V1) == (409, 40902)
    assert world.code("GET", f"{path}/topics/t", Accept=JSON_V1) == (406, 40601)
    assert world.call("POST", "/consumers/h", {"name": "me"}, V1)[0] == 200


@pytest.mark.scenario("ops-36")
@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"auto.offset.reset": "bad"}, (422, 42204)),
        ({"auto.offset.reset": "earliest"}, (422, 42204)),
        ({"auto.commit.enable": "maybe"}, (422, 42204)),
        ({"id": "a b"}, (422, 42204)),
        ({"format": "avro"}, (422, 42204)),
        ({"format": "text"}, (422, 422)),
        ({"fetch.min.bytes": 1}, (422, 422)),
        ({"unknown": 1}, (422, 422)),
        ({"name": 1}, (422, 422)),
        ({"name": "x" * 300}, (422, 422)),
    ],
)
def test_wrong_settings_make_no_instance(
    world: RestWorld, body: dict[str, Any], answer: tuple[int, int]
) -> None:
    assert world.code("POST", "/consumers/g", body, V1) == answer
    assert len(world.instances) == 0


def test_a_group_that_zookeeper_cannot_name(world: RestWorld) -> None:
    assert world.code("POST", "/consumers/a%20b") == (422, 42204)


def test_an_instance_without_a_body_or_with_its_id(world: RestWorld) -> None:
    assert world.call("POST", "/consumers/g/")[0] == 200
    status, found = world.call("POST", "/consumers/g", {"id": "me", "name": "you"}, PLAIN)
    assert (status, found["instance_id"]) == (200, "me")
    read(world, "/consumers/g/instances/me")
    assert world.ensemble.below("/consumers/g/ids") == ["g_me"]


def test_the_host_in_base_uri(world: RestWorld) -> None:
    status, found = world.call("POST", "/consumers/g", {"name": "a b"}, V1, Host="h:8082")
    assert found["base_uri"] == "http://h:8082/consumers/g/instances/a%20b"
    named = RestWorld(host__name="proxy")
    status, found = named.call("POST", "/consumers/g", {"name": "n"}, V1, Host="h:8082")
    assert (status, found["base_uri"]) == (200, "http://proxy:8082/consumers/g/instances/n")


def test_json_instances(world: RestWorld) -> None:
    path = smallest(world, format="json")
    assert world.code("GET", f"{path}/topics/t", Accept=BINARY_V1) == (406, 40601)
    response = world.send("GET", f"{path}/topics/t", Accept=JSON_V1)
    assert response.content_type == JSON_V1
    assert response.json is not None
    assert [each["value"] for each in response.json] == [0, 1, 2]


def test_a_message_that_is_not_json_is_named_and_not_lost(world: RestWorld) -> None:
    world.brokers.append("t", 0, b"{")
    path = smallest(world, format="json")
    assert read(world, path, Accept=JSON_V1) == [0, 1, 2]
    for _ in range(2):
        status, found = world.call("GET", f"{path}/topics/t", Accept=JSON_V1)
        assert (status, found["error_code"]) == (500, 50002)
        assert "offset 3" in found["message"]
    assert world.call("POST", f"{path}/offsets") == (200, last(2))


def test_auto_commit_stores_what_was_returned(world: RestWorld) -> None:
    path = smallest(world, auto_commit_enable="true")
    assert read(world, path, "?max_bytes=2") == [0, 1]
    world.send("DELETE", path)
    assert world.offset("g", "t") == "2"


@pytest.mark.scenario("ops-34")
def test_a_group_is_shared_with_a_consumer_of_another_program(world: RestWorld) -> None:
    world.topic("t", 2)
    world.brokers.append("t", 1, b"0", b"1")
    path = smallest(world, id="a")
    read(world, path)
    config = ConsumerConfig(
        group_id="g",
        zookeeper_connect="z",
        consumer_id="b",
        consumer_timeout_ms=0,
        auto_offset_reset="smallest",
    )
    # Rebalances take turns here: another member can wait for the first one's release.
    world.runtime.while_waiting += [lambda: None] * 100
    scala = ConsumerConnector(
        config,
        runtime=world.runtime,
        zk=Session(world.ensemble),
        channel=world.brokers.channel,
    )
    world.runtime.while_waiting.clear()
    scala.create_message_streams({"t": 1})
    read(world, path)
    assert world.ensemble.below("/consumers/g/ids") == ["g_a", "g_b"]
    owners = {
        number: world.ensemble.text(f"/consumers/g/owners/t/{number}") for number in ("0", "1")
    }
    assert owners == {"0": "g_a-0", "1": "g_b-0"}
    scala.close()


@pytest.mark.scenario("ops-38")
def test_idle_instances_leave_their_groups(world: RestWorld) -> None:
    idle, used = smallest(world, name="idle"), smallest(world, name="used")
    read(world, idle)
    for _ in range(4):
        world.runtime.clock.advance(0.6)
        read(world, used)
        world.instances.end_idle()
    assert world.code("GET", f"{idle}/topics/t") == (404, 40403)
    assert world.call("GET", f"{used}/topics/t")[0] == 200
    assert len(world.ensemble.below("/consumers/g/ids")) == 1


@pytest.mark.scenario("ops-38")
def test_a_read_in_progress_is_not_ended_as_idle(world: RestWorld) -> None:
    path = smallest(world)
    read(world, path)
    world.runtime.while_waiting = [lambda: world.runtime.clock.advance(10)]
    with world.instances.use("g", path.rpartition("/")[2]):
        world.runtime.clock.advance(10)
        world.instances.end_idle()
    assert len(world.instances) == 1


@pytest.mark.scenario("ops-39")
def test_the_number_of_instances_is_limited() -> None:
    world = RestWorld(consumer__instances__max="3", consumer__instances__group__max="2")
    paths = [world.create("g"), world.create("g")]
    assert world.code("POST", "/consumers/g") == (429, 429)
    world.create("h")
    assert world.code("POST", "/consumers/i") == (429, 429)
    world.send("DELETE", paths[0])
    world.create("g")


def test_the_number_of_reads_at_a_time_is_limited(world: RestWorld) -> None:
    full = RestWorld(consumer__threads="1")
    full.topic("t")
    first, second = full.create(), full.create()
    nested: list[Callable[[], Any]] = [lambda: codes.append(full.code("GET", f"{second}/topics/t"))]
    codes: list[tuple[int, int]] = []
    full.runtime.while_waiting = [lambda: nested.pop()()]
    full.call("GET", f"{first}/topics/t")
    assert codes == [(429, 429)]
    assert full.call("GET", f"{second}/topics/t")[0] == 200


def test_an_instance_whose_join_failed_can_try_again(world: RestWorld) -> None:
    path = smallest(world)
    world.brokers.failures = []
    blocked = TopicPartition("t", 0)
    world.ensemble.put("/consumers/g/offsets/t/0", b"nonsense")
    status, found = world.call("GET", f"{path}/topics/t")
    assert (status, found["error_code"]) == (500, 50002)
    world.ensemble.put("/consumers/g/offsets/t/0", b"1")
    assert read(world, path) == [1, 2]
    assert blocked in world.brokers.logs


def test_the_end_leaves_all_groups(world: RestWorld) -> None:
    for name in ("a", "b"):
        read(world, smallest(world, name=name), "")
    world.instances.close(5)
    assert world.ensemble.below("/consumers/g/ids") == []
    assert world.code("POST", "/consumers/g") == (503, 503)


def test_heads_read_nothing(world: RestWorld) -> None:
    path = smallest(world)
    assert world.send("HEAD", f"{path}/topics/t").status_code == 405
    assert world.send("HEAD", "/topics").status_code == 200
