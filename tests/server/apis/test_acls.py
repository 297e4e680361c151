"""DescribeAcls, CreateAcls, DeleteAcls: the nodes in ZooKeeper, and the answers."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import LaterCode
from kafka08.protocol import acl_schemas as a
from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import RequestDecoder, encode_request, encode_response
from kafka08.security.acl_store import AclStore
from kafka08.server.apis.acls import handlers
from kafka08.server.requests.dispatch import Dispatcher
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session

TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
READ, WRITE, ALLOW = 3, 4, 3
NODE = "/kafka-acl/Topic/t"
GARBAGE = b"\xff"


class Served:
    """The handlers on a store in memory; requests and answers go through their bytes."""

    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.session: Any = Session(self.server)
        runtime: Any = FakeRuntime()
        self.store = AclStore(self.session, runtime.sleep)
        self.store.ensure_paths()
        self._handlers = {each.key: each for each in handlers(self.store)}
        self._dispatcher = Dispatcher(runtime, self._handlers.values(), APIS)

    def call(self, request: Any, version: int = 1) -> Any:
        frame = b"".join(encode_request(request, 1, "c", version))[4:]
        header, decoded = RequestDecoder(self._dispatcher.served).decode(frame)
        answer = self._handlers[header.api_key].handle(header, decoded)
        assert encode_response(1, answer, version)
        return answer

    def create(self, *new: a.NewAcl, version: int = 1) -> list[int]:
        answer = self.call(a.CreateAclsRequest(list(new)), version)
        return [each.error for each in answer.results]

    def described(self, **wanted: Any) -> dict[tuple[str, int], list[tuple[Any, ...]]]:
        answer = self.call(a.DescribeAclsRequest(**{**EVERYTHING, **wanted}))
        assert (answer.error, answer.message) == (0, None)
        return {(r.resource_name, r.pattern): list(map(tuple, r.acls)) for r in answer.resources}


EVERYTHING: dict[str, Any] = {
    "resource_type": ANY, "resource_name": None, "principal": None, "host": None,
    "operation": ANY, "permission": ANY, "pattern": ANY,
}  # fmt: skip


def new(name: str = "t", operation: int = READ, **other: Any) -> a.NewAcl:
    made = a.NewAcl(TOPIC, name, "User:alice", "*", operation, ALLOW)
    return made._replace(**other)


@pytest.fixture
def served() -> Served:
    return Served()


def test_rules_are_added_as_kafka_writes_them(served: Served) -> None:
    assert served.create(new(), new(operation=WRITE), new("pre", pattern=PREFIXED)) == [0, 0, 0]
    assert served.server.text(NODE) == (
        '{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
        '"operation":"Read","host":"*"},{"principal":"User:alice","permissionType":"Allow",'
        '"operation":"Write","host":"*"}]}'
    )
    assert served.server.below("/kafka-acl-changes") == ["acl_changes_0000000000"]
    assert served.described() == {
        ("t", LITERAL): [("User:alice", "*", READ, ALLOW), ("User:alice", "*", WRITE, ALLOW)],
        ("pre", PREFIXED): [("User:alice", "*", READ, ALLOW)],
    }


def test_version_0_knows_literal_names_alone(served: Served) -> None:
    assert served.create(new(pattern=PREFIXED), version=0) == [0]
    answer = served.call(a.DescribeAclsRequest(TOPIC, None, None, None, ANY, ANY), 0)
    assert [(each.resource_name, each.pattern) for each in answer.resources] == [("t", LITERAL)]


def test_what_could_not_be_read_again_is_refused(served: Served) -> None:
    bad = (
        new(resource_type=1), new(resource_type=99), new(pattern=MATCH), new(operation=1),
        new(operation=77), new(permission=1), new(principal="alice"), new(principal="User:"),
        new(principal=":alice"), new(host=""), new(""), new("a/b"), new("other", resource_type=4),
    )  # fmt: skip
    nodes = dict(served.server.nodes)
    assert served.create(*bad) == [LaterCode.INVALID_REQUEST] * len(bad)
    assert served.server.nodes == nodes
    assert served.create(*bad[:2], new(), bad[2]) == [42, 42, 0, 42]


def test_filters(served: Served) -> None:
    served.create(
        new(), new(operation=WRITE), new("*"), new("tx", principal="User:bob"),
        new("t", pattern=PREFIXED), new("g", resource_type=GROUP, host="h"),
    )  # fmt: skip
    assert len(served.described()) == 5
    assert set(served.described(resource_type=GROUP)) == {("g", LITERAL)}
    assert set(served.described(resource_type=TOPIC, resource_name="tx", pattern=MATCH)) == {
        ("tx", LITERAL), ("*", LITERAL), ("t", PREFIXED),
    }  # fmt: skip
    assert set(served.described(principal="User:bob")) == {("tx", LITERAL)}
    assert set(served.described(host="h")) == {("g", LITERAL)}
    assert served.described(operation=WRITE) == {
        ("t", LITERAL): [("User:alice", "*", WRITE, ALLOW)]
    }
    assert served.described(permission=2) == {}
    assert served.described(resource_type=TOPIC, resource_name="no", pattern=LITERAL) == {}


@pytest.mark.parametrize("field", ["resource_type", "operation", "permission", "pattern"])
def test_unknown_numbers_in_filters_are_refused(served: Served, field: str) -> None:
    served.create(new())
    wanted = {**EVERYTHING, field: 0}
    assert served.call(a.DescribeAclsRequest(**wanted)).error == LaterCode.INVALID_REQUEST
    answer = served.call(a.DeleteAclsRequest([a.AclFilter(**wanted)]))
    assert [(each.error, each.acls) for each in answer.results] == [(42, [])]
    assert served.described() != {}


def test_rules_are_deleted_and_told(served: Served) -> None:
    served.create(new(), new(operation=WRITE), new("u"))
    first = a.AclFilter(**{**EVERYTHING, "resource_name": "t", "operation": READ})
    everything = a.AclFilter(**EVERYTHING)
    answer = served.call(a.DeleteAclsRequest([first, everything, first]))
    assert [(each.error, len(each.acls)) for each in answer.results] == [(0, 1), (0, 2), (0, 0)]
    assert answer.results[0].acls == [
        a.DeletedAcl(0, None, TOPIC, "t", "User:alice", "*", READ, ALLOW, LITERAL)
    ]
    assert served.described() == {}
    assert NODE not in served.server.nodes


def test_rules_that_cannot_be_read(served: Served) -> None:
    """They are told as a refusal of all, stay where a rule is named, and go with all rules."""
    served.session.create(NODE, GARBAGE, makepath=True)
    assert served.described() == {("t", LITERAL): [("User:*", "*", 2, 2)]}
    assert served.create(new(), new("u")) == [-1, 0]
    named = a.AclFilter(**{**EVERYTHING, "resource_name": "t", "operation": READ})
    answer = served.call(a.DeleteAclsRequest([named]))
    assert answer.results[0].error == -1
    assert NODE in answer.results[0].message
    assert NODE in served.server.nodes
    answer = served.call(a.DeleteAclsRequest([named._replace(operation=ANY)]))
    assert [(each.error, each.acls) for each in answer.results] == [(0, [])]
    assert NODE not in served.server.nodes
