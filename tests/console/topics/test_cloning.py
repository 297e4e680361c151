"""kafka08.console.topics.cloning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.common import INTERNAL_TOPICS
from tests.console.pages.test_topic_changes import mark
from tests.console.scene import ConsoleScene
from zk import znodes


def scene_with(own: dict[str, str], **settings: object) -> ConsoleScene:
    """With topic t, which has 3 partitions of 2 replicas."""
    scene = ConsoleScene(read_only=False, **settings)
    replicas = {number: [1, 2] for number in range(3)}
    scene.server.put(znodes.topic_path("t"), znodes.encode_topic(replicas))
    scene.server.put(znodes.topic_config_path("t"), znodes.encode_topic_config(own))
    scene.cluster.create("t", 3, 1)
    scene.look()
    return scene


def test_a_topic_is_cloned(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    own = {"retention.ms": "5"}
    scene = scene_with(
        {**own, "leader.replication.throttled.replicas": "0:1"}, audit_file=str(audit)
    )
    answer = scene.post("/topics/t/clone", copy=" u ", mark=mark(scene))
    assert (answer.status_code, answer.headers["Location"].split("?")[0]) == (303, "/topics/u")
    nodes = scene.server.nodes
    assignment = znodes.decode_topic("", nodes[znodes.topic_path("u")].data)
    assert [len(replicas) for replicas in assignment.values()] == [2, 2, 2]
    assert znodes.decode_topic_config("", nodes[znodes.topic_config_path("u")].data) == own
    line = json.loads(audit.read_text())
    assert (line["action"], line["target"], line["before"]) == ("clone topic", "u", None)
    assert (line["after"]["of"], line["after"]["settings"]) == ("t", own)


@pytest.mark.parametrize(
    ("copy", "told"),
    [("", "illegal"), ("a/b", "topic name a/b is illegal"), ("t", "already exists")],
)
def test_a_wrong_name_is_refused_beside_its_field(copy: str, told: str) -> None:
    scene = scene_with({})
    shown, writes = mark(scene), len(scene.server.writes)
    answer = scene.post("/topics/t/clone", copy=copy, mark=shown)
    assert answer.status_code == 400
    assert told in answer.text.partition('id="wrong-copy">')[2].partition("<")[0]
    assert f'name="copy" value="{copy}"' in answer.text
    assert len(scene.server.writes) == writes


def test_what_hinders_it_is_named() -> None:
    scene = scene_with({"odd": "1"})
    shown = mark(scene)
    answer = scene.post("/topics/t/clone", copy="u", mark=shown)
    assert answer.status_code == 400
    assert "Topic t cannot be cloned" in answer.text and "odd" in answer.text
    scene.server.remove(znodes.broker_path(2))
    answer = scene.post("/topics/t/clone", copy="u", mark=shown)
    assert answer.status_code == 400
    assert "It has 2 replicas, and 1 brokers are up." in answer.text
    assert scene.post("/topics/t/clone", copy="u", mark="old").status_code == 409
    assert znodes.topic_path("u") not in scene.server.nodes


@pytest.mark.parametrize("name", INTERNAL_TOPICS)
def test_internal_topics_are_not_cloned(name: str) -> None:
    scene = ConsoleScene(read_only=False)
    scene.topic(name, [1])
    scene.look()
    assert "/clone" not in scene.get(f"/topics/{name}/change").text
    answer = scene.post(f"/topics/{name}/clone", copy="u", mark=mark(scene, name))
    assert answer.status_code == 400
