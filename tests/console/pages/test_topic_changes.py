"""kafka08.console.pages.topic_changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka08.common import INTERNAL_TOPICS
from kafka08.message.entry import TimedMessage
from kafka08.producer.partitioners import murmur2_partitioner
from kafka08.protocol import admin_schemas as a
from tests.console.scene import BROKERS, ConsoleScene, text_of
from zk import znodes
from zk.znodes import ControllerNode


def scene_with_topic(**settings: object) -> ConsoleScene:
    scene = ConsoleScene(read_only=False, **settings)
    scene.topic("t", [1])
    scene.look()
    return scene


def mark(scene: ConsoleScene, topic: str = "t") -> str:
    found = re.search(r'name="mark" value="([^"]*)"', scene.get(f"/topics/{topic}/change").text)
    assert found
    return found[1]


def test_a_topic_is_created() -> None:
    scene = scene_with_topic()
    fields = {"name": "new", "partitions": 3, "factor": 2, "settings": "cleanup.policy=compact\r\n"}
    answer = scene.post("/create", **fields)
    assert (answer.status_code, answer.headers["Location"].split("?")[0]) == (303, "/topics/new")
    assignment = znodes.decode_topic("", scene.server.nodes[znodes.topic_path("new")].data)
    assert [len(replicas) for replicas in assignment.values()] == [2, 2, 2]
    config = znodes.decode_topic_config(
        "", scene.server.nodes[znodes.topic_config_path("new")].data
    )
    assert config == {"cleanup.policy": "compact"}


def test_a_topic_is_created_by_hand() -> None:
    scene = scene_with_topic()
    assert scene.post("/create", name="new", assignment="1:2,2:1").status_code == 303
    assert (
        scene.server.text(znodes.topic_path("new"))
        == znodes.encode_topic({0: [1, 2], 1: [2, 1]}).decode()
    )


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "a/b", "partitions": "1", "factor": "1"}, "topic name a/b is illegal"),
        ({"name": "t", "partitions": "1", "factor": "1"}, "already exists"),
        ({"name": "n", "partitions": "x", "factor": "1"}, "not a whole number"),
        (
            {"name": "n", "partitions": "1", "factor": "9"},
            "2 brokers are up",
        ),
        (
            {"name": "n", "partitions": "1", "factor": "1", "settings": "x=1"},
            "topics have no setting named",
        ),
        ({"name": "n", "partitions": "1", "factor": "1", "settings": "x"}, "is not name=value"),
        ({"name": "n", "assignment": "1:7"}, "no live broker"),
        ({"name": "n", "assignment": "1:1"}, "duplicate"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_created(fields: dict[str, str], told: str) -> None:
    scene = scene_with_topic()
    writes = len(scene.server.writes)
    answer = scene.post("/create", **fields)
    assert answer.status_code == 400
    assert told in answer.text
    assert len(scene.server.writes) == writes


def test_partitions_are_added() -> None:
    scene = scene_with_topic()
    assert scene.post("/topics/t/partitions", partitions=3, mark=mark(scene)).status_code == 303
    path = znodes.topic_path("t")
    assert len(znodes.decode_topic(path, scene.server.nodes[path].data)) == 3


@pytest.mark.parametrize("name", INTERNAL_TOPICS)
def test_internal_topics_do_not_grow(name: str) -> None:
    scene = ConsoleScene(read_only=False)
    scene.topic(name, [1])
    scene.look()
    answer = scene.post(f"/topics/{name}/partitions", partitions=3, mark=mark(scene, name))
    assert answer.status_code == 400


@pytest.mark.scenario("ops-59")
def test_deletion_needs_the_typed_name(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    scene = scene_with_topic(audit_file=str(audit))
    deletes(scene, "true")
    for name in ("", "T", "t2"):
        assert scene.post("/topics/t/delete", name=name, mark=mark(scene)).status_code == 400
    assert znodes.delete_topic_path("t") not in scene.server.nodes
    assert scene.post("/topics/t/delete", name="t", mark=mark(scene)).status_code == 303
    assert znodes.delete_topic_path("t") in scene.server.nodes
    line = json.loads(audit.read_text())
    assert (line["action"], line["target"], line["from"]) == ("delete topic", "t", "127.0.0.1")
    assert line["before"] == {"partitions": 1}
    assert scene.post("/topics/t/delete", name="t", mark=mark(scene)).status_code == 409


def deletes(scene: ConsoleScene, value: str | None, error: int = 0) -> None:
    """Broker 1 describes its delete.topic.enable."""
    entries = [] if value is None else [a.ConfigEntry("delete.topic.enable", value, True)]
    found = a.ResourceConfig(error, None, a.BROKER_RESOURCE, "1", entries)

    def script(port: int, request: object) -> object:
        if not isinstance(request, a.DescribeConfigsRequest):
            return None
        assert port == BROKERS[0].port
        asked = [a.DescribedResource(a.BROKER_RESOURCE, "1", ["delete.topic.enable"])]
        assert request.resources == asked
        return a.DescribeConfigsResponse(0, [found])

    scene.cluster.script = script


@pytest.mark.scenario("ops-59")
def test_where_the_controller_does_not_delete_the_page_says_so_and_nothing_is_marked() -> None:
    scene = scene_with_topic()
    shown = mark(scene)
    deletes(scene, "false")
    page = scene.get("/topics/t/change").text
    assert "the controller has delete.topic.enable=false" in text_of(page)
    assert 'action="/topics/t/delete"' not in page
    assert 'action="/topics/t/partitions"' in page
    answer = scene.post("/topics/t/delete", name="t", mark=shown)
    assert answer.status_code == 409
    assert "delete.topic.enable is false" in answer.text
    assert znodes.delete_topic_path("t") not in scene.server.nodes


@pytest.mark.scenario("ops-59")
def test_a_topic_is_marked_where_the_controller_deletes() -> None:
    scene = scene_with_topic()
    deletes(scene, "true")
    page = scene.get("/topics/t/change").text
    assert "does not report" not in page
    assert 'name="deletes"' not in page
    assert scene.post("/topics/t/delete", name="t", mark=mark(scene)).status_code == 303
    assert znodes.delete_topic_path("t") in scene.server.nodes


def refuses_to_tell(scene: ConsoleScene) -> None:
    deletes(scene, None, error=31)


def is_original(scene: ConsoleScene) -> None:
    scene.server.put(znodes.CONTROLLER, znodes.encode_controller(ControllerNode(2, "5")))
    scene.look()


@pytest.mark.scenario("ops-59")
@pytest.mark.parametrize("controller", [refuses_to_tell, is_original])
def test_where_the_controller_does_not_tell_whether_it_deletes_the_user_has_to(
    controller: Callable[[ConsoleScene], None],
) -> None:
    scene = scene_with_topic()
    controller(scene)
    page = scene.get("/topics/t/change").text
    assert "The controller does not report whether its delete.topic.enable is true" in text_of(page)
    assert re.search(r'<input type="checkbox" name="deletes" value="1" required>', page)
    answer = scene.post("/topics/t/delete", name="t", mark=mark(scene))
    assert answer.status_code == 400
    assert "the controller does not report its delete.topic.enable" in answer.text
    assert znodes.delete_topic_path("t") not in scene.server.nodes
    answer = scene.post("/topics/t/delete", name="t", mark=mark(scene), deletes=1)
    assert answer.status_code == 303
    assert znodes.delete_topic_path("t") in scene.server.nodes


def test_an_original_controller_is_not_asked_whether_it_deletes() -> None:
    scene = scene_with_topic()
    is_original(scene)
    scene.cluster.requests.clear()
    assert scene.post("/topics/t/delete", name="t", mark=mark(scene)).status_code == 400
    assert scene.cluster.sent(a.DescribeConfigsRequest) == []


@pytest.mark.scenario("ops-59")
@pytest.mark.parametrize("path", ["partitions", "delete", "settings"])
def test_a_stale_form_changes_nothing(path: str) -> None:
    scene = scene_with_topic()
    stale = mark(scene)
    scene.server.put(znodes.topic_path("t"), znodes.encode_topic({0: [2]}))
    writes = len(scene.server.writes)
    answer = scene.post(f"/topics/t/{path}", name="t", partitions=9, mark=stale)
    assert answer.status_code == 409
    assert len(scene.server.writes) == writes


def test_a_message_is_sent() -> None:
    scene = scene_with_topic()
    fields = {"partition": 0, "value": "a\r\nb", "key": "6b", "key_as": "hex"}
    assert scene.post("/topics/t/send", **fields).status_code == 303
    [message] = scene.cluster.messages("t", 0)
    assert (message.key, message.value) == (b"k", b"a\nb")
    scene.post("/topics/t/send", partition=0, key="k", is_null=1, acks="all")
    assert scene.cluster.messages("t", 0)[1].value is None


def test_headers_are_sent() -> None:
    scene = scene_with_topic()
    lines = "trace: id 7\r\n\r\ntrace:again\r\nempty:"
    assert scene.post("/topics/t/send", partition=0, value="v", headers=lines).status_code == 303
    [message] = scene.cluster.messages("t", 0)
    assert isinstance(message, TimedMessage)
    assert message.headers == (("trace", b"id 7"), ("trace", b"again"), ("empty", b""))
    assert (message.key, message.value) == (None, b"v")
    assert message.timestamp == scene.runtime.clock.millis()


@pytest.mark.parametrize(
    ("fields", "key"), [({"key": "k"}, b"k"), ({}, None), ({"empty_key": 1}, b"")]
)
def test_a_key_that_is_typed_is_sent(fields: dict[str, object], key: bytes | None) -> None:
    scene = scene_with_topic()
    assert scene.post("/topics/t/send", value="v", **fields).status_code == 303
    [message] = scene.cluster.messages("t", 0)
    assert message.key == key


def test_without_a_partition_the_key_chooses_it_as_java_does() -> None:
    scene = ConsoleScene(read_only=False)
    scene.server.put(znodes.topic_path("many"), znodes.encode_topic({n: [1] for n in range(3)}))
    scene.cluster.create("many", 3, 1)
    scene.look()
    for key in (b"a", b"b", b"c", b"d"):
        scene.post("/topics/many/send", key=key.decode(), value="v", partition="")
        chosen = murmur2_partitioner(key, 3)
        assert scene.cluster.messages("many", chosen)[-1].key == key


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"partition": 5}, "partition"),
        ({"partition": 0, "acks": "0"}, "acks"),
        ({"partition": 0, "value": "x", "value_as": "hex"}, "value"),
        ({"partition": 0, "value": "x", "is_null": 1}, "is_null"),
        ({"partition": 0, "value": "x", "headers": "a: b\nno colon"}, "headers"),
        ({"partition": 0, "value": "x", "headers": ": nameless"}, "headers"),
    ],
)
def test_a_wrong_message_is_not_sent(fields: dict[str, object], field: str) -> None:
    scene = scene_with_topic()
    answer = scene.post("/topics/t/send", **fields)
    assert answer.status_code == 400
    assert scene.cluster.messages("t", 0) == []
    assert f'id="wrong-{field}"' in answer.text


def test_a_mistake_keeps_all_that_was_entered() -> None:
    """The message is beside its field, and the reader of a screen is led there."""
    scene = scene_with_topic()
    fields = {"partition": 0, "key": "my key", "value": "zz", "value_as": "hex", "acks": "all"}
    page = scene.post("/topics/t/send", **fields).text
    assert 'name="key" value="my key"' in page
    assert '<option value="hex" selected>' in page
    assert '<option value="all" selected>' in page
    assert re.search(r'<textarea name="value"[^>]* aria-describedby="wrong-value"[^>]*>zz<', page)
    assert "these are not hexadecimal digits" in page
    page = scene.post("/create", name="new", partitions="many", factor=1, settings="a=b").text
    assert 'name="name" value="new"' in page and 'value="many"' in page and ">a=b<" in page


def test_where_a_form_was_shown_again_its_page_is_found() -> None:
    scene = scene_with_topic()
    answer = scene.get("/topics/t/partitions")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/topics/t/change")


def test_without_an_answer_it_is_not_known_whether_it_was_done() -> None:
    scene = scene_with_topic()
    scene.cluster.down = {9091, 9092}
    answer = scene.post("/topics/t/send", partition=0, key="k", value="v")
    assert answer.status_code == 503
    assert "It is not known whether this was done" in answer.text
    assert 'name="key" value="k"' in answer.text
