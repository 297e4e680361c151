"""kafka08.console.brokers.broker_settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kafka08.protocol import admin_schemas as a
from kafka08.server.apis.admin import DescribeConfigsApi, IncrementalAlterConfigsApi
from kafka08.settings.broker import BrokerConfig
from tests.console.scene import BROKERS, ConsoleScene, text_of
from zk import entities, znodes

LEADER = "leader.replication.throttled.rate"
FOLLOWER = "follower.replication.throttled.rate"
PAGE = "/brokers/1/settings"


class Broker1:
    """The APIs of broker 1 over the scene's ZooKeeper. ``refuses``: by resource's name, with what
    text a change is refused. ``fails``: the error of each request of a kind."""

    def __init__(self, scene: ConsoleScene) -> None:
        zk: Any = scene.session
        properties = {
            "broker.id": "1",
            "zookeeper.connect": "zk:2181",
            "log.retention.hours": "24",
            "ssl.keystore.password": "hunter2",
        }
        self.describe = DescribeConfigsApi(zk, BrokerConfig.from_properties(properties))
        self.alter = IncrementalAlterConfigsApi(zk, 1)
        self.refuses: dict[str, str] = {}
        self.fails: dict[type, Exception] = {}
        self.error = 0

    def __call__(self, port: int, request: Any) -> Any:
        if isinstance(request, a.DescribeConfigsRequest | a.IncrementalAlterConfigsRequest):
            assert port == BROKERS[0].port
            for kind, error in self.fails.items():
                if isinstance(request, kind):
                    raise error
        header: Any = None
        if isinstance(request, a.DescribeConfigsRequest):
            if self.error:
                return self.describe.failure(header, request, self.error)
            return self.describe.handle(header, request)
        if isinstance(request, a.IncrementalAlterConfigsRequest):
            kept = [r for r in request.resources if r.resource_name not in self.refuses]
            answer: Any = self.alter.handle(header, request._replace(resources=kept))
            refused = [
                a.ResourceError(40, text, a.BROKER_RESOURCE, name)
                for name, text in self.refuses.items()
            ]
            return answer._replace(resources=[*answer.resources, *refused])
        return None


def scene_with_broker(
    own: dict[str, str] | None = None,
    common: dict[str, str] | None = None,
    *,
    read_only: bool = False,
    **settings: object,
) -> tuple[ConsoleScene, Broker1]:
    scene = ConsoleScene(read_only=read_only, **settings)
    for name, values in (("1", own), (entities.DEFAULT, common)):
        if values:
            path = entities.config_path(f"{entities.BROKERS}/{name}")
            scene.server.put(path, znodes.encode_topic_config(values))
    scene.look()
    scene.cluster.script = broker = Broker1(scene)
    return scene, broker


def stored(scene: ConsoleScene, name: str) -> dict[str, str]:
    path = entities.config_path(f"{entities.BROKERS}/{name}")
    return znodes.decode_topic_config("", scene.server.nodes[path].data)


def mark(scene: ConsoleScene) -> str:
    found = re.search(r'name="mark" value="([^"]*)"', scene.get(PAGE).text)
    assert found
    return found[1]


def data(scene: ConsoleScene, path: str = PAGE) -> Any:
    answer = scene.client.get(path, headers={"Accept": "application/json"})
    assert answer.status_code == 200
    return answer.json


def test_the_page_shows_values_with_units_and_where_they_are_from() -> None:
    scene, _ = scene_with_broker({LEADER: "1048576"}, {FOLLOWER: "5"}, read_only=True)
    html = scene.get(PAGE).text
    page = text_of(html)
    assert (
        "log.retention.hours number, h 24 (1 day) server.properties 168 (7 days) by a restart"
        in page
    )
    assert f"{LEADER} number, bytes/s 1048576 (1 MiB/s) this broker" in page
    assert f"{FOLLOWER} number, bytes/s 5 (5 bytes/s) all brokers" in page
    assert "while it runs Bytes a second that the broker fetches" in page
    assert "num.io.threads number 8 built-in 8" in page
    assert "ssl.keystore.password secret hidden server.properties - by a restart" in page
    assert "hunter2" not in html and "<form" not in html
    assert f'href="{PAGE}"' in scene.get("/brokers/1").text


def test_the_page_as_json() -> None:
    scene, _ = scene_with_broker({LEADER: "1048576"}, {LEADER: "5"})
    found = data(scene)
    assert (found["broker"], found["reason"]) == (1, None)
    rows = {row["name"]: row for row in found["settings"]}
    row = rows[LEADER]
    assert (row["value"], row["plain"], row["source"]) == ("1048576", "1 MiB/s", "this broker")
    assert (row["broker_value"], row["cluster_value"]) == ("1048576", "5")
    assert (row["is_dynamic"], row["unit"], row["default_plain"]) == (True, "bytes/s", "no limit")
    row = rows["ssl.keystore.password"]
    assert (row["value"], row["is_hidden"], row["type"]) == (None, True, "secret")
    assert "hunter2" not in json.dumps(found)


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_broker_of_0822_does_not_know_the_api(accept: str) -> None:
    scene, _ = scene_with_broker()
    answer = scene.client.get("/brokers/2/settings", headers={"Accept": accept})
    assert answer.status_code == 200
    assert "Broker 2 is of 0.8.2.2, which does not report its settings" in answer.text
    assert "<form" not in answer.text and "<table" not in answer.text
    assert scene.cluster.took(2, a.DescribeConfigsRequest) == []
    assert data(scene, "/brokers/2/settings")["settings"] is None
    answer = scene.post("/brokers/2/settings", mark="- -", **{f"broker.{LEADER}": "5"})
    assert answer.status_code == 400
    assert "Nothing was changed. Broker 2 is of 0.8.2.2" in text_of(answer.text)


def test_a_broker_that_is_down_refuses_or_does_not_answer() -> None:
    scene, broker = scene_with_broker()
    broker.error = 31
    assert "Broker 1 does not show its settings to the console" in scene.page(PAGE)
    scene.cluster.down = {9091}
    assert "Broker 1 did not return its settings: port 9091" in scene.page(PAGE)
    answer = scene.post(PAGE, mark="- -", **{f"broker.{LEADER}": "5"})
    assert answer.status_code == 400 and "Nothing was changed" in text_of(answer.text)
    scene.topic("t", [1])
    scene.server.remove(znodes.broker_path(1))
    scene.observer.look()
    assert "Broker 1 is down: only it knows its settings." in scene.page(PAGE)


@pytest.mark.parametrize("send", [False, True])
def test_settings_of_an_unknown_broker(send: bool) -> None:
    scene, _ = scene_with_broker()
    path = "/brokers/9/settings"
    assert (scene.post(path) if send else scene.get(path)).status_code == 404


def test_settings_are_changed_for_the_broker_and_for_all(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    scene, _ = scene_with_broker({LEADER: "7"}, audit_file=str(audit))
    fields = {
        f"broker.{LEADER}": "",
        f"broker.{FOLLOWER}": "1 MiB/s",
        f"cluster.{LEADER}": "10 MiB/s",
    }
    answer = scene.post(PAGE, mark=mark(scene), **fields)
    assert answer.status_code == 303
    assert "The settings of broker 1 were changed." in scene.page(answer.headers["Location"])
    assert stored(scene, "1") == {FOLLOWER: "1048576"}
    assert stored(scene, entities.DEFAULT) == {LEADER: "10485760"}
    assert scene.server.below(znodes.TOPIC_CONFIG_CHANGES)
    line = json.loads(audit.read_text())
    assert (line["action"], line["target"]) == ("change broker settings", "broker 1")
    assert line["before"] == {
        "this broker": {LEADER: "7", FOLLOWER: None},
        "all brokers": {LEADER: None},
    }
    assert line["after"] == {
        "this broker": {LEADER: None, FOLLOWER: "1048576"},
        "all brokers": {LEADER: "10485760"},
    }


def test_a_form_without_a_change_changes_nothing() -> None:
    scene, _ = scene_with_broker({LEADER: "1024"})
    answer = scene.post(PAGE, mark=mark(scene), **{f"broker.{LEADER}": "1 KiB/s"})
    assert answer.status_code == 303
    assert "No setting was changed" in scene.page(answer.headers["Location"])
    assert scene.cluster.sent(a.IncrementalAlterConfigsRequest) == []


def test_a_mistake_keeps_the_form(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    scene, _ = scene_with_broker({LEADER: "7"}, audit_file=str(audit))
    fields = {f"cluster.{LEADER}": "very <fast>", f"broker.{LEADER}": "5 MiB/s"}
    answer = scene.post(PAGE, mark=mark(scene), **fields)
    assert answer.status_code == 400
    name = re.escape(f"cluster.{LEADER}")
    about = re.escape(f"about-{LEADER}")
    assert re.search(
        rf'<input id="{name}" name="{name}" aria-describedby="wrong-{name} {about}" '
        r'aria-invalid="true" autofocus value="very &lt;fast&gt;"',
        answer.text,
    )
    assert re.search(rf'id="wrong-{name}">[^<]*is not like 10 MiB/s', answer.text)
    assert 'value="5 MiB/s"' in answer.text
    assert scene.cluster.sent(a.IncrementalAlterConfigsRequest) == []
    assert audit.read_text() == ""


@pytest.mark.parametrize(
    ("fields", "text", "beside"),
    [
        ({f"broker.{LEADER}": "5"}, "not now", f"broker.{LEADER}"),
        (
            {f"broker.{LEADER}": "5", f"broker.{FOLLOWER}": "6"},
            f"{LEADER} is too small",
            f"broker.{LEADER}",
        ),
        ({f"broker.{LEADER}": "5", f"broker.{FOLLOWER}": "6"}, "not now", ""),
    ],
)
def test_what_the_broker_refuses_is_told_beside_the_field_that_it_names(
    fields: dict[str, str], text: str, beside: str
) -> None:
    scene, broker = scene_with_broker()
    broker.refuses["1"] = text
    answer = scene.post(PAGE, mark=mark(scene), **fields)
    assert answer.status_code == 400
    wrong = re.findall(r'id="wrong-([^"]*)"', answer.text)
    assert wrong == ([beside] if beside else [])
    assert text in text_of(answer.text) and 'value="5"' in answer.text


def test_a_change_that_was_made_for_a_part_is_told_and_recorded(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    scene, broker = scene_with_broker(audit_file=str(audit))
    broker.refuses[""] = "not for all"
    fields = {f"broker.{LEADER}": "5", f"cluster.{LEADER}": "6"}
    answer = scene.post(PAGE, mark=mark(scene), **fields)
    assert answer.status_code == 503
    told = "The settings for this broker were changed. For all brokers: not for all"
    assert told in text_of(answer.text)
    assert stored(scene, "1") == {LEADER: "5"}
    assert json.loads(audit.read_text())["after"] == {"this broker": {LEADER: "5"}}


def test_an_answer_that_is_lost_may_be_a_change() -> None:
    scene, broker = scene_with_broker()
    broker.fails[a.IncrementalAlterConfigsRequest] = ConnectionResetError("reset")
    answer = scene.post(PAGE, mark=mark(scene), **{f"broker.{LEADER}": "5"})
    assert answer.status_code == 503
    assert "It is not known whether this was done. reset" in text_of(answer.text)


@pytest.mark.parametrize("name", ["1", entities.DEFAULT])
def test_a_form_about_other_values_is_refused(name: str) -> None:
    scene, _ = scene_with_broker()
    shown = mark(scene)
    path = entities.config_path(f"{entities.BROKERS}/{name}")
    scene.server.put(path, znodes.encode_topic_config({LEADER: "9"}))
    answer = scene.post(PAGE, mark=shown, **{f"broker.{LEADER}": "5"})
    assert answer.status_code == 409
    assert "A setting of broker 1 has changed since the form was shown" in answer.text
    assert stored(scene, name) == {LEADER: "9"}


def test_a_read_only_console_refuses_a_change() -> None:
    scene, _ = scene_with_broker(read_only=True)
    answer = scene.post(PAGE, **{f"broker.{LEADER}": "5"})
    assert answer.status_code == 403
    assert scene.cluster.sent(a.IncrementalAlterConfigsRequest) == []
