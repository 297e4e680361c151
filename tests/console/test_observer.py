"""kafka08.console.observer."""

from __future__ import annotations

import pytest

from kafka08.protocol.admin_schemas import DescribeLogDirsRequest, DescribeLogDirsResponse, LogDir
from tests.console.scene import ConsoleScene


@pytest.mark.scenario("ops-26")
def test_both_loops_look_again_and_again() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.observer.start()
    scene.runtime.step("console-state")
    scene.runtime.step("console-lag")
    assert scene.observer.state is not None
    assert scene.observer.lags is not None
    scene.runtime.step("console-state")
    scene.runtime.step("console-lag")
    assert scene.runtime.slept == [0.0, 0.0, 5.0, 10.0]


def test_stop_ends_both_loops() -> None:
    scene = ConsoleScene()
    scene.observer.start()
    scene.observer.stop()
    assert all(task.ended for task in scene.runtime.tasks)


def test_messages_in_a_second() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    scene.runtime.clock.advance(10)
    scene.produce("t", *[b"m"] * 50)
    scene.look()
    assert scene.observer.rates == {"t": pytest.approx(5.0)}


def test_a_failed_look_keeps_the_last_one() -> None:
    scene = ConsoleScene()
    scene.look()
    scene.cluster.down = {9091, 9092}
    scene.session.down = True
    scene.look()
    assert scene.observer.state is not None
    assert scene.observer.error == "ZooKeeper does not answer"
    assert scene.observer.lag_error
    scene.runtime.clock.advance(3)
    assert scene.observer.age_ms() == 3000


def test_after_an_outage_the_graph_of_a_lag_has_no_zero() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.topic("u", [2], leader=2)
    for topic in ("t", "u"):
        scene.produce(topic, b"m", b"m")
        scene.commit("g", topic, 0)
    for down in (set[int](), {9092}, {9091, 9092}, set[int]()):
        scene.cluster.down = down
        scene.look()
        scene.runtime.clock.advance(60)
    assert [point.value for point in scene.observer.history.points("lag/g")] == [4, 4]
    assert [point.value for point in scene.observer.history.points("end/u")] == [2, 2]
    assert [point.value for point in scene.observer.history.points("end/t")] == [2, 2, 2]


def test_disks_are_read_in_every_third_round_and_of_brokers_that_can_say() -> None:
    scene = ConsoleScene()
    answer = DescribeLogDirsResponse(0, [LogDir(0, "/data", [])])
    scene.cluster.script = lambda _, request: (
        answer if isinstance(request, DescribeLogDirsRequest) else None
    )
    asked = []
    scene.observer.collect()  # which brokers can say it is not known yet
    for _ in range(4):
        scene.look()
        asked.append(len(scene.cluster.sent(DescribeLogDirsRequest)))
    assert asked == [1, 1, 1, 2]
    assert scene.cluster.took(2, DescribeLogDirsRequest) == []
    assert scene.observer.disks.brokers == {1: 0}


def test_bytes_are_read_in_a_loop_of_their_own() -> None:
    scene = ConsoleScene(broker_http=("1=127.0.0.1:9404",), lag_interval_ms=7000)
    scene.observer.start()
    scene.runtime.step("console-traffic")  # nothing is known of the cluster yet
    assert scene.observer.traffic.reasons == {}
    scene.runtime.step("console-state")
    scene.runtime.step("console-traffic")
    assert scene.observer.traffic.reasons.keys() == {1, 2}
    assert scene.runtime.slept == [0.0, 0.0, 7.0]
