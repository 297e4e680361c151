from __future__ import annotations

import json
from typing import Any

import pytest

from kafka08.common import INTERNAL_TOPICS
from tests.rest.world import PLAIN, V1, RestWorld
from zk import znodes
from zk.locations import Location

BASE = "/v3/clusters/c"


@pytest.fixture
def world() -> RestWorld:
    world = RestWorld(rest__cluster__id="c")
    world.topic("t", 2)
    return world


def data(world: RestWorld, path: str) -> list[dict[str, Any]]:
    status, found = world.call("GET", f"{BASE}/{path}")
    assert status == 200, found
    assert found["metadata"] == {"self": f"http://localhost{BASE}/{path}", "next": None}
    entries: list[dict[str, Any]] = found["data"]
    return entries


def settings(world: RestWorld, topic: str = "t") -> dict[str, str]:
    return znodes.decode_topic_config("", world.ensemble.nodes[f"/config/topics/{topic}"].data)


def test_clusters_and_brokers(world: RestWorld) -> None:
    response = world.send("GET", "/v3/clusters/")
    assert response.content_type == PLAIN
    assert response.json is not None
    assert response.json["metadata"]["self"] == "http://localhost/v3/clusters"
    (cluster,) = response.json["data"]
    assert (cluster["kind"], cluster["cluster_id"]) == ("KafkaCluster", "c")
    assert cluster["brokers"] == {"related": f"http://localhost{BASE}/brokers"}
    assert world.call("GET", BASE) == (200, cluster)
    (broker,) = data(world, "brokers")
    assert (broker["broker_id"], broker["host"], broker["port"]) == (0, "b0", 9090)
    assert world.call("GET", f"{BASE}/brokers/0") == (200, broker)
    assert broker["rack"] is None
    placed = znodes.BrokerRegistration("b0", 9090, location=Location("r"))
    world.ensemble.put("/brokers/ids/0", znodes.encode_broker(placed))
    assert data(world, "brokers")[0]["rack"] == "r"
    assert world.call("GET", f"{BASE}/brokers/0")[1]["rack"] == "r"
    assert world.code("GET", f"{BASE}/brokers/7") == (404, 404)
    assert world.code("GET", "/v3/clusters/other/topics") == (404, 404)


def test_a_cluster_has_an_id_without_being_given_one() -> None:
    world = RestWorld()

    def found() -> Any:
        return world.call("GET", "/v3/clusters")[1]["data"][0]["cluster_id"]

    made = found()
    assert len(made) == 22
    assert found() == made
    world.ensemble.put(znodes.CLUSTER_ID, znodes.encode_cluster_id("stored"))
    assert found() == "stored"


def test_a_topic_is_made_grown_and_deleted(world: RestWorld) -> None:
    body = {
        "topic_name": "new",
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "retention.ms", "value": 1000}],
    }
    status, found = world.call("POST", f"{BASE}/topics", body, PLAIN)
    assert status == 201
    assert found["partitions_count"] == 2
    assert settings(world, "new") == {"retention.ms": "1000"}
    path = f"{BASE}/topics/new"
    assert world.call("GET", path) == (200, found)
    assert [each["topic_name"] for each in data(world, "topics")] == ["new", "t"]
    status, found = world.call("PATCH", path, {"partitions_count": 3}, PLAIN)
    assert (status, found["partitions_count"]) == (200, 3)
    assert world.call("DELETE", path) == (204, None)
    assert world.ensemble.below("/admin/delete_topics") == ["new"]
    assert world.call("DELETE", path) == (204, None)


def test_internal_topics_are_named_as_such(world: RestWorld) -> None:
    for name in INTERNAL_TOPICS:
        world.ensemble.put(znodes.topic_path(name), znodes.encode_topic({0: [0]}))
    found = {each["topic_name"]: each["is_internal"] for each in data(world, "topics")}
    assert found == {"t": False, "__consumer_offsets": True, "__transaction_state": True}


def test_replicas_may_be_given(world: RestWorld) -> None:
    placed = [{"partition_id": 0, "broker_ids": [0]}]
    body = {"topic_name": "new", "replicas_assignments": placed}
    assert world.call("POST", f"{BASE}/topics", {**body, "validate_only": True}, PLAIN)[0] == 201
    assert "/brokers/topics/new" not in world.ensemble.nodes
    assert world.call("POST", f"{BASE}/topics", body, PLAIN)[0] == 201
    assert json.loads(world.ensemble.text("/brokers/topics/new"))["partitions"] == {"0": [0]}


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"topic_name": "t"}, (400, 40002)),
        ({"topic_name": "a b"}, (400, 40002)),
        ({"topic_name": "n", "replication_factor": 9}, (400, 40002)),
        ({"topic_name": "n", "configs": [{"name": "no.such", "value": "1"}]}, (400, 40002)),
        ({"topic_name": "n", "configs": [{"name": "retention.ms", "value": "x"}]}, (400, 40002)),
        ({"topic_name": "n", "configs": [{"name": "retention.ms"}]}, (400, 40002)),
        ({"topic_name": "n", "partitions_count": 0}, (422, 422)),
        ({"topic_name": "n", "unknown": 1}, (422, 422)),
        (
            {"topic_name": "n", "replicas_assignments": [{"partition_id": 1, "broker_ids": [0]}]},
            (422, 422),
        ),
        ({}, (422, 422)),
    ],
)
def test_topics_that_are_not_made(
    world: RestWorld, body: dict[str, Any], answer: tuple[int, int]
) -> None:
    before = len(world.ensemble.writes)
    assert world.code("POST", f"{BASE}/topics", body, PLAIN) == answer
    assert len(world.ensemble.writes) == before


def test_bodies_need_a_type(world: RestWorld) -> None:
    body = {"topic_name": "n"}
    for content_type in (None, "text/plain", "application/octet-stream", V1):
        assert world.code("POST", f"{BASE}/topics", body, content_type) == (415, 415)


def test_unknown_topics(world: RestWorld) -> None:
    expected = {
        "error_code": 40403,
        "message": "This server does not host this topic-partition.",
    }
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/configs"),
        ("GET", "/partitions"),
        ("GET", "/partitions/-/reassignment"),
    ):
        assert world.call(method, f"{BASE}/topics/none{path}") == (404, expected)
    assert world.code("GET", f"{BASE}/topics/t/partitions/9") == (404, 404)


def test_settings_of_topics(world: RestWorld) -> None:
    path = f"{BASE}/topics/t/configs"
    assert world.call("PUT", f"{path}/retention.ms", {"value": "5000"}, PLAIN) == (204, None)
    found = {each["name"]: each for each in data(world, "topics/t/configs")}
    assert found["retention.ms"]["value"] == "5000"
    assert found["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert (found["segment.bytes"]["value"], found["segment.bytes"]["is_default"]) == (None, True)
    assert world.call("GET", f"{path}/retention.ms") == (200, found["retention.ms"])
    changes = [
        {"name": "retention.ms", "operation": "DELETE"},
        {"name": "cleanup.policy", "value": "compact"},
    ]
    checked = {"data": changes, "validate_only": True}
    assert world.call("POST", f"{path}:alter", checked, PLAIN) == (204, None)
    assert settings(world) == {"retention.ms": "5000"}
    assert world.call("POST", f"{path}:alter", {"data": changes}, PLAIN) == (204, None)
    assert settings(world) == {"cleanup.policy": "compact"}
    assert world.call("DELETE", f"{path}/cleanup.policy") == (204, None)
    assert settings(world) == {}
    assert world.code("PUT", f"{path}/retention.ms", {"value": "x"}, PLAIN) == (400, 40002)
    assert world.code("PUT", f"{path}/no.such", {"value": "1"}, PLAIN) == (404, 404)
    wrong = {"data": [{"name": "retention.ms", "value": "x"}], "validate_only": True}
    assert world.code("POST", f"{path}:alter", wrong, PLAIN) == (400, 40002)
    wrong = {"data": [{"name": "retention.ms", "operation": "ADD"}]}
    assert world.code("POST", f"{path}:alter", wrong, PLAIN) == (422, 422)
    assert settings(world) == {}


def test_partitions_and_replicas(world: RestWorld) -> None:
    first, second = data(world, "topics/t/partitions")
    base = f"http://localhost{BASE}/topics/t/partitions/0"
    assert first["leader"] == {"related": f"{base}/replicas/0"}
    assert first["metadata"]["self"] == base
    assert first["metadata"]["resource_name"] == "crn:///kafka=c/topic=t/partition=0"
    assert second["partition_id"] == 1
    (replica,) = data(world, "topics/t/partitions/0/replicas")
    assert (replica["broker_id"], replica["is_leader"], replica["is_in_sync"]) == (0, True, True)
    assert world.call("GET", f"{BASE}/topics/t/partitions/0/replicas/0") == (200, replica)
    assert world.code("GET", f"{BASE}/topics/t/partitions/0/replicas/5") == (404, 404)


@pytest.mark.scenario("ops-44")
def test_reassignments(world: RestWorld) -> None:
    path = f"{BASE}/topics/t/partitions/0/reassignment"
    assert world.code("GET", path) == (404, 404)
    assert data(world, "topics/-/partitions/-/reassignment") == []
    world.ensemble.put(
        "/admin/reassign_partitions",
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}',
    )
    world.ensemble.put("/brokers/topics/t", znodes.encode_topic({0: [1, 0], 1: [0]}))
    status, found = world.call("GET", path)
    assert status == 200
    assert (found["adding_replicas"], found["removing_replicas"]) == ([1], [0])
    assert data(world, "topics/-/partitions/-/reassignment") == [found]
    assert data(world, "topics/t/partitions/-/reassignment") == [found]
