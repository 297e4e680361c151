"""kafka08.console.pages.groups."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from kafka08.protocol import schemas
from tests.console.scene import ConsoleScene


def scene_with_group(name: str = "g") -> ConsoleScene:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.produce("t", *[b"m"] * 10)
    scene.commit(name, "t", 4)
    scene.look()
    return scene


def test_groups_with_their_lag() -> None:
    page = scene_with_group().page("/groups")
    assert "g STOP 6 0 s 0 1 zookeeper" in page


def test_groups_are_filtered_by_name() -> None:
    scene = scene_with_group("readers")
    assert "readers" in scene.page("/groups?name=read")
    assert "readers" not in scene.page("/groups?name=write")


def test_one_group_with_owner_and_members() -> None:
    scene = scene_with_group()
    scene.server.put(
        "/consumers/g/ids/g_host-1400000000000-0a1b2c3d",
        b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}',
    )
    scene.server.put("/consumers/g/owners/t/0", b"g_host-1400000000000-0a1b2c3d-0")
    page = scene.page("/group?name=g")
    assert "t 0 4 10 6" in page
    assert "g_host-1400000000000-0a1b2c3d-0" in page
    assert "on host" in page


def test_a_group_in_zookeeper_makes_no_broker_create_the_offsets_topic() -> None:
    scene = scene_with_group()
    scene.page("/group?name=g")
    assert scene.cluster.sent(schemas.ConsumerMetadataRequest) == []


def test_any_name_of_a_group() -> None:
    name = "a b&c=<i>"
    scene = scene_with_group(name)
    response = scene.get(f"/group?name={quote(name)}")
    assert response.status_code == 200
    assert "<i>" not in response.text
    assert "a b&amp;c=&lt;i&gt;" in response.text


def test_an_unknown_group() -> None:
    assert scene_with_group().get("/group?name=none").status_code == 404


def test_an_offset_beyond_the_end_is_told() -> None:
    scene = scene_with_group()
    scene.commit("g", "t", 40)
    scene.look()
    assert "beyond the end" in scene.page("/groups")
    assert "beyond the end" in scene.page("/group?name=g")


@pytest.mark.scenario("ops-52")
def test_the_graph_grows_with_the_lag() -> None:
    scene = scene_with_group()
    for _ in range(5):
        scene.runtime.clock.advance(30)
        scene.produce("t", *[b"m"] * 10)
        scene.look()
    page = scene.get("/group?name=g").text
    assert '<polyline points="0.0,' in page
    assert "Lag of g: 0 to 60" in page


def first_unread(scene: ConsoleScene) -> tuple[str, str]:
    """The link to it on the page of the group, and the messages that are there."""
    found = re.search(r'href="(/topics/t/messages[^"]*)"', scene.get("/group?name=g").text)
    assert found
    link = found[1].replace("&amp;", "&")
    return link, scene.page(link)


def test_a_partition_leads_to_its_first_unread_message() -> None:
    scene = scene_with_group()
    assert "t 0 4 10 6 offset 4 over 0 s" in scene.page("/group?name=g")
    link, page = first_unread(scene)
    assert link == "/topics/t/messages?partition=0&from=offset&at=4"
    assert "6 messages. The log has offsets 0 to 10; read 4 to 9" in page
    assert "not in the log any more" not in page


def test_unread_messages_that_are_deleted() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.cluster.starts[scene.first("t")] = 7
    scene.produce("t", b"m", b"m")
    scene.commit("g", "t", 4)
    scene.look()
    told = "offset 7 start of the log: 3 unread offsets below it are deleted"
    assert told in scene.page("/group?name=g")
    assert first_unread(scene)[0].endswith("&at=7")
    scene.commit("g", "t", 7)
    scene.look()
    assert "deleted" not in scene.page("/group?name=g")


@pytest.mark.parametrize("offset", [10, 40])
def test_a_partition_without_unread_messages(offset: int) -> None:
    scene = scene_with_group()
    scene.commit("g", "t", offset)
    scene.look()
    assert "/topics/t/messages" not in scene.get("/group?name=g").text


def test_unread_messages_have_no_link_where_contents_are_hidden() -> None:
    scene = ConsoleScene(show_messages=False)
    scene.topic("t", [1])
    scene.produce("t", b"m")
    scene.commit("g", "t", 0)
    scene.look()
    assert "offset 0" in scene.page("/group?name=g")
    assert "/topics/t/messages" not in scene.get("/group?name=g").text
