"""kafka08.console.condition."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.condition import Verdict, condition
from tests.console.scene import ConsoleScene
from zk import znodes


def found(scene: ConsoleScene) -> tuple[Verdict, list[str]]:
    scene.look()
    observer = scene.observer
    verdict, causes = condition(observer.state, observer.error, scene.runtime.clock.millis())
    return verdict, list(causes)


def scene_with_topics(*replicas: int) -> ConsoleScene:
    scene = ConsoleScene()
    scene.topic("t", list(replicas or (1,)))
    return scene


def test_a_cluster_that_is_well() -> None:
    assert found(scene_with_topics()) == (Verdict.WELL, [])


def test_a_dead_broker_is_named_with_what_it_takes_away() -> None:
    scene = scene_with_topics(1, 2)
    scene.topic("single", [2], leader=-1, isr=[])
    found(scene)
    del scene.server.nodes["/brokers/ids/2"]
    found(scene)
    scene.runtime.clock.advance(12)
    verdict, causes = found(scene)
    assert verdict == Verdict.LOSING
    assert causes == [
        "Broker 2 (b2:9092) is down for 12 s: 2 replicas missing, single-0 without a leader"
    ]


def test_what_cannot_be_seen() -> None:
    scene = scene_with_topics()
    assert condition(None, "", 0).causes == (
        "It cannot be seen: the cluster has not been read yet",
    )
    scene.cluster.down = {9091, 9092}
    assert found(scene) == (
        Verdict.DEGRADED,
        ["No broker answers: leaders and replicas in sync are unknown"],
    )
    scene.session.down = True
    assert found(scene) == (Verdict.DEGRADED, ["It cannot be seen: ZooKeeper does not answer"])


def test_a_dead_cluster() -> None:
    scene = scene_with_topics()
    found(scene)
    for id_ in (1, 2):
        del scene.server.nodes[f"/brokers/ids/{id_}"]
    verdict, causes = found(scene)
    assert verdict == Verdict.LOSING
    assert causes[0] == "No broker is registered"


@pytest.mark.parametrize(
    ("failed", "full", "told"),
    [
        (["t"], [], "Broker 1 (b1:9091) has a failed data directory with 1 partitions"),
        ([], ["t"], "Broker 1 (b1:9091) has a full disk with 1 partitions"),
    ],
)
def test_disks(failed: list[str], full: list[str], told: str) -> None:
    scene = scene_with_topics()
    lists = ([TopicPartition(each, 0) for each in names] for names in (failed, full))
    scene.server.put(znodes.offline_replicas_path(1), znodes.encode_offline_replicas(*lists))
    assert found(scene) == (Verdict.DEGRADED, [told])


def test_no_controller() -> None:
    scene = scene_with_topics()
    del scene.server.nodes[znodes.CONTROLLER]
    assert found(scene) == (Verdict.DEGRADED, ["There is no controller"])


def test_the_overview_has_the_sentence_and_its_causes() -> None:
    scene = scene_with_topics()
    scene.topic("pair", [1, 2])
    scene.commit("g", "t", 0)
    scene.look()
    behind = "1 partitions are under-replicated although their brokers are up"
    assert f"The cluster is degraded. {behind}." in scene.page("/")
    del scene.server.nodes["/brokers/ids/2"]
    scene.look()
    assert "The cluster is degraded. Broker 2 (b2:9092) is down for 0 s" in scene.page("/")
