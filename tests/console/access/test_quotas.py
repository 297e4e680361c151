"""kafka08.console.access.quotas."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.access.served import AccessScene
from tests.console.scene import text_of
from zk import entity_configs
from zk.errors import NoAuthError

USER = {"user_is": "named", "user": "ann"}
RATES = {"producer_byte_rate": "1048576", "request_percentage": "12.5"}
NONE = "{}"


def store(scene: AccessScene, entity: str, **config: str) -> None:
    zk: Any = scene.session
    entity_configs.alter(
        zk, entity, lambda _: {k.replace("SCRAM_", "SCRAM-"): v for k, v in config.items()}
    )


def config(scene: AccessScene, entity: str = "users/ann") -> dict[str, str]:
    zk: Any = scene.session
    return entity_configs.fetch(zk, entity)


def quotas_scene(**settings: Any) -> AccessScene:
    scene = AccessScene(**settings)
    store(scene, "users/ann", **RATES, SCRAM_X="a secret")
    store(scene, "users/ann/clients/c%2F1", consumer_byte_rate="2048")
    store(scene, "users/<default>", controller_mutation_rate="7")
    store(scene, "users/bob", SCRAM_X="a secret")
    store(scene, "clients/<default>", producer_byte_rate="many")
    store(scene, "ips/10.0.0.1", connection_creation_rate="3")
    return scene


def mark(scene: AccessScene, query: str) -> str:
    found = re.search(r'name="mark" value="([^"]*)"', scene.get(f"/quotas/set?{query}").text)
    assert found
    return html.unescape(found[1])


def test_quotas_in_plain_words() -> None:
    page = quotas_scene().page("/quotas")
    assert "5 of 5 have quotas" in page
    assert "ann - - 1 MiB/s - - 12.5 % -" in page
    assert "ann c/1 - - 2 KiB/s" in page
    assert "every other - - - - 7 partitions/s" in page
    assert "- every other - 'many', which brokers ignore" in html.unescape(page)
    assert "- - 10.0.0.1 - - - - 3 connections/s" in page
    assert "secret" not in page and "bob" not in page


def test_quotas_as_json() -> None:
    data = quotas_scene().json("/quotas?name=ann")
    assert (data["is_served"], data["total"], data["unreadable"]) == (True, 5, [])
    assert data["quotas"] == [
        {
            "user": "ann",
            "client_id": None,
            "ip": None,
            "producer_byte_rate": 1048576,
            "consumer_byte_rate": None,
            "controller_mutation_rate": None,
            "request_percentage": 12.5,
            "connection_creation_rate": None,
        },
        {
            "user": "ann",
            "client_id": "c/1",
            "ip": None,
            "producer_byte_rate": None,
            "consumer_byte_rate": 2048,
            "controller_mutation_rate": None,
            "request_percentage": None,
            "connection_creation_rate": None,
        },
    ]
    assert quotas_scene().json("/quotas?name=every")["quotas"][0]["client_id"] == "<default>"


def test_order() -> None:
    scene = quotas_scene()
    first = scene.json("/quotas?sort=-request_percentage")["quotas"][0]
    assert (first["user"], first["client_id"]) == ("ann", None)
    assert scene.get("/quotas?sort=x").status_code == 400


def test_many_quotas_are_cut() -> None:
    scene = AccessScene()
    for number in range(501):
        store(scene, f"clients/c{number}", producer_byte_rate="1")
    assert "1 more are not shown" in scene.page("/quotas")
    assert scene.json("/quotas")["more"] == 1


def test_a_node_that_cannot_be_read_is_named() -> None:
    scene = quotas_scene()
    scene.server.put("/config/users/eve", b"{")
    assert "whose nodes cannot be read: user eve." in scene.page("/quotas")
    data = scene.json("/quotas")
    assert (data["unreadable"], data["total"]) == (["user eve"], 5)


def test_a_console_that_may_not_read_them() -> None:
    scene = quotas_scene()
    scene.session.fails["/config/users"] = NoAuthError(path="/config/users")
    assert "ZooKeeper does not let the console read quotas" in scene.page("/quotas")


def test_brokers_of_0_8_2_2_have_no_quotas() -> None:
    scene = quotas_scene(read_only=False)
    scene.only_originals()
    page = scene.page("/quotas")
    assert "Kafka 0.8.2.2 does not know them" in page
    assert "These quotas are in ZooKeeper, and have no effect." in page
    assert "Set quotas" not in page
    before = config(scene)
    assert scene.post("/quotas/set", **USER, producer_byte_rate="5").status_code == 409
    assert scene.post("/quotas/remove", **USER, mark="x").status_code == 409
    assert config(scene) == before
    scene = AccessScene()
    scene.only_originals()
    assert scene.json("/quotas")["reason"] == "original-brokers"
    assert "have no effect" not in scene.page("/quotas")


def test_quotas_are_set(tmp_path: Path) -> None:
    scene = AccessScene(read_only=False, audit_file=str(tmp_path / "audit"))
    assert mark(scene, "") == NONE
    fields = {**USER, "client_id_is": "default", "mark": NONE, "producer_byte_rate": "10 MiB/s"}
    answer = scene.post("/quotas/set", **fields)
    assert answer.status_code == 303
    told = "The quotas of user ann, every other client id were set."
    assert told in scene.page(answer.headers["Location"])
    assert config(scene, "users/ann/clients/<default>") == {"producer_byte_rate": "10485760"}
    notices = [
        scene.server.text(f"/config/changes/{e}") for e in scene.server.below("/config/changes")
    ]
    assert json.loads(notices[-1])["entity_path"] == "users/ann/clients/<default>"
    [entry] = scene.audited
    assert (entry["action"], entry["target"]) == ("set quotas", "user ann, every other client id")
    assert (entry["before"], entry["after"]) == ({}, {"producer_byte_rate": "10485760"})


def test_quotas_of_an_address_are_set() -> None:
    scene = AccessScene(read_only=False)
    fields = {"ip_is": "named", "ip": "10.0.0.1", "mark": NONE, "connection_creation_rate": "3"}
    assert scene.post("/quotas/set", **fields).status_code == 303
    assert config(scene, "ips/10.0.0.1") == {"connection_creation_rate": "3"}


def test_a_change_keeps_what_is_not_a_quota(tmp_path: Path) -> None:
    scene = quotas_scene(read_only=False, audit_file=str(tmp_path / "audit"))
    page = scene.get("/quotas/set?user_is=named&user=ann").text
    assert "Set quotas of user ann" in text_of(page)
    assert 'name="producer_byte_rate" value="1048576"' in page
    assert "Now 12.5 %." in page
    assert "connection_creation_rate" not in page
    fields = {**USER, "mark": mark(scene, "user_is=named&user=ann"), "request_percentage": "50"}
    assert scene.post("/quotas/set", **fields).status_code == 303
    assert config(scene) == {"SCRAM-X": "a secret", "request_percentage": "50"}
    [entry] = scene.audited
    assert (entry["before"], entry["after"]) == (RATES, {"request_percentage": "50"})
    assert "secret" not in (tmp_path / "audit").read_text()


def test_quotas_that_others_changed_are_not_overwritten() -> None:
    scene = quotas_scene(read_only=False)
    stale = mark(scene, "user_is=named&user=ann")
    store(scene, "users/ann", producer_byte_rate="9")
    for given in (stale, NONE):
        answer = scene.post("/quotas/set", **USER, mark=given, producer_byte_rate="5")
        assert answer.status_code == 409
        assert "have changed since they were shown" in answer.text
        assert scene.post("/quotas/remove", **USER, mark=given).status_code == 409
    assert config(scene) == {"producer_byte_rate": "9"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"producer_byte_rate": "fast"}, "producer_byte_rate"),
        ({"user": "", "producer_byte_rate": "5"}, "user"),
        ({}, "producer_byte_rate"),
        ({"connection_creation_rate": "5"}, "connection_creation_rate"),
        ({"client_id_is": "named", "consumer_byte_rate": "5"}, "client_id"),
    ],
)
def test_a_mistake_keeps_what_was_entered(fields: dict[str, str], field: str) -> None:
    scene = AccessScene(read_only=False)
    given = {**USER, "request_percentage": "", "mark": NONE, **fields}
    answer = scene.post("/quotas/set", **given)
    assert answer.status_code == 400
    assert re.search(rf'name="{field}"[^>]* aria-describedby="wrong-{field}"', answer.text)
    assert '<option value="named" selected>the user</option>' in answer.text
    for name, text in given.items():
        if text and name in ("user", "producer_byte_rate", "consumer_byte_rate"):
            assert f'name="{name}" value="{text}"' in answer.text
    assert scene.server.below("/config/users") == []


def test_quotas_are_removed_after_it_was_said_what_goes(tmp_path: Path) -> None:
    scene = quotas_scene(read_only=False, audit_file=str(tmp_path / "audit"))
    page = scene.get("/quotas/remove?user_is=named&user=ann").text
    assert "1 MiB/s (producer_byte_rate) no longer holds user ann." in text_of(page)
    given = html.unescape(re.findall(r'name="mark" value="([^"]*)"', page)[0])
    assert scene.post("/quotas/remove", **USER, mark=given).status_code == 303
    assert config(scene) == {"SCRAM-X": "a secret"}
    [entry] = scene.audited
    assert (entry["action"], entry["before"], entry["after"]) == ("remove quotas", RATES, None)


def test_quotas_that_are_not_there_are_not_removed() -> None:
    scene = quotas_scene(read_only=False)
    assert scene.get("/quotas/remove").status_code == 404
    assert scene.get("/quotas/remove?user_is=named&user=bob").status_code == 404
    assert scene.get("/quotas/remove?user_is=odd").status_code == 400


def test_readers_have_no_forms() -> None:
    scene = quotas_scene()
    page = scene.get("/quotas").text
    assert "/quotas/set" not in page and "/quotas/remove" not in page


def test_names_are_not_markup() -> None:
    scene = AccessScene()
    store(scene, "clients/%3Cb%3Ex", producer_byte_rate="<i>")
    page = scene.get("/quotas").text
    assert "<b>x" not in page and "<i>" not in page
