"""Whole controllers against a ZooKeeper in memory: their writes and their requests."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.config import BrokerConfig
from kafka08.controller import events
from kafka08.controller.controller import Controller, _Reply
from kafka08.errors import KafkaError
from kafka08.protocol import schemas
from kafka08.runtime import ThreadRuntime
from tests.controller.cluster import Cluster, FakeConnection
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import Session
from zk import znodes
from zk.client import CreateOp, DeleteOp, SessionState, SetOp
from zk.errors import NoNodeError

T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))


def node(leader: int, leader_epoch: int, controller_epoch: int, *isr: int) -> Any:
    return znodes.PartitionStateNode(leader, leader_epoch, controller_epoch, isr)


def three(**settings: str) -> Cluster:
    cluster = Cluster(**settings)
    cluster.start(1, 2, 3)
    return cluster


def shut_down(cluster: Cluster, broker_id: int) -> list[TopicPartition]:
    """Call ControlledShutdown; returns the partitions still led, or the error."""
    reply = _Reply(FakeRuntime())
    cluster.controller._queue.put(events.ControlledShutdown(broker_id, reply))
    cluster.settle()
    return reply.wait(0)


# Election


def test_one_of_many_is_elected(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster = three()
    assert cluster.controller.broker.id == 1
    assert cluster.controller.epoch == 1
    assert cluster.admin.get("/controller_epoch")[0] == b"1"
    assert znodes.decode_controller("", cluster.admin.get("/controller")[0]).broker_id == 1
    assert {c.controller_id for c in cluster.controllers.values()} == {1}
    assert (
        "kafka.server.ZookeeperLeaderElector",
        logging.INFO,
        "1 successfully elected as leader",
    ) in caplog.record_tuples


def test_brokers_of_an_empty_cluster_know_each_other() -> None:
    cluster = three()
    assert [set(b.metadata.brokers) for b in cluster.brokers.values()] == [{1, 2, 3}] * 3
    cluster.kill(3)
    assert [set(b.metadata.brokers) for b in cluster.brokers.values()] == [{1, 2}] * 2


def test_request_headers_and_senders() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2])
    ids = {
        (type(request), client_id)
        for broker in cluster.brokers.values()
        for client_id, request in broker.requests
    }
    client_id = "id_1-host_null-port_9092"
    assert ids == {
        (schemas.LeaderAndIsrRequest, client_id),
        (schemas.UpdateMetadataRequest, client_id),
    }


# Topics


def test_new_topic() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1], [3, 1, 2])
    assert cluster.state(T0) == node(2, 0, 1, 2, 3, 1)
    assert cluster.state(T1) == node(3, 0, 1, 3, 1, 2)
    assert cluster.version(T0) == 0
    for broker in cluster.brokers.values():
        assert broker.states[T0] == schemas.PartitionState("t", 0, 1, 2, 0, [2, 3, 1], 0, [2, 3, 1])
        assert broker.metadata.partition_count("t") == 2


def test_new_topic_with_dead_replicas() -> None:
    cluster = three()
    cluster.kill(2)
    cluster.create_topic("t", [2, 3, 1], [2])
    assert cluster.state(T0) == node(3, 0, 1, 3, 1)
    assert not cluster.exists(znodes.partition_state_path(*T1))
    cluster.start(2)
    assert cluster.state(T1) == node(2, 0, 1, 2)
    assert cluster.brokers[2].states[T0].leader == 3


def test_partitions_added() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2])
    before = cluster.state(T0)
    path = znodes.topic_path("t")
    cluster.admin.set(path, znodes.encode_topic({0: [1, 2], 1: [2, 3], 2: [3, 1]}))
    cluster.settle()
    assert cluster.state(T0) == before
    assert cluster.state(T1) == node(2, 0, 1, 2, 3)
    assert cluster.brokers[3].leads() == {T2}
    # The watch is set again.
    cluster.admin.set(path, znodes.encode_topic({p: [1] for p in range(4)}))
    cluster.settle()
    assert cluster.state(TopicPartition("t", 3)).leader == 1


def test_topic_removed_by_hand_and_made_again() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2])
    cluster.admin.delete_recursive(znodes.topic_path("t"))
    cluster.admin.delete_recursive(znodes.topic_config_path("t"))
    cluster.settle()
    assert cluster.context.assignment == {}
    cluster.create_topic("t", [2, 3])
    assert cluster.state(T0) == node(2, 0, 1, 2, 3)


def test_malformed_nodes_disturb_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    cluster = three()
    cluster.admin.create(znodes.broker_path(9), b"{nonsense", ephemeral=True)
    cluster.admin.create("/brokers/ids/x", b"", ephemeral=True)
    cluster.admin.create(znodes.topic_path("bad"), b'{"version":1,"partitions":{"0":["1"]}}')
    cluster.admin.create(znodes.REASSIGN_PARTITIONS, b"[")
    cluster.create_topic("t", [1, 2])
    assert cluster.state(T0).leader == 1
    assert "Malformed data at /brokers/ids/9" in caplog.text
    # Repaired, the topic is taken up.
    cluster.admin.set(znodes.topic_path("bad"), znodes.encode_topic({0: [2]}))
    cluster.settle()
    assert cluster.state(TopicPartition("bad", 0)).leader == 2
    # A new controller copes as well.
    cluster.kill(1)
    assert cluster.state(T0).leader == 2


# Brokers come and go


def test_leader_dies() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1])
    cluster.kill(2)
    # Elected (epoch 1), then the dead one leaves the isr: it had with the election.
    assert cluster.state(T0) == node(3, 1, 1, 3, 1)
    assert cluster.brokers[3].leads() == {T0}
    assert cluster.brokers[1].states[T0].leader == 3
    assert cluster.brokers[1].metadata.topic_metadata("t").partitions[0].leader == 3


def test_follower_dies() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1])
    cluster.kill(3)
    assert cluster.state(T0) == node(2, 1, 1, 2, 1)
    assert cluster.brokers[2].states[T0].isr == [2, 1]


def test_follower_out_of_the_isr_dies() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1])
    cluster.write_isr(T0, 2, 1)
    cluster.kill(3)
    assert cluster.state(T0) == node(2, 0, 1, 2, 1)
    assert cluster.version(T0) == 1


def test_replication_factor_one() -> None:
    cluster = three()
    cluster.create_topic("t", [2])
    cluster.kill(2)
    assert cluster.state(T0) == node(-1, 1, 1, 2)
    assert cluster.brokers[1].metadata.topic_metadata("t").partitions[0].error == 5
    cluster.start(2)
    assert cluster.state(T0) == node(2, 2, 1, 2)
    assert cluster.brokers[2].leads() == {T0}


def test_unclean_election_off() -> None:
    cluster = three(unclean_leader_election_enable="false")
    cluster.create_topic("t", [2, 3])
    cluster.kill(3)
    cluster.start(3)
    assert cluster.state(T0).isr == (2,)
    cluster.kill(2)
    assert cluster.state(T0) == node(-1, 2, 1, 2)
    cluster.start(2)
    assert cluster.state(T0) == node(2, 3, 1, 2)


def test_unclean_election_on() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    cluster.write_isr(T0, 2)
    cluster.kill(2)
    assert cluster.state(T0) == node(3, 1, 1, 3)
    cluster.start(2)
    assert cluster.state(T0) == node(3, 1, 1, 3)


@pytest.mark.parametrize(
    ("broker", "topic", "leader"), [("true", "FALSE", -1), ("false", "true", 3)]
)
def test_the_topics_setting_decides(broker: str, topic: str, leader: int) -> None:
    cluster = three(unclean_leader_election_enable=broker)
    cluster.create_topic("t", [2, 3])
    cluster.configure("t", unclean_leader_election_enable=topic)
    cluster.write_isr(T0, 2)
    cluster.kill(2)
    assert cluster.state(T0).leader == leader


def test_a_bounce_that_nobody_saw() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2])
    cluster.forget_requests()
    cluster.sessions[2].delete(znodes.broker_path(2))
    cluster.brokers[2].states.clear()
    cluster.register(2)
    cluster.settle()
    assert cluster.state(T0) == node(3, 1, 1, 3)
    assert cluster.state(T1) == node(3, 1, 1, 3)
    # The first LeaderAndIsr of the new process carries all it hosts.
    first = cluster.brokers[2].took(schemas.LeaderAndIsrRequest)[0]
    assert {state.partition for state in first.partitions} == {0, 1}
    assert set(cluster.brokers[2].states) == {T0, T1}
    assert set(cluster.brokers[1].metadata.brokers) == {1, 2, 3}


def test_a_broker_with_nothing_new_changes_nothing() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    cluster.forget_requests()
    cluster.controller._queue.put(events.BrokerIdsChanged(1))
    cluster.settle()
    assert not any(broker.requests for broker in cluster.brokers.values())


def test_first_request_to_a_returning_broker_has_everything() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2], [1, 3])
    cluster.kill(3)
    cluster.start(3)
    kinds = [type(request) for _, request in cluster.brokers[3].requests]
    assert kinds[:2] == [schemas.UpdateMetadataRequest, schemas.LeaderAndIsrRequest]
    assert {s.partition for s in cluster.brokers[3].requests[1][1].partitions} == {0, 1, 2}
    assert cluster.brokers[3].metadata.partition_count("t") == 3


def test_several_brokers_die_at_once() -> None:
    cluster = Cluster()
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [2, 3, 4], [2, 3])
    cluster.kill(2, 3)
    assert cluster.state(T0) == node(4, 1, 1, 4)
    assert cluster.state(T1) == node(-1, 1, 1, 2, 3)
    cluster.start(3)
    assert cluster.state(T1) == node(3, 2, 1, 3)


# The controller goes


def test_controller_dies() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2])
    cluster.kill(1)
    assert cluster.controller.epoch == 2
    assert cluster.state(T0) == node(2, 0, 1, 2, 3)
    assert {b.controller_epoch for b in cluster.brokers.values()} == {2}


def test_controller_dies_that_also_leads() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2, 3])
    cluster.kill(1)
    # The new controller knew of the death when it read the isr; the leader shrinks it.
    assert cluster.state(T0) == node(2, 1, 2, 2, 3)
    assert cluster.brokers[2].leads() == {T0}


def test_who_dies_with_the_controller_leaves_every_isr() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 1, 3], [1, 2, 3], [3, 2])
    cluster.kill(1)
    assert cluster.state(T0) == node(2, 1, 2, 2, 3)
    assert cluster.brokers[2].states[T0].isr == [2, 3]
    assert cluster.brokers[3].metadata.topic_metadata("t").partitions[0].isr == [2, 3]
    # The election alone took it out of this one, and it was not in that one.
    assert cluster.state(T1) == node(2, 1, 2, 2, 3)
    assert cluster.state(T2) == node(3, 0, 1, 3, 2)


def test_an_isr_of_dead_brokers_stays_at_failover() -> None:
    cluster = three(unclean_leader_election_enable="false")
    cluster.create_topic("t", [2, 1], [1, 2, 3])
    cluster.kill(1, 2)
    assert cluster.state(T0) == node(2, 0, 1, 2, 1)
    assert cluster.state(T1) == node(3, 1, 2, 3)


def test_controller_dies_between_writing_and_sending() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    dead, cluster.brokers[2] = cluster.brokers[2], None  # type: ignore[assignment]
    cluster.brokers.pop(2)
    cluster.controllers.pop(2)
    cluster.sessions.pop(2).lose_session()
    controller = cluster.controllers[1]
    while not controller._queue.empty():
        controller.step(controller._queue.get())
    assert cluster.state(T0).leader == 3
    assert cluster.brokers[3].states[T0].leader == 2
    assert dead.leads() == {T0}
    cluster.kill(1)
    assert cluster.state(T0) == node(3, 1, 1, 3)
    assert cluster.brokers[3].leads() == {T0}


def test_controller_moves_by_hand() -> None:
    cluster = three()
    cluster.admin.delete("/controller")
    cluster.settle()
    assert cluster.controller.epoch == 2


def test_an_office_lost_while_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node made again by a term that went on would have no epoch of its own."""
    cluster = three()
    session = cluster.sessions[1]
    real = session.get

    def get(path: str, watch: Any = None) -> Any:
        found = real(path, watch)
        if path == "/controller" and watch is None:
            monkeypatch.undo()
            cluster.admin.delete(path)
        return found

    monkeypatch.setattr(session, "get", get)
    cluster.controllers[1].step(events.ControllerChanged())
    cluster.settle()
    assert cluster.controller.epoch == 2


def test_a_zombie_changes_nothing() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [1, 2])
    old = cluster.controllers[1]
    cluster.frozen.add(1)
    cluster.sessions[1].lose_session()
    cluster.settle()
    assert cluster.controller.broker.id == 2
    assert cluster.controller.epoch == 2
    # It wakes up and acts, on a view that has passed, with calls that still go through.
    cluster.sessions[1].expired = False
    old._queue.items.clear()
    cluster.admin.create(znodes.topic_path("u"), znodes.encode_topic({0: [3]}))
    cluster.server.writes.clear()
    old.step(events.TopicsChanged(1))
    # An empty parent is all it made.
    assert cluster.server.writes == [CreateOp("/brokers/topics/u/partitions")]
    assert not old.epoch
    old.step(events.ControllerChanged())
    assert old.controller_id == 2
    cluster.frozen.clear()
    cluster.settle()
    assert cluster.state(TopicPartition("u", 0)) == node(3, 0, 2, 3)


def test_requests_of_a_zombie_are_refused() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    old = cluster.controllers[1]
    active = old._active
    cluster.frozen.add(1)
    cluster.sessions[1].lose_session()
    cluster.settle()
    assert active is not None
    cluster.forget_requests()
    active._send_metadata([2], None)
    cluster.deliver(1)
    (request,) = cluster.brokers[2].took(schemas.UpdateMetadataRequest)
    assert request.controller_epoch == 1
    assert cluster.brokers[2].controller_epoch == 2


def test_session_expiry_stops_sending_at_once_and_elects_again() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    old = cluster.controllers[1]
    assert old._active is not None
    cluster.frozen.add(1)
    cluster.sessions[1].lose_session()
    cluster.settle()
    cluster.forget_requests()
    old._active._send_metadata([2, 3], None)
    old._queue.put(events.TopicsChanged(1))
    cluster.sessions[1].renew_session()
    old.session_expired()
    cluster.register(1)
    cluster.frozen.clear()
    cluster.deliver(1)
    assert not any(broker.requests for broker in cluster.brokers.values())
    cluster.settle()
    assert cluster.controller.broker.id == 2
    assert old.controller_id == 2
    # And it is a candidate like any other.
    cluster.kill(2, 3)
    assert cluster.controller is old
    assert old.epoch == 3


def test_own_node_of_a_former_session_is_not_taken_for_ours() -> None:
    cluster = Cluster()
    stale = znodes.encode_controller(znodes.ControllerNode(1, "1"))
    cluster.admin.create("/controller", stale, ephemeral=True)
    cluster.start(1)
    assert not cluster.controllers[1].epoch
    assert cluster.controllers[1].controller_id == 1
    cluster.admin.lose_session()
    cluster.settle()
    assert cluster.controllers[1].epoch


def test_resigning_twice_is_fine_and_deletes_only_our_node() -> None:
    cluster = three()
    first = cluster.controller
    first.step(events.Shutdown())
    assert not cluster.exists("/controller")
    cluster.settle()
    assert cluster.controller.broker.id == 2
    first.step(events.Shutdown())
    assert znodes.decode_controller("", cluster.admin.get("/controller")[0]).broker_id == 2
    cluster.controllers[3].step(events.Shutdown())
    assert cluster.exists("/controller")


def test_stop_ends_every_task() -> None:
    cluster = three()
    runtime = cluster.runtimes[1]
    cluster.controller.stop()
    cluster.controller.step(events.Shutdown())
    assert [task.name for task in runtime.tasks if not task.ended] == []
    assert {task.name for task in runtime.tasks} >= {
        "Controller-1-to-broker-2-send-thread",
        "partition-rebalance-thread",
    }


def test_the_loop_starts_answers_and_stops() -> None:
    cluster = Cluster()
    before = threading.active_count()
    config = BrokerConfig.from_properties({"broker.id": "1", "zookeeper.connect": "fake"})
    controller = Controller(
        config,
        cluster.sessions.setdefault(1, Session(cluster.server)),  # type: ignore[arg-type]
        ThreadRuntime(),
        broker=Broker(1, "h", 9092),
        connect=lambda broker: FakeConnection(cluster, broker),
    )
    controller.start()
    # Answered after the events before it, the election among them.
    with pytest.raises(KafkaError, match="Broker id 1 does not exist"):
        controller.controlled_shutdown(1)
    assert controller.epoch
    controller.stop()
    assert not cluster.exists("/controller")
    assert threading.active_count() == before
    with pytest.raises(KafkaError, match="Controller moved"):
        controller.controlled_shutdown(1)
    controller.stop()


def test_epoch_that_cannot_be_set_aborts_the_failover() -> None:
    cluster = Cluster()
    cluster.admin.create("/controller_epoch", b"many")
    cluster.start(1, settle=False)
    assert not cluster.controllers[1].epoch
    assert not cluster.exists("/controller")
    cluster.admin.set("/controller_epoch", b"41")
    cluster.controllers[1].step(events.ControllerChanged())
    assert cluster.controllers[1].epoch == 42


def test_losing_the_connection_alone_changes_nothing() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    controller = cluster.controller
    cluster.sessions[1].tell(SessionState.SUSPENDED)
    assert controller.epoch
    # A topic created meanwhile is found when the watches are armed again.
    cluster.server._child_watches.clear()
    cluster.server._data_watches.clear()
    cluster.create_topic("u", [3], settle=False)
    for session in cluster.sessions.values():
        session.tell(SessionState.CONNECTED)
    cluster.settle()
    assert cluster.controller is controller
    assert controller.epoch == 1
    assert cluster.state(TopicPartition("u", 0)).leader == 3
    cluster.create_topic("v", [2])
    assert cluster.state(TopicPartition("v", 0)).leader == 2


def test_no_answer_from_zookeeper_ends_the_term_and_a_new_one_reads_all_again() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    controller = cluster.controller
    cluster.sessions[1].down = True
    cluster.create_topic("u", [3], settle=False)
    cluster.settle()
    assert not controller.epoch
    controller.step(events.ControllerChanged())
    cluster.sessions[1].down = False
    controller.step(events.ControllerChanged())
    cluster.settle()
    assert cluster.controller is controller
    assert controller.epoch == 2
    assert cluster.state(TopicPartition("u", 0)).leader == 3


def test_a_state_changed_by_its_leader_meanwhile_is_read_again() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1], [2, 1])
    cluster.sessions[1].before_multi = lambda: cluster.write_isr(T0, 2, 1, settle=False)
    cluster.kill(2)
    assert cluster.state(T0) == node(1, 1, 1, 1)
    assert cluster.state(T1) == node(1, 1, 1, 1)


def test_elections_read_nothing_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1], [3, 2, 1])
    read: list[str] = []
    session = cluster.sessions[1]
    original = session.get_if_exists

    def noted(path: str) -> Any:
        read.append(path)
        return original(path)

    monkeypatch.setattr(session, "get_if_exists", noted)
    cluster.kill(2)
    assert cluster.state(T0) == node(3, 1, 1, 3, 1)
    assert cluster.state(T1) == node(3, 1, 1, 3, 1)
    # Only of the partition it has just left by an election is it asked once more.
    assert [path for path in read if "/state" in path] == [znodes.partition_state_path(*T0)]


def test_elections_do_not_trust_an_isr_that_has_changed_since() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1], [2, 3], [1, 3])
    t2 = TopicPartition("t", 2)
    cluster.kill(3)
    cluster.start(3)
    # Unknown to the controller, a follower has left and others are back.
    cluster.write_isr(T0, 2)
    cluster.write_isr(T0, 2, 3)
    cluster.write_isr(T1, 2, 3)
    cluster.write_isr(t2, 1, 3)
    cluster.kill(2)
    assert (cluster.state(T0).leader, cluster.state(T0).isr) == (3, (3,))
    assert (cluster.state(T1).leader, cluster.state(T1).isr) == (3, (3,))
    cluster.kill(3)
    assert (cluster.state(t2).leader, cluster.state(t2).isr) == (1, (1,))


def test_a_changed_state_among_many_costs_few_transactions() -> None:
    cluster = three()
    cluster.create_topic("t", *([2, 3] for _ in range(250)))
    for number in (7, 120, 249):
        partition = TopicPartition("t", number)
        cluster.write_isr(partition, 2)
        cluster.write_isr(partition, 2, 3)
    transactions = []
    apply = cluster.server.apply

    def counted(ops: Any, session: int) -> Any:
        transactions.append(len(ops))
        return apply(ops, session)

    cluster.server.apply = counted  # type: ignore[method-assign]
    cluster.kill(2)
    assert len(cluster.brokers[3].leads()) == 250
    assert len(transactions) < 15


# Controlled shutdown


def test_controlled_shutdown_moves_leaders_and_stops_followers() -> None:
    cluster = three()
    cluster.create_topic("t", [3, 1, 2], [1, 3], [3])
    cluster.forget_requests()
    assert shut_down(cluster, 3) == []
    assert cluster.state(T0) == node(1, 1, 1, 1, 2)
    assert cluster.state(T1) == node(1, 1, 1, 1)
    # Nothing can be done for a single replica, and it does not count.
    assert cluster.state(T2) == node(3, 0, 1, 3)
    stops = cluster.brokers[3].took(schemas.StopReplicaRequest)
    assert stops
    assert all(not s.delete_partitions and s.partitions == [("t", 1)] for s in stops)
    assert {c for c, r in cluster.brokers[3].requests if r in stops} == {""}
    # Requests still reach it.
    assert cluster.brokers[3].states[T0].leader == 1
    cluster.kill(3)
    assert cluster.state(T0) == node(1, 1, 1, 1, 2)
    assert cluster.context.shutting_down == set()


def test_controlled_shutdown_of_the_only_isr_member() -> None:
    cluster = three()
    cluster.create_topic("t", [3, 1])
    cluster.write_isr(T0, 3)
    assert shut_down(cluster, 3) == [T0]
    assert cluster.state(T0).leader == 3
    cluster.write_isr(T0, 3, 1)
    assert shut_down(cluster, 3) == []
    assert cluster.state(T0).leader == 1


def test_brokers_shutting_down_are_not_elected() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1])
    shut_down(cluster, 3)
    cluster.write_isr(T0, 2, 3, 1)
    cluster.kill(2)
    assert cluster.state(T0).leader == 1


def test_controlled_shutdown_errors() -> None:
    cluster = three()
    with pytest.raises(KafkaError, match="Broker id 9 does not exist") as unknown:
        shut_down(cluster, 9)
    assert unknown.value.code == -1
    reply = _Reply(FakeRuntime())
    cluster.controllers[2].step(events.ControlledShutdown(3, reply))
    with pytest.raises(KafkaError, match="Controller moved") as moved:
        reply.wait(0)
    assert moved.value.code == -1
    cluster.controllers[2].step(events.Shutdown())
    with pytest.raises(KafkaError, match="Controller moved"):
        cluster.controllers[2].controlled_shutdown(3)


def test_controlled_shutdown_of_the_controller() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2, 3])
    assert shut_down(cluster, 1) == []
    cluster.controllers[1].step(events.Shutdown())
    cluster.kill(1)
    assert cluster.controller.broker.id == 2
    assert cluster.state(T0).leader == 2
    assert cluster.state(T0).leader_epoch == 1


# Preferred replicas


def test_preferred_election() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2])
    cluster.kill(2)
    cluster.start(2)
    cluster.write_isr(T0, 3, 2)
    cluster.elect_preferred(T0, T1, TopicPartition("nowhere", 0))
    assert cluster.state(T0) == node(2, 2, 1, 3, 2)
    assert cluster.brokers[2].leads() == {T0}
    assert cluster.state(T1).leader == 3
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)
    # The watch is armed for the next.
    cluster.elect_preferred(T0)
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)


def test_preferred_election_with_a_dead_preferred_replica() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    cluster.kill(2)
    before = cluster.state(T0)
    cluster.elect_preferred(T0)
    assert cluster.state(T0) == before
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)


def test_preferred_election_pending_at_failover() -> None:
    cluster = three()
    cluster.create_topic("t", [3, 2])
    cluster.kill(3)
    cluster.start(3)
    cluster.write_isr(T0, 2, 3)
    cluster.frozen.add(1)
    cluster.elect_preferred(T0)
    assert cluster.state(T0).leader == 2
    cluster.kill(1)
    assert cluster.state(T0).leader == 3
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)


def rebalance(cluster: Cluster) -> None:
    cluster.controller._queue.put(events.RebalanceDue(1))
    cluster.settle()


def test_auto_rebalance() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [2, 3])
    cluster.kill(2)
    cluster.start(2)
    cluster.write_isr(T0, 3, 2)
    rebalance(cluster)
    assert cluster.state(T0).leader == 2
    assert cluster.state(T1).leader == 3
    cluster.write_isr(T1, 3, 2)
    rebalance(cluster)
    assert cluster.state(T1).leader == 2


def test_auto_rebalance_only_above_the_percentage() -> None:
    cluster = three(leader_imbalance_per_broker_percentage="50")
    cluster.create_topic("t", [2, 3], [2, 3])
    cluster.kill(2)
    cluster.start(2)
    cluster.write_isr(T0, 3, 2)
    cluster.elect_preferred(T0)
    cluster.write_isr(T1, 3, 2)
    rebalance(cluster)
    assert cluster.state(T1).leader == 3


def test_auto_rebalance_can_be_off() -> None:
    cluster = three(auto_leader_rebalance_enable="false")
    assert not any("rebalance" in task.name for task in cluster.runtimes[1].tasks)


# Reassignment


def six() -> Cluster:
    cluster = Cluster()
    cluster.start(1, 2, 3, 4, 5, 6)
    cluster.create_topic("t", [1, 2, 3], [3, 1])
    cluster.forget_requests()
    return cluster


def test_reassignment() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5, 6]))
    # Phase A: both lists, new replicas follow.
    assert sorted(cluster.assignment("t")[0]) == [1, 2, 3, 4, 5, 6]
    assert cluster.assignment("t")[1] == (3, 1)
    assert cluster.state(T0) == node(1, 1, 1, 1, 2, 3)
    for broker in cluster.brokers.values():
        assert sorted(broker.states[T0].replicas) == [1, 2, 3, 4, 5, 6]
    cluster.write_isr(T0, 1, 2, 3, 4, 5)
    assert cluster.state(T0).leader == 1
    assert cluster.exists(znodes.REASSIGN_PARTITIONS)
    # Phase B.
    cluster.write_isr(T0, 1, 2, 3, 4, 5, 6)
    state = cluster.state(T0)
    assert (state.leader, state.isr) == (4, (4, 5, 6))
    assert cluster.assignment("t") == {0: (4, 5, 6), 1: (3, 1)}
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    assert cluster.brokers[4].leads() == {T0}
    for old in (1, 2, 3):
        assert T0 not in cluster.brokers[old].states
        stops = cluster.brokers[old].took(schemas.StopReplicaRequest)
        assert [stop.delete_partitions for stop in stops] == [False, True]
    metadata = cluster.brokers[2].metadata.topic_metadata("t").partitions[0]
    assert metadata == schemas.PartitionMetadata(0, 0, 4, [4, 5, 6], [4, 5, 6])
    assert cluster.context.reassigned == {}
    # Later changes of the state concern nobody, and the leader's version is the cached one.
    assert cluster.context.leadership[T0].zk_version == cluster.version(T0)
    cluster.kill(4)
    assert cluster.state(T0).leader == 5


def test_reassignment_that_keeps_the_leader() -> None:
    cluster = six()
    cluster.reassign((T0, [2, 1, 4]))
    cluster.write_isr(T0, 1, 2, 3, 4)
    state = cluster.state(T0)
    assert (state.leader, state.isr) == (1, (1, 2, 4))
    assert cluster.assignment("t")[0] == (2, 1, 4)
    assert cluster.brokers[1].states[T0].replicas == [2, 1, 4]


@pytest.mark.parametrize(
    ("partition", "replicas"),
    [(T0, [4, 9]), (T0, [1, 2, 3]), (T0, []), (T0, [4, 4]), (TopicPartition("x", 0), [1])],
)
def test_reassignment_refused(partition: TopicPartition, replicas: list[int]) -> None:
    cluster = six()
    before = cluster.assignment("t")
    cluster.reassign((partition, replicas))
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    assert cluster.assignment("t") == before


def test_a_request_that_lists_nothing_does_not_block_the_next() -> None:
    cluster = six()
    cluster.reassign()
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    cluster.reassign(settle=False)
    cluster.admin.delete("/controller")
    cluster.settle()
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)


def test_refused_ones_leave_the_others_on_the_node() -> None:
    cluster = six()
    cluster.reassign((T1, [9, 3]), (T0, [4, 5]))
    listed = znodes.decode_reassignment("", cluster.admin.get(znodes.REASSIGN_PARTITIONS)[0])
    assert listed == {T0: (4, 5)}
    cluster.write_isr(T0, 1, 2, 3, 5, 4)
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)


def test_controller_dies_in_a_reassignment() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5]))
    cluster.kill(1)
    assert cluster.controller.epoch == 2
    assert cluster.exists(znodes.REASSIGN_PARTITIONS)
    state = cluster.state(T0)
    cluster.write_isr(T0, *state.isr, 4, 5)
    assert cluster.assignment("t")[0] == (4, 5)
    assert cluster.state(T0).leader == 4
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)


def test_caught_up_while_there_was_no_controller() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5]))
    cluster.frozen.add(1)
    cluster.write_isr(T0, 1, 2, 3, 4, 5)
    cluster.kill(1)
    assert cluster.assignment("t")[0] == (4, 5)


def test_new_replica_dies_and_returns() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5]))
    cluster.kill(5)
    cluster.write_isr(T0, 1, 2, 3, 4)
    assert cluster.exists(znodes.REASSIGN_PARTITIONS)
    # Not even a failover gives it up.
    cluster.admin.delete("/controller")
    cluster.settle()
    assert cluster.exists(znodes.REASSIGN_PARTITIONS)
    cluster.start(5)
    assert cluster.brokers[5].states[T0].leader == cluster.state(T0).leader
    cluster.write_isr(T0, *cluster.state(T0).isr, 5)
    assert cluster.assignment("t")[0] == (4, 5)
    assert cluster.state(T0).isr == (4, 5)


def test_old_replicas_stay_while_no_new_one_can_lead() -> None:
    cluster = six()
    cluster.reassign((T0, [4]))
    cluster.kill(4)
    # The leader let the dead one into the isr at the last moment.
    cluster.write_isr(T0, 1, 2, 3, 4)
    assert cluster.state(T0).leader == 1
    assert T0 in cluster.brokers[1].states
    assert sorted(cluster.assignment("t")[0]) == [1, 2, 3, 4]
    assert sorted(cluster.context.replicas_of(T0)) == [1, 2, 3, 4]
    cluster.start(4)
    assert cluster.assignment("t")[0] == (4,)
    assert cluster.state(T0).leader == 4


def test_partitions_added_during_a_reassignment_survive_its_write() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5]))
    assigned = cluster.assignment("t")
    assigned[2] = (6, 5)
    cluster.admin.set(znodes.topic_path("t"), znodes.encode_topic(assigned))
    cluster.write_isr(T0, 1, 2, 3, 4, 5)
    assert cluster.assignment("t") == {0: (4, 5), 1: (3, 1), 2: (6, 5)}
    assert cluster.state(T2).leader == 6


# Deletion


def deletable(*brokers: int) -> Cluster:
    cluster = Cluster(delete_topic_enable="true")
    cluster.start(*(brokers or (1, 2, 3)))
    cluster.create_topic("t", [2, 3], [3, 2])
    cluster.create_topic("other", [1])
    cluster.forget_requests()
    return cluster


def gone(cluster: Cluster, topic: str) -> bool:
    return not any(
        cluster.exists(path(topic))
        for path in (znodes.topic_path, znodes.topic_config_path, znodes.delete_topic_path)
    )


def test_delete_topic() -> None:
    cluster = deletable()
    cluster.delete_topic("t")
    assert gone(cluster, "t")
    assert cluster.exists(znodes.topic_path("other"))
    for broker in cluster.brokers.values():
        assert T0 not in broker.states
        assert broker.metadata.topics() == ["other"]
    stops = cluster.brokers[2].took(schemas.StopReplicaRequest)
    assert sorted((s.delete_partitions, [p.partition for p in s.partitions]) for s in stops) == [
        (False, [0, 1]),
        (True, [0]),
        (True, [1]),
    ]
    assert set(cluster.context.assignment) == {TopicPartition("other", 0)}


def test_delete_topic_writes_the_request_last() -> None:
    cluster = deletable()
    cluster.server.writes.clear()
    cluster.delete_topic("t")
    deleted = [op.path for op in cluster.server.writes if isinstance(op, DeleteOp)]
    assert deleted[-3:] == ["/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"]


def test_delete_and_recreate() -> None:
    cluster = deletable()
    cluster.delete_topic("t")
    cluster.create_topic("t", [3, 1])
    assert cluster.state(T0) == node(3, 0, 1, 3, 1)
    assert cluster.brokers[3].leads() == {T0}
    cluster.delete_topic("t")
    assert gone(cluster, "t")


def test_delete_topic_with_a_dead_replica() -> None:
    cluster = deletable()
    cluster.kill(3)
    cluster.delete_topic("t")
    assert cluster.exists(znodes.delete_topic_path("t"))
    assert T0 not in cluster.brokers[2].states
    assert cluster.brokers[1].metadata.topics() == ["other"]
    cluster.start(3)
    assert gone(cluster, "t")


def test_broker_dies_while_deleting() -> None:
    cluster = deletable()
    # Broker 3 takes no more requests, then its session ends.
    held = cluster.brokers.pop(3)
    cluster.delete_topic("t")
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.brokers[3] = held
    cluster.kill(3)
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.start(3)
    assert gone(cluster, "t")


def test_broker_fails_to_delete() -> None:
    cluster = deletable()
    cluster.brokers[3].stop_replica_error = -1
    cluster.delete_topic("t")
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.brokers[3].stop_replica_error = 0
    # Tried again when a broker that hosts it comes, not before.
    cluster.settle()
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.kill(3)
    cluster.start(3)
    assert gone(cluster, "t")


def test_controller_dies_while_deleting() -> None:
    cluster = deletable()
    cluster.kill(3)
    cluster.delete_topic("t")
    cluster.kill(1)
    assert cluster.controller.epoch == 2
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.start(3)
    assert gone(cluster, "t")


def test_delete_waits_for_a_reassignment() -> None:
    cluster = deletable()
    cluster.reassign((T0, [1, 2]))
    cluster.delete_topic("t")
    assert cluster.exists(znodes.topic_path("t"))
    cluster.write_isr(T0, 2, 3, 1)
    assert gone(cluster, "t")
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)


def test_reassignment_and_growth_of_a_topic_being_deleted_are_refused() -> None:
    cluster = deletable()
    cluster.kill(3)
    cluster.delete_topic("t")
    cluster.reassign((T0, [1, 2]))
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    cluster.admin.set(znodes.topic_path("t"), znodes.encode_topic({0: [2, 3], 1: [3, 2], 2: [1]}))
    cluster.settle()
    assert not cluster.exists(znodes.partition_state_path(*T2))
    cluster.elect_preferred(T0)
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)
    cluster.start(3)
    assert gone(cluster, "t")


def test_delete_a_topic_that_never_had_a_leader() -> None:
    cluster = deletable()
    cluster.kill(3)
    cluster.create_topic("u", [3])
    cluster.delete_topic("u")
    assert cluster.exists(znodes.topic_path("u"))
    cluster.start(3)
    assert gone(cluster, "u")


def test_delete_unknown_topic() -> None:
    cluster = deletable()
    cluster.delete_topic("nothing")
    assert not cluster.exists(znodes.delete_topic_path("nothing"))


def test_create_and_delete_at_once() -> None:
    cluster = deletable()
    cluster.create_topic("u", [1, 2], settle=False)
    cluster.delete_topic("u", settle=False)
    inbox = cluster.controllers[1]._queue
    inbox.items.reverse()
    cluster.settle()
    assert gone(cluster, "u")


def test_deletion_off() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    cluster.delete_topic("t")
    cluster.kill(1)
    cluster.kill(2)
    cluster.start(2)
    assert cluster.exists(znodes.delete_topic_path("t"))
    assert cluster.state(T0).leader == 3
    for broker in cluster.brokers.values():
        assert broker.metadata.topics() == ["t"]


def test_many_partitions_fail_over_in_few_transactions() -> None:
    cluster = Cluster()
    cluster.start(1, 2, 3)
    cluster.create_topic("t", *([2, 3] for _ in range(250)))
    assert len(cluster.brokers[2].leads()) == 250
    transactions = []
    server = cluster.server
    apply = server.apply

    def counted(ops: Any, session: int) -> Any:
        transactions.append(len(ops))
        return apply(ops, session)

    server.apply = counted  # type: ignore[method-assign]
    cluster.kill(2)
    assert len(cluster.brokers[3].leads()) == 250
    assert len(transactions) < 10
    with pytest.raises(NoNodeError):
        cluster.state(TopicPartition("t", 250))


def test_writes_are_fenced_by_the_controller_epoch() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    # Somebody else took over without our knowing: the epoch's version moved.
    cluster.admin.set("/controller_epoch", b"9")
    writes: list[Any] = cluster.server.writes
    writes.clear()
    cluster.frozen |= {2, 3}
    cluster.kill(2, settle=False)
    cluster.controllers[1].step(cluster.controllers[1]._queue.get())
    assert not [op for op in writes if isinstance(op, SetOp) and "/state" in op.path]
    assert not cluster.controllers[1].epoch
