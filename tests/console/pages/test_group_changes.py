"""kafka08.console.pages.group_changes."""

from __future__ import annotations

import re

import pytest

from kafka08.common import OFFSETS_TOPIC
from kafka08.groups.records import Committed, GroupPartition, encode_key, encode_value
from tests.console.scene import ConsoleScene, text_of
from zk import znodes

OFFSET = znodes.consumer_offset_path("g", "t", 0)


def scene_with_group() -> ConsoleScene:
    scene = ConsoleScene(read_only=False)
    scene.topic("t", [1])
    scene.produce("t", *[b"m"] * 10)
    scene.commit("g", "t", 4)
    scene.look()
    return scene


def plan(scene: ConsoleScene, query: str) -> str:
    page = scene.get(f"/group/reset?name=g&{query}").text
    found = re.search(r'name="plan" value="([^"]*)"', page)
    assert found, text_of(page)
    return found[1]


@pytest.mark.scenario("ops-51")
def test_the_plan_shows_old_and_new_offsets() -> None:
    scene = scene_with_group()
    assert plan(scene, "to=earliest") == "t:0:4:0"
    assert plan(scene, "to=latest") == "t:0:4:10"
    assert plan(scene, "to=offset&at=7") == "t:0:4:7"
    assert plan(scene, "to=offset&at=700") == "t:0:4:10"
    assert plan(scene, "to=shift&at=-3") == "t:0:4:1"
    for query in ("to=offset&at=x", "to=when", "to=time&at=x"):
        assert scene.get(f"/group/reset?name=g&{query}").status_code == 400
    assert scene.server.text(OFFSET) == "4"


@pytest.mark.scenario("ops-51")
def test_confirming_sets_the_offsets() -> None:
    scene = scene_with_group()
    answer = scene.post("/group/reset", name="g", plan=plan(scene, "to=earliest"))
    assert answer.status_code == 303
    assert scene.server.text(OFFSET) == "0"
    assert "10" in scene.page("/group?name=g")


def scene_with_a_new_partition() -> ConsoleScene:
    """The group has committed in partition 0 only; partition 1 came later, with 3 messages."""
    scene = ConsoleScene(read_only=False)
    scene.server.put(znodes.topic_path("t"), znodes.encode_topic({0: [1], 1: [1]}))
    scene.cluster.create("t", 2, 1)
    scene.produce("t", b"m")
    scene.cluster.append("t", 1, *[b"m"] * 3)
    scene.commit("g", "t", 1)
    scene.look()
    return scene


def test_partitions_without_a_commit_are_seen_and_set() -> None:
    scene = scene_with_a_new_partition()
    assert "t 1 none - no commit, 3 messages" in scene.page("/group?name=g")
    assert "Partitions without a commit 1" in scene.page("/group?name=g")
    page = scene.get("/group/reset?name=g&to=earliest").text
    plans = re.findall(r'name="plan" value="([^"]*)"', page)
    assert plans == ["t:0:1:0", "t:1:none:0"]
    assert "t 1 no commit 0" in text_of(page)
    assert plan(scene, "to=shift&at=-1") == "t:0:1:0"  # from where it is
    assert scene.post("/group/reset", name="g", plan=plans).status_code == 303
    assert scene.server.text(znodes.consumer_offset_path("g", "t", 1)) == "0"
    assert "no commit" not in scene.page("/group?name=g")


@pytest.mark.parametrize("old", ["t:1:none:0", "t:7:none:0"])
def test_a_plan_without_a_commit_is_refused_once_there_is_one(old: str) -> None:
    scene = scene_with_a_new_partition()
    scene.server.put(znodes.consumer_offset_path("g", "t", 1), b"2")
    assert scene.post("/group/reset", name="g", plan=old).status_code == 409
    assert scene.server.text(znodes.consumer_offset_path("g", "t", 1)) == "2"


@pytest.mark.scenario("ops-51")
def test_offsets_in_both_storages_are_set() -> None:
    scene = scene_with_group()
    scene.topic(OFFSETS_TOPIC, [1])
    scene.cluster.brokers[0] = scene.cluster.brokers[1]  # the coordinator
    value = encode_value(Committed(3, "", scene.runtime.clock.millis()))
    scene.cluster.append(OFFSETS_TOPIC, 0, value, key=encode_key(GroupPartition("g", "t", 0)))
    tp = scene.first("t")
    scene.cluster.committed["g", tp] = 3
    scene.look()
    shown = plan(scene, "to=offset&at=7")
    assert shown == "t:0:4:7"  # consumers take the larger one
    assert scene.post("/group/reset", name="g", plan=shown).status_code == 303
    assert scene.server.text(OFFSET) == "7"
    assert scene.cluster.committed["g", tp] == 7


@pytest.mark.scenario("ops-51")
def test_a_group_with_a_live_member_is_left_alone() -> None:
    scene = scene_with_group()
    shown = plan(scene, "to=earliest")
    scene.server.put("/consumers/g/ids/the-member", b"{}")
    for answer in (
        scene.get("/group/reset?name=g&to=earliest"),
        scene.post("/group/reset", name="g", plan=shown),
        scene.post("/group/delete", name="g", typed="g"),
    ):
        assert answer.status_code == 400
        assert "the-member" in answer.text
    assert scene.server.text(OFFSET) == "4"


@pytest.mark.scenario("ops-51")
def test_a_plan_for_another_state_is_refused() -> None:
    scene = scene_with_group()
    shown = plan(scene, "to=earliest")
    scene.commit("g", "t", 6)
    assert scene.post("/group/reset", name="g", plan=shown).status_code == 409
    assert scene.server.text(OFFSET) == "6"


def test_a_plan_of_another_form_is_refused() -> None:
    scene = scene_with_group()
    for text in ("", "t:0:4", "t:x:4:0", "t:0:4:-1"):
        assert scene.post("/group/reset", name="g", plan=text).status_code == 400
    assert scene.post("/group/reset", name="g").status_code == 400


def test_a_group_is_deleted_by_its_typed_name() -> None:
    scene = scene_with_group()
    scene.cluster.brokers[0] = scene.cluster.brokers[1]
    assert scene.post("/group/delete", name="g", typed="x").status_code == 400
    assert scene.server.text(OFFSET) == "4"
    assert "g" in scene.page("/group/delete?name=g")
    assert scene.post("/group/delete", name="g", typed="g").status_code == 303
    assert "/consumers/g" not in scene.server.nodes
