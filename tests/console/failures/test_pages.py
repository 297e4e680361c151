"""kafka08.console.failures.pages."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TRANSACTIONS_TOPIC, Broker, TopicPartition
from kafka08.protocol.schemas import (
    DEBUG_REPLICA_ID,
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
)
from tests.console.scene import ConsoleScene
from tests.fakes.transactions import Begun
from zk import znodes

JSON = {"Accept": "application/json"}


def scene_with_topics() -> ConsoleScene:
    """One topic on both brokers, and one on broker 1 alone with 3 messages and a reader."""
    scene = ConsoleScene()
    scene.topic("both", [1, 2])
    scene.topic("single", [1])
    scene.cluster.in_sync = {TopicPartition("both", 0): [1, 2], TopicPartition("single", 0): [1]}
    scene.cluster.settings = {
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "2",
    }
    scene.produce("single", b"a", b"b", b"c")
    scene.commit("readers", "single", 1)
    scene.look()
    return scene


def test_the_page_of_one_broker() -> None:
    page = scene_with_topics().page("/brokers/1/what-if")
    assert "If broker 1 died now" in page
    assert "1 partition would have no leader: nobody could write or read them." in page
    assert "Waits until one of these is back single 0 1 1" in page
    assert "Older copies on single 0 1 3 - none" in page
    assert "both 0 2 2 enough" in page
    assert "Another broker would become the controller." in page
    assert "is taken as false" in page and "as 2, as broker 1 says" in page
    assert "readers 0 1" in page


def test_the_page_as_json() -> None:
    answer = scene_with_topics().client.get("/brokers/1/what-if", headers=JSON).json
    assert answer is not None
    assert answer["brokers"] == [1] and answer["controller_moves"] is True
    assert answer["defaults"] == {"unclean": False, "min_isr": 2, "broker": 1}
    assert answer["new_leaders"] == [
        {
            "topic": "both",
            "partition": 0,
            "before": 1,
            "leader": 2,
            "candidates": [],
            "is_known": True,
            "is_unclean": False,
        }
    ]
    assert answer["without_leader"] == [
        {"topic": "single", "partition": 0, "before": 1, "waits_for": [1]}
    ]
    assert [each["in_sync"] for each in answer["below_min_isr"]] == [[2]]
    assert [each["messages"] for each in answer["lost_with_disk"]] == [3]
    assert answer["groups"] == [{"group": "readers", "moved": 0, "stopped": 1}]
    assert answer["coordinators"] == []
    assert [(each["broker"], each["leads_after"]) for each in answer["spread"]] == [(2, 1)]


@pytest.mark.parametrize(("answers", "named"), [({9091, 9092}, True), ({9091}, False)])
def test_an_unclean_leader_among_several(answers: set[int], named: bool) -> None:
    """Of the live replicas 1 and 2 the latter has the longer log; both are asked when the page is
    shown."""
    scene = ConsoleScene()
    scene.register(Broker(3, "b3", 9093))
    scene.topic("t", [3, 1, 2], isr=[3])
    tp = scene.first("t")
    scene.cluster.leaders[tp], scene.cluster.in_sync[tp] = 3, [3]
    scene.look()

    def script(port: int, request: Any) -> Any:
        if not isinstance(request, OffsetsRequest) or request.replica_id != DEBUG_REPLICA_ID:
            return None
        code, ends = (0, [port]) if port in answers else (3, [])
        found = OffsetsPartitionResponse(0, code, ends)
        return OffsetsResponse([OffsetsTopicResponse("t", [found])])

    scene.cluster.script = script
    page = scene.page("/brokers/3/what-if")
    assert "unclean: messages are lost" in page
    assert ("t 0 3 2 unclean" in page) is named
    assert ("the one of 1, 2 with the longest log" in page) is not named
    answer = scene.client.get("/brokers/3/what-if", headers=JSON).json
    assert answer is not None
    [row] = answer["new_leaders"]
    assert (row["leader"], row["is_known"]) == ((2, True) if named else (1, False))
    assert row["candidates"] == [1, 2]


def test_transactional_ids_of_a_coordinator() -> None:
    scene = ConsoleScene()
    scene.topic(TRANSACTIONS_TOPIC, [1, 2])
    scene.cluster.in_sync[scene.first(TRANSACTIONS_TOPIC)] = [1, 2]
    for number in range(3):
        begun = Begun(f"id{number}", 1, 7 + number, 0, {scene.first(TRANSACTIONS_TOPIC): 0})
        scene.cluster.transactions.begin(begun)
    scene.look()
    page = scene.page("/brokers/1/what-if")
    assert "3 transactional ids would get another coordinator, or none." in page
    assert "Partitions of __transaction_state Now Next 3 1 1 2" in page
    answer = scene.client.get("/brokers/1/what-if", headers=JSON).json
    assert answer is not None
    assert answer["transactional_ids"] == [{"before": 1, "after": 2, "partitions": 1, "ids": 3}]
    assert "Another coordinator of transactions" not in scene.page("/brokers/2/what-if")


def test_several_brokers_at_once() -> None:
    scene = scene_with_topics()
    page = scene.page("/brokers/2/what-if?brokers=1, 2,")
    assert "If brokers 1, 2 died now" in page
    assert "No broker would remain." in page
    assert "2 partitions would have no leader" in page


def test_a_broker_that_is_down_already() -> None:
    scene = scene_with_topics()
    scene.server.remove(znodes.broker_path(2))
    scene.look()
    page = scene.page("/brokers/2/what-if")
    assert "Down already: 2." in page
    assert scene.get("/brokers/2").text.count("what-if") == 0


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/brokers/9/what-if", 404),
        ("/brokers/1/what-if?brokers=9", 404),
        ("/brokers/1/what-if?brokers=x", 400),
        ("/brokers/1/what-if?brokers=-1", 400),
        ("/brokers/1/what-if?brokers=" + "1," * 1001, 400),
    ],
)
def test_brokers_that_cannot_be_meant(path: str, code: int) -> None:
    assert scene_with_topics().get(path).status_code == code


def test_while_no_broker_answers_nothing_is_foretold() -> None:
    scene = scene_with_topics()
    scene.cluster.down = {9091, 9092}
    scene.look()
    answer = scene.get("/brokers/1/what-if")
    assert answer.status_code == 503
    assert "leaders and replicas in sync are unknown" in answer.text
    assert "If this broker dies now" not in scene.page("/brokers/1")


def test_long_tables_are_cut_on_the_page_and_whole_as_json() -> None:
    scene = ConsoleScene()
    for number in range(501):
        scene.topic(f"t{number}", [1])
        scene.cluster.in_sync[TopicPartition(f"t{number}", 0)] = [1]
    scene.cluster.settings = {"unclean.leader.election.enable": "false", "min.insync.replicas": "1"}
    scene.observer.look()
    assert "1 more are not shown. As JSON the page has all." in scene.page("/brokers/1/what-if")
    answer = scene.client.get("/brokers/1/what-if", headers=JSON).json
    assert answer is not None
    assert len(answer["without_leader"]) == 501
