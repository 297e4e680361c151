"""kafka08.console.pages.moves."""

from __future__ import annotations

import html
import re

import pytest

from kafka08.common import TopicPartition
from tests.console.scene import ConsoleScene, text_of
from zk import znodes

TP = TopicPartition("t", 0)


def scene_with_topic() -> ConsoleScene:
    scene = ConsoleScene(read_only=False)
    scene.topic("t", [1, 2], leader=2, isr=[1, 2])
    scene.look()
    return scene


def test_an_election_of_all_that_are_out_of_place() -> None:
    scene = scene_with_topic()
    assert "t 0" in scene.page("/elect")
    assert scene.post("/elect").status_code == 303
    data = scene.server.nodes[znodes.PREFERRED_REPLICA_ELECTION].data
    assert znodes.decode_partitions("", data) == [TP]
    answer = scene.post("/elect")
    assert answer.status_code == 400
    assert "currently in progress" in answer.text


def test_an_election_of_those_chosen() -> None:
    scene = scene_with_topic()
    assert scene.post("/elect", partition="t").status_code == 400
    assert scene.post("/elect", partition="t:0").status_code == 303


def test_nothing_is_out_of_place() -> None:
    scene = ConsoleScene(read_only=False)
    scene.topic("t", [1])
    scene.look()
    assert scene.post("/elect").status_code == 400


@pytest.mark.scenario("ops-47")
def test_a_move_from_the_proposal_to_the_way_back() -> None:
    scene = scene_with_topic()
    page = scene.get("/reassign?topics=t&brokers=2,1").text
    proposed, rollback = (
        html.unescape(each) for each in re.findall(r"<textarea[^>]*>([^<]*)<", page)
    )
    assert znodes.decode_reassignment("", rollback.encode()) == {TP: (1, 2)}
    answer = scene.post("/reassign", moves=proposed)
    assert answer.status_code == 200
    assert html.unescape(answer.text).count(rollback) == 1
    data = scene.server.nodes[znodes.REASSIGN_PARTITIONS].data
    assert data == proposed.encode()
    assert "2 of 2" in scene.page("/reassign")
    again = scene.post("/reassign", moves=proposed)
    assert again.status_code == 409
    assert "being moved" in again.text
    scene.server.remove(znodes.REASSIGN_PARTITIONS)
    assert "No partition is being moved" in scene.page("/reassign")
    assert scene.post("/reassign", moves=rollback).status_code == 200


@pytest.mark.scenario("ops-47")
def test_moves_of_the_tool_are_shown() -> None:
    scene = scene_with_topic()
    scene.server.put(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignment({TP: (2, 7)}))
    assert "t 0 1, 2 2, 7 1 of 2" in scene.page("/reassign")


@pytest.mark.scenario("ops-47")
def test_wrong_moves_are_refused() -> None:
    scene = scene_with_topic()
    writes = len(scene.server.writes)
    texts = {
        "not json": "is not JSON",
        '{"partitions":[]}': "has no partitions",
        '{"partitions":[{"topic":"t","partition":0,"replicas":[9]}]}': "not registered",
        '{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}': "duplicate",
        '{"partitions":[{"topic":"none","partition":0,"replicas":[1]}]}': "none of these",
    }
    for text, told in texts.items():
        answer = scene.post("/reassign", moves=text)
        assert answer.status_code == 400, text
        assert told in text_of(answer.text)
    assert len(scene.server.writes) == writes
    assert scene.get("/reassign?topics=none&brokers=1").status_code == 400
