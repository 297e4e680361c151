"""kafka08.console.timeline.timeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.common import TopicPartition
from kafka08.console.shown import moment
from tests.console.scene import BROKERS, ConsoleScene
from zk import znodes
from zk.znodes import ControllerNode

T = TopicPartition("t", 0)


def scene_with_topic(**settings: object) -> ConsoleScene:
    scene = ConsoleScene(**settings)  # type: ignore[arg-type]
    scene.topic("t", [1, 2])
    scene.cluster.in_sync[T] = [1, 2]
    scene.look()
    return scene


def look(scene: ConsoleScene, seconds: float = 5) -> None:
    scene.runtime.clock.advance(seconds)
    scene.look()


def told(scene: ConsoleScene, *kinds: str) -> list[str]:
    """The oldest first."""
    events = scene.observer.timeline.events(scene.runtime.clock.millis())
    return [each.text for each in reversed(events) if each.kind in kinds or not kinds]


def test_the_first_look_is_no_event() -> None:
    scene = scene_with_topic()
    look(scene)
    assert told(scene) == []


def test_a_broker_dies_and_comes_back() -> None:
    scene = scene_with_topic()
    scene.server.remove(znodes.broker_path(1))
    scene.server.put(znodes.CONTROLLER, znodes.encode_controller(ControllerNode(2, "6")))
    scene.server.put(znodes.CONTROLLER_EPOCH, b"4")
    scene.cluster.leaders[T] = 2
    scene.cluster.in_sync[T] = [2]
    look(scene)
    assert told(scene) == [
        "Broker 1 fell out of sync in partition t-0",
        "The leader of partition t-0 moved from 1 to 2",
        "The controller moved from 1 to 2, epoch 4",
        "Broker 1 (b1:9091) went down",
    ]
    scene.register(BROKERS[0])
    scene.cluster.in_sync[T] = [2, 1]
    look(scene)
    assert set(told(scene)[4:]) == {
        "Broker 1 (b1:9091) came back",
        "Broker 1 is in sync again in partition t-0",
    }


def test_settings_that_somebody_changes() -> None:
    scene = scene_with_topic()
    path = znodes.topic_config_path("t")
    scene.server.put(path, znodes.encode_topic_config({"retention.ms": "5"}))
    scene.server.put("/config/changes/config_change_0000000001", b'"t"')
    look(scene)
    assert told(scene) == ["Settings of t: retention.ms is 5"]


def test_an_event_lies_between_two_looks() -> None:
    scene = scene_with_topic()
    before = scene.runtime.clock.millis()
    scene.topic("u", [1])
    look(scene)
    [event] = scene.observer.timeline.events(scene.runtime.clock.millis())
    assert (event.since_ms, event.time_ms) == (before, before + 5000)


def test_a_look_that_fails_makes_a_gap_when_it_lasts() -> None:
    scene = scene_with_topic()
    began = scene.runtime.clock.millis()
    scene.session.down = True
    scene.cluster.down = {9091, 9092}
    look(scene, 15)
    assert told(scene) == []
    look(scene, 20)
    assert told(scene) == [
        f"The lag of groups: not seen since {moment(began)}",
        f"The cluster: not seen since {moment(began)}",
    ]
    scene.session.down = False
    scene.cluster.down = set()
    scene.topic("u", [1])
    look(scene, 20)
    span = f"from {moment(began)} to {moment(began + 55_000)}"
    assert told(scene, "gap") == [
        f"The cluster: not seen {span}",
        f"The lag of groups: not seen {span}",
    ]
    assert told(scene, "topic") == ["Topic u was created"]


def test_while_no_broker_answers_leaders_are_not_seen() -> None:
    scene = scene_with_topic()
    began = scene.runtime.clock.millis()
    scene.cluster.down = {9091, 9092}
    for _ in range(4):
        look(scene)
    text = "Leaders and replicas in sync: not seen"
    assert told(scene) == [f"{text} since {moment(began)}"]
    scene.cluster.down = set()
    scene.cluster.leaders[T] = 2
    look(scene)
    found = scene.observer.timeline.events(scene.runtime.clock.millis())
    assert {each.text: each.since_ms for each in found} == {
        f"{text} from {moment(began)} to {moment(began + 25_000)}": began,
        "The leader of partition t-0 moved from 1 to 2": began,
    }


def test_a_group_becomes_late() -> None:
    scene = scene_with_topic()
    scene.commit("g", "t", 0)
    look(scene)
    assert told(scene) == []
    scene.produce("t", b"m")
    for _ in range(11):
        look(scene, 10)
    assert told(scene) == ["Group g is STOP, and was OK: lag 1"]


@pytest.mark.parametrize(
    ("action", "target", "text"),
    [
        ("set offsets", "g", "The offsets of group g were set, with this console"),
        ("empty topic", "t", "Topic t was emptied, with this console"),
        ("send message", "t", None),
        ("something new", "t", None),
    ],
)
def test_changes_made_with_the_console(action: str, target: str, text: str | None) -> None:
    scene = scene_with_topic()
    scene.observer.timeline.changed(1, action, target)
    assert told(scene) == ([text] if text else [])


def test_every_action_of_a_page_is_an_event_but_for_a_message() -> None:
    """The actions that pages record, as their sources have them."""
    root = Path(__file__).parents[3] / "kafka08" / "console"
    actions = set()
    for path in root.rglob("*.py"):
        for part in path.read_text(encoding="utf-8").split("visit.record(")[1:]:
            actions.add(part.split('"')[1])
    assert len(actions) == 20
    scene = scene_with_topic()
    for action in actions:
        scene.observer.timeline.changed(1, action, "x")
    assert len(told(scene)) == len(actions - {"send message"})


def test_a_change_is_in_the_timeline_without_who_made_it() -> None:
    scene = ConsoleScene({"u": "ann:admin"}, read_only=False)
    scene.look()
    visit = {"name": "u", "partitions": 1, "factor": 1}
    assert scene.post("/create", **visit).status_code == 401
    scene.observer.timeline.changed(1, "create topic", "u")
    assert told(scene) == ["Topic u was created, with this console"]
    open_to_all = ConsoleScene(read_only=False)
    open_to_all.look()
    assert open_to_all.post("/create", **visit).status_code == 303
    assert told(open_to_all) == [
        "Topic u was created, with this console",
        "Topic u was created",
    ]


def entry(time: str, target: str) -> str:
    values = {"time": time, "user": "ann", "from": "x", "action": "empty topic", "target": target}
    return json.dumps(values) + "\n"


def test_without_a_file_of_history_it_begins_with_the_audit_file(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    lines = [entry(moment(1000), "a"), entry("yesterday", "b"), "{\n", entry(moment(2000), "c")]
    path.write_text("".join(lines), encoding="utf-8")
    scene = scene_with_topic(audit_file=str(path))
    found = scene.observer.timeline.events(scene.runtime.clock.millis())
    assert [(each.time_ms, each.names) for each in found] == [(2000, ("c",)), (1000, ("a",))]
    # One that has events of its own has those changes among them.
    scene.observer.timeline.remember([])
    assert len(told(scene)) == 2


def test_after_a_restart_the_time_without_a_console_is_a_gap(tmp_path: Path) -> None:
    kept: dict[str, object] = {
        "history_path": str(tmp_path / "h"),
        "audit_file": str(tmp_path / "a"),
    }
    scene = scene_with_topic(**kept)
    scene.topic("u", [1])
    look(scene)
    ended = scene.runtime.clock.millis()
    scene.observer.stop()
    again = ConsoleScene(**kept)  # type: ignore[arg-type]
    again.runtime.clock.advance(300)
    again.look()
    span = f"from {moment(ended)} to {moment(again.runtime.clock.millis())}"
    assert told(again) == [
        "Topic u was created",
        f"The cluster: not seen {span}",
        f"The lag of groups: not seen {span}",
    ]
    again.observer.stop()
