"""Unclean elections wait for log ends without holding up the controller's loop."""

from __future__ import annotations

from typing import Any

from kafka08.common import LATEST_TIME, Broker, TopicPartition
from kafka08.controller.log_ends import TIMEOUT_MS, UNKNOWN, ReplicaLogEnds, fetch_log_ends
from kafka08.protocol import schemas
from tests.controller.cluster import ControllerCluster
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from zk import znodes

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
HOSTS = {i: Broker(i, f"host{i}", 9092) for i in (1, 2, 3)}


def node(leader: int, leader_epoch: int, controller_epoch: int, *isr: int) -> Any:
    return znodes.PartitionStateNode(leader, leader_epoch, controller_epoch, isr)


def leaderless(**leos: int) -> ControllerCluster:
    """Broker 2, the whole isr of T0, is dead; 3, 4 and 1 have not told their log ends."""
    cluster = ControllerCluster()
    cluster.leos = {(int(name[1:]), T0): leo for name, leo in leos.items()}
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [2, 3, 4, 1])
    cluster.write_isr(T0, 2)
    cluster.silent = True
    cluster.kill(2)
    assert cluster.state(T0) == node(-1, 1, 1, 2)
    return cluster


def answer(cluster: ControllerCluster) -> None:
    cluster.silent = False
    cluster.settle()


# --- elections


def test_the_longest_log_leads() -> None:
    cluster = leaderless(b3=10, b4=30, b1=20)
    answer(cluster)
    assert cluster.state(T0) == node(4, 2, 1, 4)
    assert cluster.leads(4) == {T0}


def test_of_equal_logs_the_first_replica_leads() -> None:
    cluster = leaderless(b3=10, b4=30, b1=30)
    answer(cluster)
    assert cluster.state(T0).leader == 4


def test_a_replica_that_does_not_answer_has_nothing() -> None:
    cluster = leaderless(b4=0)
    answer(cluster)
    assert cluster.state(T0).leader == 4


def test_if_nobody_answers_the_first_live_replica_leads() -> None:
    cluster = leaderless()
    answer(cluster)
    assert cluster.state(T0) == node(3, 2, 1, 3)


def test_the_only_live_replica_is_not_asked() -> None:
    cluster = leaderless(b3=10)
    cluster.kill(4)
    assert cluster.state(T0).leader == -1  # two are left
    cluster.kill(3)
    assert cluster.state(T0).leader == 1


def test_the_loop_goes_on_while_brokers_are_silent() -> None:
    cluster = leaderless()
    cluster.create_topic("u", [3, 4])
    assert cluster.state(TopicPartition("u", 0)).leader == 3
    assert cluster.state(T0).leader == -1


def test_a_member_of_the_isr_that_is_back_leads_whatever_the_answers_say() -> None:
    cluster = leaderless(b3=10, b4=30, b1=20)
    cluster.start(2)
    assert cluster.state(T0).leader == 2
    answer(cluster)
    assert cluster.state(T0).leader == 2


def test_replicas_that_came_meanwhile_are_asked_too() -> None:
    cluster = ControllerCluster()
    cluster.leos = {(3, T0): 10, (4, T0): 30, (1, T0): 20}
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [2, 3, 4, 1])
    cluster.write_isr(T0, 2)
    cluster.kill(4)
    cluster.silent = True
    cluster.kill(2)
    cluster.start(4)
    answer(cluster)
    assert cluster.state(T0).leader == 4


def test_a_new_controller_asks_again() -> None:
    cluster = leaderless(b3=10, b4=30, b1=20)
    cluster.kill(1)
    answer(cluster)
    assert cluster.state(T0).leader == 4
    assert cluster.state(T0).controller_epoch == 2


# --- the questions


def ask(runtime: FakeRuntime, *told: dict[int, int]) -> tuple[ReplicaLogEnds, list[Any]]:
    """The answers to questions for T0 on brokers 1 and 2, one for each of ``told``."""
    answers: list[Any] = []
    left = list(told)
    log_ends = ReplicaLogEnds(
        runtime,
        lambda broker, partitions, time: dict.fromkeys(partitions, left[0][broker.id]),
        LATEST_TIME,
        lambda number, ends: answers.append((number, ends)),
    )
    for _ in told:
        log_ends.ask({T0: [HOSTS[1], HOSTS[2]]})
    return log_ends, answers


def test_the_answer_comes_once_all_brokers_have_answered() -> None:
    runtime = FakeRuntime()
    _, answers = ask(runtime, {1: 5, 2: 7})
    assert answers == []
    runtime.run("log-ends-of-1")
    assert answers == []
    runtime.run("log-ends-of-2")
    assert answers == [(1, {T0: {1: 5, 2: 7}})]


def test_an_answer_is_void_once_the_question_was_asked_again() -> None:
    runtime = FakeRuntime()
    log_ends, answers = ask(runtime, {1: 5, 2: 7}, {1: 5, 2: 7})
    runtime.run("log-ends-of")
    assert [number for number, _ in answers] == [1, 2]
    assert [log_ends.latest(*each) for each in answers] == [{}, {T0: {1: 5, 2: 7}}]
    assert log_ends.latest(*answers[1]) == {}  # taken


def test_a_fault_is_no_answer() -> None:
    runtime = FakeRuntime()
    answers: list[Any] = []

    def fetch(broker: Broker, partitions: Any, time: int) -> Any:
        if broker.id == 1:
            raise ValueError("a response that makes no sense")
        return {T0: 7}

    log_ends = ReplicaLogEnds(
        runtime, fetch, LATEST_TIME, lambda number, ends: answers.append(ends)
    )
    log_ends.ask({T0: [HOSTS[1], HOSTS[2]]})
    for task in runtime.tasks:
        try:
            task.run()
        except ValueError:
            continue
    assert answers == [{T0: {1: UNKNOWN, 2: 7}}]


def test_join_waits_for_the_tasks() -> None:
    runtime = FakeRuntime()
    log_ends, answers = ask(runtime, {1: 5, 2: 7})
    log_ends.join(1.0)
    assert answers and all(task.ended for task in runtime.tasks)


def test_one_request_asks_a_broker_for_all_its_partitions() -> None:
    cluster = FakeCluster([HOSTS[1]])
    cluster.create("t", 1, leader=1)
    cluster.append("t", 0, *[b"x"] * 42)
    found = fetch_log_ends(FakeRuntime(), HOSTS[1], [T0, T1], channel=cluster.channel)
    assert found == {T0: 42}
    (request,) = cluster.sent(schemas.OffsetsRequest)
    assert request.replica_id == schemas.DEBUG_REPLICA_ID
    assert [part.partition for part in request.topics[0].partitions] == [0, 1]
    assert cluster.options[0]["timeout_ms"] == TIMEOUT_MS


def test_a_broker_that_cannot_be_reached_tells_nothing() -> None:
    assert fetch_log_ends(FakeRuntime(), HOSTS[1], [T0]) == {}
