"""kafka08.console.pages.groups."""

from __future__ import annotations

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
    assert "Lag of g: 0 to 56" in page
