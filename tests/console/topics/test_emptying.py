"""kafka08.console.topics.emptying."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.protocol import admin_schemas as a
from tests.console.pages.test_topic_changes import mark
from tests.console.scene import BROKERS, ConsoleScene, text_of
from zk import znodes

REFUSED = "This topic cannot be emptied."


def scene_with(*leaders: int, **settings: object) -> ConsoleScene:
    """With a topic that has a partition led by each, with 3 messages."""
    scene = ConsoleScene(read_only=False, **settings)
    replicas = {number: [1, 2] for number in range(len(leaders))}
    scene.server.put(znodes.topic_path("t"), znodes.encode_topic(replicas))
    scene.cluster.create("t", len(leaders), 1)
    for number, leader in enumerate(leaders):
        scene.cluster.leaders[TopicPartition("t", number)] = leader
        scene.cluster.append("t", number, b"a", b"b", b"c")
    scene.look()
    return scene


def deletes(scene: ConsoleScene, errors: dict[int, int] | None = None) -> None:
    """Brokers answer to DeleteRecords; ``errors``: of partitions."""

    def script(_: int, request: object) -> object:
        if not isinstance(request, a.DeleteRecordsRequest):
            return None
        [topic] = request.topics
        answers = []
        for each in topic.partitions:
            assert each.offset == -1
            error = (errors or {}).get(each.partition, 0)
            low = -1 if error else 3
            answers.append(a.DeleteRecordsPartitionResponse(each.partition, low, error))
        return a.DeleteRecordsResponse(0, [a.DeleteRecordsTopicResponse("t", answers)])

    scene.cluster.script = script


def test_a_topic_is_emptied(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    scene = scene_with(1, 1, audit_file=str(audit))
    deletes(scene)
    answer = scene.post("/topics/t/empty", emptied="t", mark=mark(scene))
    assert answer.status_code == 303
    assert "All messages of t were deleted." in text_of(scene.get(answer.headers["Location"]).text)
    assert len(scene.cluster.took(1, a.DeleteRecordsRequest)) == 1
    line = json.loads(audit.read_text())
    assert (line["action"], line["target"]) == ("empty topic", "t")
    assert line["before"] == {"partitions": 2}
    assert line["after"] == {"first_offsets": {"0": 3, "1": 3}, "failed": {}}
    assert scene.observer.lags is not None
    for _ in range(2):  # the first offsets are known at once, and stay
        logs = scene.observer.lags.logs
        assert {(log.start, log.end) for log in logs.values()} == {(3, 3)}
        scene.observer.collect()


def test_it_needs_the_typed_name() -> None:
    scene = scene_with(1)
    deletes(scene)
    for name in ("", "T"):
        answer = scene.post("/topics/t/empty", emptied=name, name="t", mark=mark(scene))
        assert answer.status_code == 400
        assert 'id="wrong-emptied">Type the name of the topic, t, to empty it.' in answer.text
    assert scene.post("/topics/t/empty", emptied="t", mark="old").status_code == 409
    assert scene.cluster.sent(a.DeleteRecordsRequest) == []


@pytest.mark.parametrize(
    ("leaders", "told"),
    [
        ((1, 2), "Partition 1 is led by broker 2, which does not delete single messages"),
        ((-1,), "Partition 0 has no leader."),
    ],
)
def test_where_it_cannot_be_done_the_page_says_so(leaders: tuple[int, ...], told: str) -> None:
    scene = scene_with(*leaders)
    deletes(scene)
    page = scene.get("/topics/t/change").text
    assert f"{REFUSED} {told}" in text_of(page)
    assert 'action="/topics/t/empty"' not in page
    answer = scene.post("/topics/t/empty", emptied="t", mark=mark(scene))
    assert answer.status_code == 409
    assert told in answer.text
    assert scene.cluster.sent(a.DeleteRecordsRequest) == []


@pytest.mark.parametrize("name", INTERNAL_TOPICS)
def test_internal_topics_are_not_emptied(name: str) -> None:
    scene = ConsoleScene(read_only=False)
    scene.topic(name, [1])
    scene.look()
    assert f"{REFUSED} It is an internal topic." in scene.page(f"/topics/{name}/change")
    answer = scene.post(f"/topics/{name}/empty", emptied=name, mark=mark(scene, name))
    assert answer.status_code == 409


def test_what_was_done_is_told_if_it_was_not_all(tmp_path: Path) -> None:
    """A leader that has changed refuses."""
    audit = tmp_path / "audit.log"
    scene = scene_with(1, 1, audit_file=str(audit))
    deletes(scene, {1: 6})
    answer = scene.post("/topics/t/empty", emptied="t", mark=mark(scene))
    assert answer.status_code == 503
    page = text_of(answer.text)
    assert "It is not known whether this was done. 1 of 2 partitions are empty." in page
    assert "The others: 1 (" in page
    after = json.loads(audit.read_text())["after"]
    assert after["first_offsets"] == {"0": 3} and list(after["failed"]) == ["1"]


def test_a_leader_that_does_not_answer() -> None:
    scene = scene_with(1)
    shown = mark(scene)
    scene.cluster.down = {BROKERS[0].port}
    answer = scene.post("/topics/t/empty", emptied="t", mark=shown)
    assert answer.status_code == 503
    assert "0 of 1 partitions are empty" in answer.text
