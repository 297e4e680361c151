"""Access rules, which real handlers of a broker keep in place of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import LaterCode
from kafka08.protocol import acl_schemas as a
from tests.rest.v3.served import served_by
from tests.rest.world import PLAIN, RestWorld
from tests.server.admin_support import AdminRig

ACLS = "/v3/clusters/c/acls"
RULE = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:anna",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
URL = (
    f"http://localhost{ACLS}?resource_type=TOPIC&resource_name=orders&pattern_type=LITERAL"
    "&principal=User%3Aanna&host=%2A&operation=READ&permission=ALLOW"
)
ALL = "resource_type=any&pattern_type=any&operation=any&permission=any"


@pytest.fixture
def world(tmp_path: Path) -> RestWorld:
    return served_by(AdminRig(tmp_path, later=True, broker_id=0))


def create(world: RestWorld, **other: Any) -> Any:
    return world.call("POST", ACLS, {**RULE, **other}, PLAIN)


def search(world: RestWorld, query: str = "") -> list[str]:
    """The rules that a query finds, as resource, user and operation."""
    status, found = world.call("GET", f"{ACLS}?{query}")
    assert status == 200, found
    return [
        f"{each['resource_name']} {each['principal']} {each['operation']}" for each in found["data"]
    ]


def test_a_rule_is_made_found_and_deleted(world: RestWorld) -> None:
    response = world.send("POST", ACLS, RULE, PLAIN)
    assert (response.status_code, response.data) == (201, b"")
    assert response.headers["Location"] == URL
    rule = {"kind": "KafkaAcl", "metadata": {"self": URL}, "cluster_id": "c", **RULE}
    expected = {
        "kind": "KafkaAclList",
        "metadata": {"self": f"http://localhost{ACLS}", "next": None},
        "data": [rule],
    }
    assert world.call("GET", ACLS) == (200, expected)
    status, found = world.call("GET", URL)
    assert (status, found["data"], found["metadata"]["self"]) == (200, [rule], URL)
    assert world.call("DELETE", URL) == (200, {"data": [rule]})
    assert search(world) == []
    assert world.call("DELETE", URL) == (200, {"data": []})


def test_searches(world: RestWorld) -> None:
    others = [
        {**RULE, "resource_name": "ord", "pattern_type": "PREFIXED", "principal": "User:bob"},
        {**RULE, "resource_type": "GROUP", "resource_name": "g", "operation": "ALL"},
        {**RULE, "operation": "WRITE", "permission": "DENY", "host": "10.0.0.1"},
    ]
    assert world.call("POST", f"{ACLS}:batch", {"data": [RULE, *others]}, PLAIN) == (201, None)
    assert len(search(world)) == 4
    both = ["orders User:anna READ", "orders User:anna WRITE"]
    assert search(world, "resource_type=topic&pattern_type=LITERAL") == both
    matching = "resource_type=TOPIC&resource_name=orders&pattern_type=MATCH"
    assert search(world, matching) == [*both, "ord User:bob READ"]
    assert search(world, "resource_type=GROUP&operation=ALL") == ["g User:anna ALL"]
    assert search(world, "host=10.0.0.1&permission=deny") == both[1:]
    assert search(world, "principal=User:bob") == ["ord User:bob READ"]
    assert len(world.call("DELETE", f"{ACLS}?{ALL}&principal=User:anna")[1]["data"]) == 3
    assert search(world) == ["ord User:bob READ"]
    assert world.call("GET", "/v3/clusters/c")[1]["acls"] == {"related": f"http://localhost{ACLS}"}


@pytest.mark.parametrize(
    ("fields", "answer", "text"),
    [
        ({"resource_type": "ANY"}, (422, 422), "resource_type is not one of TOPIC, GROUP"),
        ({"pattern_type": "MATCH"}, (422, 422), "pattern_type is not one of LITERAL, PREFIXED"),
        ({"operation": None}, (422, 422), "operation may not be empty"),
        ({"permission": "MAYBE"}, (422, 422), "permission is not one of DENY, ALLOW"),
        ({"resource_name": ""}, (422, 422), "resource_name may not be empty"),
        ({"host": 1}, (422, 422), "host is not a string"),
        ({"rule": "x"}, (422, 422), "Unrecognized field: rule"),
        ({"principal": "anna"}, (400, 40002), "principalType:principalName"),
        ({"resource_type": "CLUSTER"}, (400, 40002), "kafka-cluster"),
    ],
)
def test_a_wrong_rule_is_refused(
    world: RestWorld, fields: dict[str, Any], answer: tuple[int, int], text: str
) -> None:
    status, found = create(world, **fields)
    assert (status, found["error_code"]) == answer
    assert text in found["message"]
    body = {"data": [RULE, {**RULE, **fields}]}
    assert world.code("POST", f"{ACLS}:batch", body, PLAIN) == answer
    # The broker takes each resource by itself, after a look at all of the body here.
    assert search(world) == ([] if answer[0] == 422 else ["orders User:anna READ"])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("", "resource_type has to be given; ANY stands for all."),
        ("resource_type=ANY&pattern_type=ANY&operation=ANY", "permission has to be given"),
        (f"{ALL}&user=anna", "user is not a part of an access rule."),
        (f"{ALL}&resource_type=TOPIC", "resource_type is given more than once."),
        (ALL.replace("resource_type=any", "resource_type=STREAM"), "value STREAM which is not one"),
        (ALL.replace("operation=any", "operation=look"), "operation has value LOOK"),
    ],
)
def test_a_wrong_deletion_deletes_nothing(world: RestWorld, query: str, text: str) -> None:
    create(world)
    status, found = world.call("DELETE", f"{ACLS}?{query}")
    assert (status, found["error_code"]) == (400, 400)
    assert text in found["message"]
    assert search(world) == ["orders User:anna READ"]


def test_a_wrong_search(world: RestWorld) -> None:
    assert world.code("GET", f"{ACLS}?resource_type=STREAM") == (400, 400)


def test_a_cluster_without_an_authorizer_has_no_rules(tmp_path: Path) -> None:
    world = served_by(AdminRig(tmp_path, later=True, has_authorizer=False, broker_id=0))
    for method, path, body in (
        ("GET", ACLS, None),
        ("POST", ACLS, RULE),
        ("POST", f"{ACLS}:batch", {"data": [RULE]}),
        ("DELETE", f"{ACLS}?{ALL}", None),
    ):
        expected = {"error_code": 40002, "message": "No Authorizer is configured."}
        assert world.call(method, path, body, PLAIN) == (400, expected)


def test_brokers_of_0_8_2_2_have_no_rules(tmp_path: Path) -> None:
    assert served_by(AdminRig(tmp_path, broker_id=0)).code("GET", ACLS) == (400, 40002)


def test_a_proxy_that_may_not_see_the_rules(world: RestWorld) -> None:
    code = LaterCode.CLUSTER_AUTHORIZATION_FAILED
    answer = world.brokers.script

    def script(port: int, request: Any) -> Any:
        if isinstance(request, a.DescribeAclsRequest):
            return a.DescribeAclsResponse(0, code, None, [])
        return answer(port, request) if answer else None

    world.brokers.script = script
    expected = {"error_code": 40301, "message": "Cluster authorization failed."}
    assert world.call("GET", ACLS) == (403, expected)
