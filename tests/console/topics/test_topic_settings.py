"""kafka08.console.topics.topic_settings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kafka08.protocol import admin_schemas as a
from tests.console.scene import BROKERS, ConsoleScene, text_of
from zk import znodes


def scene_with_topic(
    own: dict[str, str] | None = None, *, read_only: bool = False, **settings: object
) -> ConsoleScene:
    scene = ConsoleScene(read_only=read_only, **settings)
    scene.topic("t", [1])
    if own:
        scene.server.put(znodes.topic_config_path("t"), znodes.encode_topic_config(own))
    scene.look()
    return scene


def mark(scene: ConsoleScene) -> str:
    found = re.search(r'name="mark" value="([^"]*)"', scene.get("/topics/t/settings").text)
    assert found
    return found[1]


def own_of(scene: ConsoleScene) -> dict[str, str]:
    return znodes.decode_topic_config("", scene.server.nodes[znodes.topic_config_path("t")].data)


def describes(scene: ConsoleScene, *entries: a.ConfigEntry, error: int = 0) -> None:
    """Broker 1 describes the settings of the topic."""
    found = a.ResourceConfig(error, None, a.TOPIC_RESOURCE, "t", list(entries))

    def script(port: int, request: object) -> object:
        if not isinstance(request, a.DescribeConfigsRequestV1):
            return None
        assert port == BROKERS[0].port
        assert request.resources == [a.DescribedResource(a.TOPIC_RESOURCE, "t", None)]
        assert request.include_synonyms
        return a.DescribeConfigsResponse(0, [found])

    scene.cluster.script = script


def entry(name: str, *synonyms: tuple[str, int]) -> a.ConfigEntry:
    chain = [a.ConfigSynonym(name, value, source) for value, source in synonyms]
    value, source = synonyms[0]
    return a.ConfigEntry(name, value, False, source=source, synonyms=chain)


def test_the_page_has_the_values_that_the_broker_has() -> None:
    scene = scene_with_topic({"retention.ms": "3600000"})
    describes(
        scene,
        entry("retention.ms", ("3600000", a.TOPIC_CONFIG), ("86400000", a.STATIC_BROKER_CONFIG)),
        entry("segment.bytes", ("1073741824", a.DEFAULT_CONFIG)),
    )
    page = scene.page("/topics/t/settings")
    assert "The defaults are those that broker 1 reports." in page
    assert "Now 3600000 (1 h). Default: 86400000 (1 day), broker 1." in page
    assert "Default: 1073741824 (1 GiB), built-in." in page
    answer = scene.client.get("/topics/t/settings", headers={"Accept": "application/json"}).json
    assert answer is not None and (answer["topic"], answer["broker"]) == ("t", 1)
    [row] = [each for each in answer["settings"] if each["name"] == "retention.ms"]
    assert (row["value"], row["plain"], row["type"]) == ("3600000", "1 h", "number")
    assert (row["default"], row["default_source"]) == ("86400000", "broker 1")


def test_without_a_broker_that_tells_them_the_defaults_are_built_in() -> None:
    scene = scene_with_topic()
    describes(scene, error=29)
    expected = "No broker says which values it has"
    assert expected in scene.page("/topics/t/settings")
    scene.cluster.down = {9091}
    assert expected in scene.page("/topics/t/settings")
    scene.server.remove(znodes.broker_path(1))
    scene.cluster.down = set()
    scene.look()
    asked = len(scene.cluster.sent(a.DescribeConfigsRequest))
    page = scene.page("/topics/t/settings")
    assert expected in page and "Default: 604800000 (7 days), built-in." in page
    assert len(scene.cluster.sent(a.DescribeConfigsRequest)) == asked


def test_settings_are_changed(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    own = {"retention.ms": "5", "segment.ms": "6"}
    scene = scene_with_topic(own, audit_file=str(audit))
    fields = {
        "own.retention.ms": "7 days",
        "own.cleanup.policy": "compact",
        "default": "segment.ms",
    }
    answer = scene.post("/topics/t/settings", mark=mark(scene), **fields)
    assert answer.status_code == 303
    assert own_of(scene) == {"retention.ms": "604800000", "cleanup.policy": "compact"}
    assert scene.server.below(znodes.TOPIC_CONFIG_CHANGES)
    line = json.loads(audit.read_text())
    assert (line["action"], line["target"]) == ("change settings", "t")
    assert (line["before"], line["after"]) == (own, own_of(scene))


def test_a_form_without_a_change_changes_nothing() -> None:
    scene = scene_with_topic({"retention.ms": "604800000"})
    shown, writes = mark(scene), len(scene.server.writes)
    answer = scene.post("/topics/t/settings", mark=shown, **{"own.retention.ms": "7 days"})
    assert answer.status_code == 303
    assert "No setting was changed" in text_of(scene.get(answer.headers["Location"]).text)
    assert len(scene.server.writes) == writes


def test_a_mistake_keeps_the_form() -> None:
    scene = scene_with_topic({"segment.ms": "6", "flush.ms": "7"})
    shown, writes = mark(scene), len(scene.server.writes)
    fields = {"own.retention.ms": "a <week>", "own.segment.bytes": "1 MiB", "default": "flush.ms"}
    fields["own.cleanup.policy"] = "compact"
    answer = scene.post("/topics/t/settings", mark=shown, **fields)
    assert answer.status_code == 400
    page = answer.text
    assert re.search(
        r'<input id="own.retention.ms" name="own.retention.ms" aria-describedby='
        r'"wrong-own.retention.ms about-own.retention.ms" aria-invalid="true" autofocus '
        r'value="a &lt;week&gt;"',
        page,
    )
    assert 'id="wrong-own.retention.ms">' in page and "is not like 7 days, 12 h" in page
    assert 'value="1 MiB"' in page and "<option selected>compact</option>" in page
    assert 'name="default" value="flush.ms" checked' in page
    assert 'name="default" value="segment.ms">' in page
    assert len(scene.server.writes) == writes


def test_after_a_conflict_the_form_is_about_the_topic_as_it_is() -> None:
    scene = scene_with_topic()
    fields = {"own.retention.ms": "5"}
    answer = scene.post("/topics/t/settings", mark="old", **fields)
    assert answer.status_code == 409
    assert "Topic t has changed since the form was shown" in answer.text
    found = re.search(r'name="mark" value="([^"]*)"', answer.text)
    assert found is not None
    assert scene.post("/topics/t/settings", mark=found[1], **fields).status_code == 303
    assert own_of(scene) == {"retention.ms": "5"}


def test_who_may_not_change_settings_sees_them() -> None:
    scene = scene_with_topic({"retention.ms": "3600000"}, read_only=True)
    page = scene.get("/topics/t/settings").text
    assert "<form" not in page
    assert "retention.ms number, ms 3600000 (1 h) 604800000 (7 days) built-in" in text_of(page)
    assert "Settings with their defaults" in scene.page("/topics/t")
    answer = scene.post("/topics/t/settings", **{"own.retention.ms": "5"})
    assert answer.status_code == 403


@pytest.mark.parametrize("send", [False, True])
def test_settings_of_an_unknown_topic(send: bool) -> None:
    scene = scene_with_topic()
    path = "/topics/none/settings"
    assert (scene.post(path) if send else scene.get(path)).status_code == 404
