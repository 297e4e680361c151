"""kafka08.console.pages.zookeeper."""

from __future__ import annotations

import re

import pytest

from kafka08.console.shown import moment
from tests.console.scene import ConsoleScene
from zk.errors import NoAuthError


def scene_with(**nodes: bytes) -> ConsoleScene:
    """Nodes below /n."""
    scene = ConsoleScene()
    scene.server.put("/n")
    for name, data in nodes.items():
        scene.server.put(f"/n/{name}", data)
    scene.look()
    return scene


def test_the_root_with_the_numbers_of_children() -> None:
    page = scene_with(a=b"1", b=b"2").page("/zookeeper/")
    assert "ZooKeeper / " in page
    assert " brokers 2 " in page or " brokers 1 " in page
    assert " n 2 " in page
    assert " controller 0 " in page


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b'{"version":1,"x":[2]}', "{ &#34;version&#34;: 1, &#34;x&#34;: [ 2 ] } 21 bytes"),
        (b"1400000000000", "1400000000000 13 bytes"),
        (b"\xff\x00", "00000000 ff 00 .. 2 bytes"),
        (b"", "Data empty"),
        (b"<script>", "&lt;script&gt; 8 bytes"),
    ],
)
def test_data(data: bytes, shown: str) -> None:
    assert shown in re.sub(r" +", " ", scene_with(x=data).page("/zookeeper/n/x"))


def test_versions_times_and_owner() -> None:
    scene = scene_with(x=b"1")
    scene.server.put("/n/x", b"2")
    scene.server.add("/n/alive", b"", 255)
    page = scene.page("/zookeeper/n/x")
    assert "Version 1 " in page
    assert f"Created {moment(0)} Changed {moment(0)}" in page
    assert "Ephemeral, of session - " in page
    assert "Ephemeral, of session 0xff " in scene.page("/zookeeper/n/alive")


def test_the_way_down_and_up() -> None:
    scene = scene_with(x=b"")
    scene.server.put("/n/x/y")
    page = scene.get("/zookeeper/n/x/y").text
    above = re.search(r'<nav aria-label="Nodes above">(.*?)</nav>', page)
    assert above
    links = re.findall(r'href="([^"]*)"', above[1])
    assert links == ["/zookeeper/", "/zookeeper/n", "/zookeeper/n/x"]
    assert 'href="/zookeeper/n/x/y"' in scene.get(links[-1]).text
    assert scene.get("/zookeeper/n/x/").status_code == 200


@pytest.mark.parametrize(
    "name", ["a b", "100%", "%2e%2e", "a?b#c", "<i>", "é", "a&b=c", "...", "a%2Fb"]
)
def test_any_name_of_a_node(name: str) -> None:
    scene = scene_with(**{name: b"the data"})
    [link] = re.findall(r'<td><a href="(/zookeeper/n/[^"]*)"', scene.get("/zookeeper/n").text)
    page = scene.get(link.replace("&amp;", "&"))
    assert page.status_code == 200
    assert "the data" in page.text
    assert "<i>" not in page.text


@pytest.mark.parametrize(
    "path",
    [
        "/zookeeper/none",
        "/zookeeper/n/none",
        "/zookeeper/n/%2e%2e/n",
        "/zookeeper/%2e",
        "/zookeeper/n/a%01",
    ],
)
def test_a_node_that_does_not_exist(path: str) -> None:
    answer = scene_with().get(path)
    assert answer.status_code == 404
    assert "ZooKeeper has no node /" in answer.text


@pytest.mark.parametrize(
    "path", ["/config/users/ann", "/other/config/users/ann", "/config/brokers/1"]
)
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_credentials_are_hidden(path: str, accept: str) -> None:
    scene = scene_with()
    scene.server.put(path, b"salt=abc,stored_key=def")
    read = []
    scene.session.before = lambda call, at: read.append((call, at))
    answer = scene.client.get(f"/zookeeper{path}", headers={"Accept": accept})
    assert answer.status_code == 200
    assert "stored_key" not in answer.text
    assert "hidden" in answer.text
    assert ("get", path) not in read  # not even asked for
    missing = scene.get("/zookeeper/config/users/bob")
    assert missing.status_code == 404


def test_a_node_that_the_console_may_not_read() -> None:
    scene = scene_with(x=b"secret")
    scene.session.fails["/n/x"] = NoAuthError(path="/n/x")
    answer = scene.get("/zookeeper/n/x")
    assert answer.status_code == 403
    assert "ZooKeeper does not let the console read /n/x." in answer.text


def test_who_may_do_what() -> None:
    scene = scene_with(x=b"")
    assert "world anyone create, delete, read, write, admin " in scene.page("/zookeeper/n/x")
    scene.server.acls["/n/x"] = [(31, "digest", "kafka:Xg2+hash="), (1, "sasl", "ann")]
    page = scene.page("/zookeeper/n/x")
    assert "digest kafka:hidden create, delete, read, write, admin sasl ann read " in page
    answer = scene.client.get("/zookeeper/n/x", headers={"Accept": "application/json"})
    assert "hash" not in page + answer.text
    assert answer.json is not None
    assert answer.json["acl"][1] == {"scheme": "sasl", "name": "ann", "permissions": ["read"]}


def test_an_acl_that_cannot_be_read() -> None:
    scene = scene_with(x=b"data")
    scene.session.before = lambda call, path: (
        scene.session.fails.update({path: NoAuthError()}) if call == "get_acl" else None
    )
    page = scene.page("/zookeeper/n/x")
    assert "data 4 bytes ACL The console may not read it." in page


def test_children_of_children_that_cannot_be_counted() -> None:
    scene = scene_with(x=b"")
    scene.session.before = lambda call, _: (
        scene.session.fails.update({"": NoAuthError()}) if call == "children_of_all" else None
    )
    assert " x - " in scene.page("/zookeeper/n")


def test_many_children_and_long_data_are_cut() -> None:
    scene = scene_with(x=b"m" * 5000, **{f"{number}": b"" for number in range(600)})
    page = scene.page("/zookeeper/n")
    assert "101 more are not shown." in page
    assert " 9 0 10 0 11 0 " in page
    assert "5,000 bytes, cut" in scene.page("/zookeeper/n/x")


def test_a_node_as_json() -> None:
    scene = scene_with(x=b'{"a": 1}')
    accept = {"Accept": "application/json"}
    found = scene.client.get("/zookeeper/n", headers=accept).json
    assert found is not None
    assert (found["path"], found["version"], found["ephemeral_owner"]) == ("/n", 0, None)
    assert (found["data"], found["is_hidden"]) == ("", False)
    assert found["children"] == [{"name": "x", "children": 0}]
    assert found["created"] == "1970-01-01T00:00:00.000Z"


def test_without_zookeeper() -> None:
    scene = scene_with()
    scene.session.down = True
    assert scene.get("/zookeeper/n").status_code == 503
