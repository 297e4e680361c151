"""kafka08.console.access.users: over the handlers of a broker."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import LaterCode
from kafka08.security.scram import credential_of, decode_credential, encode_credential
from tests.console.access.served import AccessScene
from tests.console.scene import text_of
from zk import entity_configs

PASSWORD = "hunter2 & <co>"
FIELDS = {
    "user": "ann",
    "mechanism": "SCRAM-SHA-512",
    "iterations": "4096",
    "password": PASSWORD,
    "again": PASSWORD,
}


def users_scene(**settings: Any) -> AccessScene:
    """ann has both mechanisms and a quota, bob one; carl has a quota alone."""
    scene = AccessScene(**settings)
    both = {
        "SCRAM-SHA-256": made("SCRAM-SHA-256", 4096),
        "SCRAM-SHA-512": made("SCRAM-SHA-512", 8192),
    }
    store(scene, "ann", {**both, "producer_byte_rate": "1"})
    store(scene, "bob", {"SCRAM-SHA-256": made("SCRAM-SHA-256", 5000)})
    store(scene, "carl", {"producer_byte_rate": "1"})
    return scene


def made(mechanism: str, iterations: int) -> str:
    return encode_credential(credential_of(mechanism, "old", b"a salt", iterations))


def store(scene: AccessScene, user: str, config: dict[str, str]) -> None:
    zk: Any = scene.session
    entity_configs.alter(zk, f"users/{user}", lambda _: config)


def config(scene: AccessScene, user: str = "ann") -> dict[str, str]:
    zk: Any = scene.session
    return entity_configs.fetch(zk, f"users/{user}")


def fits(scene: AccessScene, password: str, mechanism: str = "SCRAM-SHA-512") -> bool:
    """Whether ann's credential is of that password."""
    found = decode_credential(mechanism, config(scene)[mechanism])
    return found == credential_of(mechanism, password, found.salt, found.iterations)


def test_users_with_mechanisms_and_iterations() -> None:
    scene = users_scene()
    page = scene.page("/users")
    assert "2 of 2 users" in page
    assert re.search(r"ann 4,096 8,192 -", page)
    assert re.search(r"bob 5,000 - -", page)
    data = scene.json("/users")
    assert data["users"] == [
        {
            "name": "ann",
            "scram_sha_256_iterations": 4096,
            "scram_sha_512_iterations": 8192,
            "other_mechanisms": [],
        },
        {
            "name": "bob",
            "scram_sha_256_iterations": 5000,
            "scram_sha_512_iterations": None,
            "other_mechanisms": [],
        },
    ]
    assert (data["is_served"], data["total"], data["more"]) == (True, 2, 0)
    assert "carl" not in page


def test_no_page_shows_a_hash_or_a_salt() -> None:
    scene = users_scene(read_only=False)
    secrets = [
        part.partition("=")[2]
        for text in config(scene).values()
        for part in text.split(",")
        if not part.startswith("iterations") and "=" in part
    ]
    assert len(secrets) == 6
    for path in ("/users", "/users/password?user=ann", "/users/delete?user=ann", "/quotas"):
        for accept in ("text/html", "application/json"):
            text = scene.client.get(path, headers={"Accept": accept}).text
            assert "stored_key" not in text
            assert [each for each in secrets if each in text] == []


def test_filter_and_order() -> None:
    scene = users_scene()

    def names(query: str) -> list[str]:
        return [each["name"] for each in scene.json(f"/users?{query}")["users"]]

    assert names("name=B") == ["bob"]
    assert names("sort=-name") == ["bob", "ann"]
    assert names("sort=-scram_sha_256_iterations") == ["bob", "ann"]
    assert scene.get("/users?sort=password").status_code == 400


def test_many_users_are_cut() -> None:
    scene = AccessScene()
    credential = made("SCRAM-SHA-256", 4096)
    for number in range(502):
        store(scene, f"u{number}", {"SCRAM-SHA-256": credential})
    assert "2 more are not shown" in scene.page("/users")
    assert scene.json("/users")["more"] == 2


def test_a_cluster_where_nobody_can_log_in_says_so() -> None:
    scene = users_scene()
    assert "nobody logs in yet" in scene.page("/users")
    assert scene.json("/users")["logins"] is False
    scene.server.put(
        "/brokers/ids/1",
        b'{"version": 2, "host": "b1", "port": 9091, "jmx_port": -1, "timestamp": "1",'
        b' "formats": 2, "endpoints": ["PLAINTEXT://b1:9091", "SASL_SSL://b1:9093"]}',
    )
    scene.look()
    assert "nobody logs in yet" not in scene.page("/users")


def test_nothing_to_show() -> None:
    scene = users_scene(read_only=False)
    scene.refuses = LaterCode.CLUSTER_AUTHORIZATION_FAILED
    assert "its principal needs Describe on the cluster" in scene.page("/users")
    scene.refuses = 0
    scene.only_originals()
    assert "Kafka 0.8.2.2 does not know them" in scene.page("/users")
    assert scene.json("/users")["reason"] == "original-brokers"
    assert scene.post("/users/add", **{**FIELDS, "user": "dora"}).status_code == 409


def test_a_user_is_added(tmp_path: Path) -> None:
    scene = AccessScene(read_only=False, audit_file=str(tmp_path / "audit"))
    assert "Add a user" in scene.page("/users/add")
    answer = scene.post("/users/add", **FIELDS)
    assert answer.status_code == 303
    assert "User ann was added." in scene.page(answer.headers["Location"])
    assert fits(scene, PASSWORD)
    [entry] = scene.audited
    assert (entry["action"], entry["target"]) == ("add user", "ann")
    assert (entry["before"], entry["after"]) == (None, {"SCRAM-SHA-512": 4096})


def test_a_user_who_is_there_is_not_added() -> None:
    scene = users_scene(read_only=False)
    before = config(scene)
    answer = scene.post("/users/add", **FIELDS)
    assert answer.status_code == 400
    assert "user ann is there already" in answer.text
    assert config(scene) == before


def test_a_password_is_changed_and_the_rest_stays(tmp_path: Path) -> None:
    scene = users_scene(read_only=False, audit_file=str(tmp_path / "audit"))
    before = config(scene)
    page = scene.get("/users/password?user=ann").text
    assert "SCRAM-SHA-512 with 8,192 iterations" in text_of(page)
    assert 'name="user" value="ann"' in page
    assert scene.post("/users/password", **{**FIELDS, "iterations": "5000"}).status_code == 303
    assert fits(scene, PASSWORD)
    after = config(scene)
    assert after["SCRAM-SHA-512"].endswith("iterations=5000")
    assert {**after, "SCRAM-SHA-512": ""} == {**before, "SCRAM-SHA-512": ""}
    [entry] = scene.audited
    assert entry["before"] == {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192}
    assert entry["after"] == {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 5000}


def test_a_password_of_a_user_who_is_not_there() -> None:
    scene = users_scene(read_only=False)
    for user in ("", "eve", "carl"):
        assert scene.get(f"/users/password?user={user}").status_code == 404
        assert scene.get(f"/users/delete?user={user}").status_code == 404
    assert scene.post("/users/password", **{**FIELDS, "user": "eve"}).status_code == 409
    assert config(scene, "eve") == {}


@pytest.mark.parametrize(
    ("fields", "field", "text"),
    [
        ({"user": " "}, "user", "the name is missing"),
        ({"user": "a\tb"}, "user", "names are printable"),
        ({"user": ".."}, "user", "names are printable"),
        ({"user": "a" * 256}, "user", "at most 255"),
        ({"mechanism": "PLAIN"}, "mechanism", "is not one of SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"iterations": "many"}, "iterations", "is not a whole number"),
        ({"iterations": "4095"}, "iterations", "4096"),
        ({"iterations": "1000001"}, "iterations", "1000000"),
        ({"password": "", "again": ""}, "password", "it is empty"),
        ({"again": "hunter3"}, "again", "this is another password"),
    ],
)
def test_a_mistake_keeps_all_but_the_password(
    fields: dict[str, str], field: str, text: str
) -> None:
    scene = AccessScene(read_only=False)
    answer = scene.post("/users/add", **{**FIELDS, **fields})
    assert answer.status_code == 400
    assert f'id="wrong-{field}"' in answer.text
    assert text in text_of(answer.text)
    assert "hunter" not in answer.text
    if field != "iterations":
        assert 'name="iterations" inputmode="numeric" value="4096"' in answer.text
    if field != "user":
        assert 'name="user" value="ann"' in answer.text
    assert scene.server.below("/config/users") == []


def test_a_password_is_in_no_log_no_entry_and_no_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    scene = users_scene(read_only=False, audit_file=str(tmp_path / "audit"))
    answers = [scene.post("/users/password", **FIELDS)]
    scene.refuses = LaterCode.CLUSTER_AUTHORIZATION_FAILED
    answers.append(scene.post("/users/password", **FIELDS))
    scene.cluster.down = {9091}
    answers.append(scene.post("/users/password", **FIELDS))
    assert [each.status_code for each in answers] == [303, 400, 503]
    texts = [each.text + str(each.headers) for each in answers]
    texts += [caplog.text, (tmp_path / "audit").read_text(), *map(repr, scene.cluster.requests)]
    assert [each for each in texts if "hunter2" in each] == []


def test_a_password_has_fields_that_browsers_treat_as_one() -> None:
    page = AccessScene(read_only=False).get("/users/add").text
    for name in ("password", "again"):
        assert f'name="{name}" type="password" required autocomplete="new-password"' in page


def test_one_mechanism_of_a_user_is_deleted(tmp_path: Path) -> None:
    scene = users_scene(read_only=False, audit_file=str(tmp_path / "audit"))
    page = scene.page("/users/delete?user=ann")
    assert "Connections that have logged in with it end." in page
    fields = {"user": "ann", "typed": "ann", "mechanism": "SCRAM-SHA-256"}
    assert scene.post("/users/delete", **fields).status_code == 303
    assert sorted(config(scene)) == ["SCRAM-SHA-512", "producer_byte_rate"]
    answer = scene.post("/users/delete", **fields)
    assert answer.status_code == 409
    assert "has no such password any more.<" in answer.text
    [entry] = scene.audited
    assert (entry["action"], entry["after"]) == ("delete password", {"SCRAM-SHA-512": 8192})


def test_a_user_is_deleted_and_the_quotas_stay(tmp_path: Path) -> None:
    scene = users_scene(read_only=False, audit_file=str(tmp_path / "audit"))
    fields = {"user": "ann", "typed": "ann", "mechanism": "all"}
    answer = scene.post("/users/delete", **fields)
    assert "User ann was deleted." in scene.page(answer.headers["Location"])
    assert config(scene) == {"producer_byte_rate": "1"}
    [entry] = scene.audited
    assert (entry["action"], entry["after"]) == ("delete user", None)


@pytest.mark.parametrize(
    ("fields", "field"), [({"typed": "an"}, "typed"), ({"mechanism": "PLAIN"}, "mechanism")]
)
def test_a_wrong_deletion_deletes_nothing(fields: dict[str, str], field: str) -> None:
    scene = users_scene(read_only=False)
    before = config(scene)
    given = {"user": "ann", "typed": "ann", "mechanism": "all", **fields}
    answer = scene.post("/users/delete", **given)
    assert answer.status_code == 400
    assert f'id="wrong-{field}"' in answer.text
    assert config(scene) == before


def test_a_name_is_not_markup_and_not_a_path() -> None:
    scene = AccessScene(read_only=False)
    name = "<b>/../x"
    assert scene.post("/users/add", **{**FIELDS, "user": name}).status_code == 303
    assert scene.json("/users")["users"][0]["name"] == name
    assert "<b>" not in scene.get("/users").text
    assert scene.server.below("/config/users") == ["%3Cb%3E%2F..%2Fx"]


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"config": 5}', b"\xff"])
def test_a_user_whose_node_makes_no_sense_is_named_and_the_others_are_shown(data: bytes) -> None:
    scene = users_scene(read_only=False)
    scene.server.put("/config/users/b%3Cd", data)
    page = scene.get("/users").text
    assert "2 of 2 users" in text_of(page)
    assert 'id="unreadable"' in page and "<li>b&lt;d: " in page
    data_of_all = scene.json("/users")
    assert [each["name"] for each in data_of_all["users"]] == ["ann", "bob"]
    assert [each["name"] for each in data_of_all["unreadable"]] == ["b<d"]
    assert scene.post("/users/add", **{**FIELDS, "user": "b<d"}).status_code == 400
    assert scene.post("/users/add", **{**FIELDS, "user": "dora"}).status_code == 303


def test_hashes_are_computed_beside_the_loop() -> None:
    scene = users_scene(read_only=False)
    assert scene.post("/users/add", **{**FIELDS, "user": "dora"}).status_code == 303
    assert scene.post("/users/password", **FIELDS).status_code == 303
    assert scene.runtime.pooled.count("salted") == 2
