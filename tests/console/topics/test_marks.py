"""kafka08.console.topics.marks."""

from __future__ import annotations

from tests.console.scene import ConsoleScene
from tests.console.topics.test_topic_settings import mark
from zk import znodes


def test_a_mark_changes_with_the_partitions_and_the_settings() -> None:
    scene = ConsoleScene(read_only=False)
    scene.topic("t", [1])
    scene.look()
    marks = [mark(scene)]
    scene.server.put(znodes.topic_path("t"), znodes.encode_topic({0: [1], 1: [1]}))
    marks.append(mark(scene))
    scene.server.put(znodes.topic_config_path("t"), znodes.encode_topic_config({"flush.ms": "1"}))
    marks.append(mark(scene))
    assert len(set(marks)) == 3
    assert mark(scene) == marks[-1]
