"""Settings of brokers, which real handlers of a broker serve in place of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rest.v3.served import served_by
from tests.rest.world import PLAIN, RestWorld
from tests.server.admin_support import AdminRig
from zk import znodes

BASE = "/v3/clusters/c"
CONFIGS = f"{BASE}/brokers/0/configs"
COMMON = f"{BASE}/broker-configs"
RATE = "leader.replication.throttled.rate"


@pytest.fixture
def world(tmp_path: Path) -> RestWorld:
    return served_by(AdminRig(tmp_path, later=True, broker_id=0))


def data(world: RestWorld, path: str) -> dict[str, Any]:
    status, found = world.call("GET", path)
    assert status == 200, found
    assert found["metadata"] == {"self": f"http://localhost{path}", "next": None}
    return {each["name"]: each for each in found["data"]}


def test_settings_of_a_broker(world: RestWorld) -> None:
    found = data(world, CONFIGS)
    assert found["num.partitions"] == {
        "kind": "KafkaBrokerConfig",
        "metadata": {
            "self": f"http://localhost{CONFIGS}/num.partitions",
            "resource_name": "crn:///kafka=c/broker=0/config=num.partitions",
        },
        "cluster_id": "c",
        "broker_id": 0,
        "name": "num.partitions",
        "value": "2",
        "is_default": False,
        "is_read_only": True,
        "is_sensitive": False,
        "source": "STATIC_BROKER_CONFIG",
        "synonyms": [{"name": "num.partitions", "value": "2", "source": "STATIC_BROKER_CONFIG"}],
    }
    assert (found[RATE]["source"], found[RATE]["is_default"]) == ("DEFAULT_CONFIG", True)
    assert world.call("GET", f"{CONFIGS}/{RATE}") == (200, found[RATE])
    assert data(world, f"{BASE}/brokers/-/configs") == found
    assert world.call("GET", f"{BASE}/brokers/0")[1]["configs"] == {
        "related": f"http://localhost{CONFIGS}"
    }


def test_a_setting_of_a_broker_is_changed_and_reset(world: RestWorld) -> None:
    assert world.call("PUT", f"{CONFIGS}/{RATE}", {"value": 5000}, PLAIN) == (204, None)
    found = data(world, CONFIGS)[RATE]
    assert (found["value"], found["source"]) == ("5000", "DYNAMIC_BROKER_CONFIG")
    assert [each["source"] for each in found["synonyms"]] == [
        "DYNAMIC_BROKER_CONFIG",
        "DEFAULT_CONFIG",
    ]
    assert world.call("DELETE", f"{CONFIGS}/{RATE}") == (204, None)
    assert data(world, CONFIGS)[RATE]["source"] == "DEFAULT_CONFIG"


def test_settings_of_all_brokers(world: RestWorld) -> None:
    assert data(world, COMMON) == {}
    assert world.call("PUT", f"{COMMON}/{RATE}", {"value": "7"}, PLAIN) == (204, None)
    found = data(world, COMMON)[RATE]
    assert (found["kind"], found["config_type"]) == ("KafkaClusterConfig", "BROKER")
    assert found["metadata"] == {
        "self": f"http://localhost{COMMON}/{RATE}",
        "resource_name": f"crn:///kafka=c/broker-config={RATE}",
    }
    assert (found["value"], found["source"]) == ("7", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert world.call("GET", f"{COMMON}/{RATE}") == (200, found)
    assert data(world, CONFIGS)[RATE]["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert world.call("DELETE", f"{COMMON}/{RATE}") == (204, None)
    assert world.code("GET", f"{COMMON}/{RATE}") == (404, 404)


def test_several_settings_at_once(world: RestWorld) -> None:
    other = "follower.replication.throttled.rate"
    set_both = {"data": [{"name": RATE, "value": "1"}, {"name": other, "value": "2"}]}
    checked = {**set_both, "validate_only": True}
    for rule in (CONFIGS, COMMON):
        assert world.call("POST", f"{rule}:alter", checked, PLAIN) == (204, None)
        assert data(world, CONFIGS)[other]["source"] == "DEFAULT_CONFIG"
    assert world.call("POST", f"{CONFIGS}:alter", set_both, PLAIN) == (204, None)
    body = {"data": [{"name": RATE, "operation": "DELETE"}]}
    assert world.call("POST", f"{CONFIGS}:alter", body, PLAIN) == (204, None)
    found = data(world, CONFIGS)
    assert (found[RATE]["source"], found[other]["value"]) == ("DEFAULT_CONFIG", "2")


@pytest.mark.parametrize(
    ("method", "path", "body", "answer", "text"),
    [
        ("PUT", f"{CONFIGS}/num.partitions", {"value": "3"}, (400, 40002), "server.properties"),
        ("PUT", f"{COMMON}/num.partitions", {"value": "3"}, (400, 40002), "server.properties"),
        ("PUT", f"{CONFIGS}/{RATE}", {"value": "x"}, (400, 40002), RATE),
        ("PUT", f"{CONFIGS}/{RATE}", {"value": None}, (400, 40002), "string"),
        ("PUT", f"{CONFIGS}/{RATE}", {"valeu": "1"}, (422, 422), "valeu"),
        ("PUT", f"{CONFIGS}/no.such", {"value": "1"}, (404, 404), "no.such"),
        ("DELETE", f"{CONFIGS}/no.such", None, (404, 404), "no.such"),
        ("PUT", f"{COMMON}/no.such", {"value": "1"}, (400, 40002), "no.such"),
        ("POST", f"{CONFIGS}:alter", {"data": []}, (422, 422), "data"),
        ("POST", f"{CONFIGS}:alter", {"data": [{"name": "n"}]}, (400, 40002), "string"),
        ("GET", f"{BASE}/brokers/7/configs", None, (404, 404), "Broker 7 cannot be found."),
        ("PUT", f"{BASE}/brokers/7/configs/a", {"value": "1"}, (404, 404), "Broker 7"),
        ("GET", f"{CONFIGS}/no.such", None, (404, 404), "no.such cannot be found for broker 0."),
    ],
)
def test_what_is_refused_changes_nothing(
    world: RestWorld, method: str, path: str, body: Any, answer: tuple[int, int], text: str
) -> None:
    before = data(world, CONFIGS)
    status, found = world.call(method, path, body, PLAIN)
    assert (status, found["error_code"]) == answer
    assert text in found["message"]
    assert data(world, CONFIGS) == before


def test_brokers_of_0_8_2_2_do_not_tell_their_settings(tmp_path: Path) -> None:
    world = served_by(AdminRig(tmp_path, broker_id=0))
    for path in (CONFIGS, COMMON):
        status, found = world.call("GET", path)
        assert (status, found["error_code"]) == (400, 40002)
        assert "b0:9090" in found["message"]
        assert "closed the connection" in found["message"]


def test_without_a_live_broker_another_try_may_help(world: RestWorld) -> None:
    world.brokers.down = {9090}
    assert world.code("GET", CONFIGS) == (500, 50003)
    assert world.code("PUT", f"{COMMON}/{RATE}", {"value": "1"}, PLAIN) == (500, 50003)
    world.ensemble.remove(znodes.broker_path(0))
    assert world.code("GET", COMMON) == (500, 50003)
