"""kafka08.console.access.acls: over the handlers of a broker."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from kafka08.errors import LaterCode
from kafka08.protocol import acl_schemas as a
from kafka08.security.acls import (
    EVERYONE,
    Acl,
    Operation,
    PatternType,
    Resource,
    ResourceType,
    rule_words,
)
from tests.console.access.served import ANN, TOPIC, AccessScene, allow, deny
from tests.console.scene import text_of

PREFIX = Resource(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
GROUP = Resource(ResourceType.GROUP, "billing")
RULE = rule_words((TOPIC, allow()))


def with_rules(**settings: Any) -> AccessScene:
    scene = AccessScene(**settings)
    scene.store.add(TOPIC, [allow(), allow("User:bob", Operation.WRITE, "10.0.0.1")])
    scene.store.add(PREFIX, [deny(EVERYONE, Operation.DELETE)])
    scene.store.add(GROUP, [allow()])
    return scene


def stored(scene: AccessScene, resource: Resource = TOPIC) -> tuple[Acl, ...]:
    return scene.store.read(resource).acls


def names(scene: AccessScene, query: str) -> list[str]:
    """The rules that a page lists, as resource, principal and operation."""
    return [
        f"{each['resource_name']} {each['principal']} {each['operation']}"
        for each in scene.json(f"/acls?{query}")["acls"]
    ]


def test_the_rules_as_a_page_and_as_json() -> None:
    scene = with_rules()
    page = scene.page("/acls")
    assert "4 of 4 rules" in page
    assert "Topic Prefixed ord User:* Deny Delete *" in page
    assert "Topic Literal orders User:bob Allow Write 10.0.0.1" in page
    data = scene.json("/acls")
    assert (data["is_served"], data["reason"], data["total"], data["more"]) == (True, None, 4, 0)
    assert RULE in data["acls"]
    assert data["rights"] is None


def test_filters() -> None:
    scene = with_rules()
    everybody, bob = "ord User:* DELETE", "orders User:bob WRITE"
    ann = "orders User:ann READ"
    assert names(scene, "resource_type=GROUP") == ["billing User:ann READ"]
    assert names(scene, "resource_name=ord") == [everybody, ann, bob]
    assert names(scene, "resource_name=ord&covering=1") == [everybody]
    assert names(scene, "resource_name=orders&covering=1") == [everybody, ann, bob]
    assert names(scene, "principal=BO") == [bob]
    assert names(scene, "principal=User:bob") == [everybody, bob]
    assert names(scene, "operation=READ&resource_type=TOPIC") == [ann]
    assert names(scene, "resource_name=none") == []


def test_order() -> None:
    scene = with_rules()
    assert names(scene, "sort=principal")[0] == "ord User:* DELETE"
    assert names(scene, "sort=-principal")[0] == "orders User:bob WRITE"
    assert scene.get("/acls?sort=size").status_code == 400


@pytest.mark.parametrize("query", ["resource_type=STREAM", "operation=look"])
def test_a_filter_that_makes_no_sense(query: str) -> None:
    assert with_rules().get(f"/acls?{query}").status_code == 400


def test_what_a_principal_may_do() -> None:
    scene = with_rules()
    page = scene.page("/acls?principal=User:ann")
    assert "User:ann may do" in page
    assert "May read topic orders." in page
    assert "May not delete topics that begin with ord." in page
    assert "May read group billing." in page
    rights = scene.json("/acls?principal=User:bob")["rights"]
    assert [each["sentence"] for each in rights] == [
        "May not delete topics that begin with ord",
        "May write topic orders from 10.0.0.1",
    ]
    assert rights[1]["operations"] == ["WRITE"]
    nothing = scene.page("/acls?principal=User:eve&resource_type=GROUP")
    assert "No rule is about User:eve here." in nothing
    assert "may User:ann do?" in scene.page("/acls?principal=ann")


def test_many_rules_are_cut() -> None:
    scene = AccessScene()
    scene.store.add(TOPIC, [allow(f"User:{number}") for number in range(503)])
    assert "3 more are not shown" in scene.page("/acls")
    data = scene.json("/acls")
    assert (len(data["acls"]), data["more"], data["total"]) == (500, 3, 503)


def test_names_are_not_markup() -> None:
    scene = AccessScene()
    scene.store.add(Resource(ResourceType.GROUP, "<b>g"), [allow("User:<script>x")])
    for path in ("/acls", "/acls?principal=User:<script>x"):
        page = scene.get(path).text
        assert "<script>x" not in page and "<b>g" not in page


# --- nothing to show


def test_without_an_authorizer_the_page_says_what_to_set() -> None:
    scene = AccessScene(has_authorizer=False, read_only=False)
    page = scene.page("/acls")
    assert "no authorizer is set" in page
    assert "authorizer.class.name=kafka.security.auth.SimpleAclAuthorizer" in page
    assert "Add a rule" not in page
    data = scene.json("/acls")
    assert (data["is_served"], data["reason"], data["acls"]) == (False, "no-authorizer", [])
    answer = scene.post("/acls/add", **RULE)
    assert answer.status_code == 400
    assert "No Authorizer is configured" in answer.text


def test_brokers_of_0_8_2_2_have_no_rules() -> None:
    scene = AccessScene(read_only=False)
    scene.only_originals()
    assert "Kafka 0.8.2.2 does not know them" in scene.page("/acls")
    assert scene.json("/acls")["reason"] == "original-brokers"
    assert ">Access</a>" not in scene.get("/").text
    assert scene.post("/acls/add", **RULE).status_code == 409
    assert scene.cluster.sent(a.CreateAclsRequest) == []


def test_beside_brokers_of_0_8_2_2_the_page_names_them() -> None:
    scene = with_rules()
    assert "Brokers that check no rules: 2." in scene.page("/acls")
    scene.server.remove("/brokers/ids/2")
    scene.look()
    assert "check no rules" not in scene.page("/acls")


def test_a_console_that_may_not_see_the_rules() -> None:
    scene = with_rules(read_only=False)
    scene.refuses = LaterCode.CLUSTER_AUTHORIZATION_FAILED
    assert "its principal needs Describe on the cluster" in scene.page("/acls")
    assert scene.json("/acls")["reason"] == "failed"
    answer = scene.post("/acls/add", **RULE)
    assert answer.status_code == 400
    assert "its principal needs Alter on the cluster" in answer.text


def test_a_broker_that_does_not_answer() -> None:
    scene = with_rules(read_only=False)
    scene.cluster.down = {9091}
    assert "Broker 1 did not answer" in scene.page("/acls")
    answer = scene.post("/acls/add", **{**RULE, "operation": "WRITE"})
    assert answer.status_code == 503
    assert "It is not known whether this was done" in answer.text


# --- adding


def shown(scene: AccessScene, **fields: str) -> str:
    answer = scene.get(f"/acls/add?{urlencode({**RULE, **fields, 'check': 1})}")
    assert answer.status_code == 200, answer.text
    return answer.text


def test_the_effect_is_said_before_it_is_done() -> None:
    scene = AccessScene(read_only=False)
    assert 'method="post"' not in scene.get("/acls/add").text
    page = shown(scene)
    assert "User:ann may read topic orders." in page
    assert "super users alone may use that" in page
    assert stored(scene) == ()
    scene.opened = True
    assert "from then on what no rule allows is refused" in shown(scene)
    scene.opened = None
    assert "where brokers have allow.everyone.if.no.acl.found=true" in shown(scene)


def test_a_rule_is_added_as_it_was_shown(tmp_path: Path) -> None:
    scene = AccessScene(read_only=False, audit_file=str(tmp_path / "audit"))
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown(scene)))
    assert fields.pop("token")
    answer = scene.post("/acls/add", **fields)
    assert answer.status_code == 303
    assert stored(scene) == (allow(),)
    assert "A rule was added: User:ann may read topic orders." in scene.page(
        answer.headers["Location"]
    )
    [entry] = scene.audited
    assert entry["action"] == "add access rule"
    assert (entry["target"], entry["before"]) == ("Topic:LITERAL:orders", None)
    assert entry["after"] == RULE
    answer = scene.post("/acls/add", **fields)
    assert "was+there+already" in answer.headers["Location"]
    assert len(scene.audited) == 1


def test_a_mistake_keeps_what_was_entered_beside_its_message() -> None:
    scene = AccessScene(read_only=False)
    fields = {**RULE, "principal": "ann", "resource_name": "my topic", "permission": "DENY"}
    for answer in (
        scene.get(f"/acls/add?{urlencode({**fields, 'check': 1})}"),
        scene.post("/acls/add", **fields),
    ):
        assert answer.status_code == 400
        page = answer.text
        assert 'name="resource_name" value="my topic"' in page
        assert '<option value="DENY" selected>' in page
        marked = r'name="principal" value="ann"[^>]* aria-describedby="wrong-principal"'
        assert re.search(marked, page)
        assert "is not like User:ann" in page
        assert 'method="post"' not in page
    assert scene.server.below("/kafka-acl") == []


# --- deleting


def test_a_rule_is_deleted_after_its_effect_was_said(tmp_path: Path) -> None:
    scene = with_rules(read_only=False, audit_file=str(tmp_path / "audit"))
    page = scene.get("/acls").text
    label = "Delete: User:ann may read topic"
    [link] = re.findall(rf'href="(/acls/delete[^"]*)" aria-label="{label}', page)
    page = scene.page(link.replace("&amp;", "&"))
    assert "This rule goes: User:ann may read topic orders." in page
    assert "User:ann loses what no other rule allows." in page
    assert scene.post("/acls/delete", **RULE).status_code == 303
    assert stored(scene) == (allow("User:bob", Operation.WRITE, "10.0.0.1"),)
    [entry] = scene.audited
    assert (entry["action"], entry["before"], entry["after"]) == ("delete access rule", RULE, None)


def test_a_rule_that_is_gone_is_not_deleted() -> None:
    scene = AccessScene(read_only=False)
    assert scene.get(f"/acls/delete?{urlencode(RULE)}").status_code == 404
    assert scene.get("/acls/delete").status_code == 404
    answer = scene.post("/acls/delete", **RULE)
    assert answer.status_code == 409
    assert "There is no such access rule any more" in text_of(answer.text)
    assert scene.post("/acls/delete", resource_type="x").status_code == 400


def test_readers_have_no_forms() -> None:
    page = with_rules(users={"a": "root:admin"}).get("/acls", auth=("root", "secret")).text
    assert "/acls/add" not in page and "/acls/delete" not in page
    scene = with_rules(users={"a": "ann:operator"}, read_only=False)
    page = scene.get("/acls", auth=("ann", "secret")).text
    assert "/acls/add" not in page and "/acls/delete" not in page
    assert scene.get("/acls/add", auth=("ann", "secret")).status_code == 403


def test_the_menu_has_one_entry_and_the_pages_have_tabs() -> None:
    scene = AccessScene()
    assert scene.get("/").text.count(">Access</a>") == 1
    for path in ("/acls", "/users", "/quotas"):
        page = scene.get(path).text
        assert '<a href="/acls" aria-current="page">Access</a>' in page
        tabs = page[page.index('aria-label="Access"') :]
        assert f'<a href="{path}" aria-current="page">' in tabs
        assert tabs.index("Access rules") < tabs.index("Users") < tabs.index("Quotas")


def test_what_a_principal_is_called_in_links() -> None:
    page = with_rules().get("/acls").text
    assert f"/acls?{urlencode({'principal': ANN})}" in page
