"""kafka08.console.pages.terminal."""

from __future__ import annotations

import pytest

from kafka08.console.shown import moment
from tests.console.scene import ConsoleScene
from zk import znodes


def scene_with_group(name: str = "readers", topic: str = "t") -> ConsoleScene:
    scene = ConsoleScene()
    scene.topic(topic, [1])
    scene.topic("pair", [1, 2])
    scene.produce(topic, *[b"m"] * 1234)
    scene.commit(name, topic, 0)
    scene.commit("done", topic, 1234)
    scene.look()
    return scene


def text(scene: ConsoleScene, code: int = 200) -> str:
    answer = scene.client.get("/", headers={"Accept": "*/*", "User-Agent": "curl/7.88.1"})
    assert (answer.status_code, answer.mimetype) == (code, "text/plain")
    assert answer.text.endswith("\n")
    assert max(map(len, answer.text.splitlines())) <= 80
    return answer.text


def test_a_cluster_as_text() -> None:
    scene = scene_with_group()
    seen = moment(scene.runtime.clock.millis())
    assert (
        text(scene)
        == f"""\
The cluster is degraded.
  1 partitions are under-replicated although their brokers are up.

zk:2181, seen {seen}

Brokers: 2 of 2 up
  1  up  controller  b1:9091
  2  up              b2:9092

Partitions: 2 in 2 topics
        1  under-replicated
        0  without a leader
        0  being moved
  unknown  messages in a second
  unknown  from producers
  unknown  to consumers

Groups: 2, with lag 1
  1,234  STOP  0 s  readers
"""
    )


@pytest.mark.parametrize("accept", ["text/plain", "*/*", "", "text/plain, text/html;q=0.5"])
def test_who_gets_text(accept: str) -> None:
    answer = scene_with_group().client.get("/", headers={"Accept": accept} if accept else {})
    assert answer.mimetype == "text/plain"


def test_browsers_get_a_page() -> None:
    accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    answer = scene_with_group().client.get("/", headers={"Accept": accept})
    assert answer.mimetype == "text/html"


def test_a_cluster_that_loses_data_has_a_code_for_scripts() -> None:
    scene = scene_with_group()
    scene.topic("single", [2], leader=-1, isr=[])
    scene.server.remove(znodes.broker_path(2))
    scene.look()
    found = text(scene, 503)
    assert found.startswith("The cluster is losing data.\n")
    assert "single-0 without a\n  leader." in found
    assert "  2  down              b2:9092\n" in found
    assert "  1  without a leader\n" in found.replace("        ", "  ")
    assert scene.get("/").status_code == 200


def test_what_is_not_known() -> None:
    answer = ConsoleScene().client.get("/")
    assert (answer.status_code, answer.mimetype) == (503, "text/plain")
    assert answer.text.endswith("the cluster has not been read yet\n")
    scene = scene_with_group()
    scene.cluster.down = {9091, 9092}
    scene.look()
    found = text(scene)
    assert "  unknown  under-replicated\n  unknown  without a leader\n" in found
    assert "\nLag cannot be collected: " in found
    scene.session.down = True
    scene.look()
    assert "  It cannot be seen: ZooKeeper does not answer.\n" in text(scene)


def test_the_groups_with_the_largest_lag_come_first() -> None:
    scene = scene_with_group()
    for number in range(15):
        scene.commit(f"g{number:02}", "t", 1000 + number)
    scene.look()
    lines = text(scene).splitlines()
    start = lines.index("Groups: 17, with lag 16")
    assert [line.split()[-1] for line in lines[start + 1 : start + 4]] == ["readers", "g00", "g01"]
    assert lines[start + 11 :] == ["  and 6 more"]


@pytest.mark.parametrize("name", ["x" * 200, "\x1b[31mred\x1b[0m", "a\u202eb"])
def test_names_are_cut_and_never_obeyed(name: str) -> None:
    found = text(scene_with_group(name))
    assert all(each.isprintable() or each == "\n" for each in found)
    line = found.splitlines()[-1]
    assert line.endswith("..." if len(name) > 80 else name[-1])


def test_a_login_is_needed_for_it_too() -> None:
    scene = ConsoleScene({"r": "ann:reader"})
    scene.look()
    assert scene.client.get("/").status_code == 401
    assert scene.client.get("/", auth=("ann", "secret")).status_code == 200


def test_bytes_in_a_second() -> None:
    scene = ConsoleScene(broker_http=("1=127.0.0.1:9404",))
    scene.topic("t", [1])
    scene.look()
    scene.count_bytes({"": (0, 0)}, {"": (20480, 5120)})
    found = text(scene)
    assert "2.0 KiB/s  from producers\n" in found
    assert "  512 B/s  to consumers\n" in found
