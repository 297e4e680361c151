"""Election, loss and stop of the controller of a broker, in clusters in memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.controller import events
from kafka08.controller.controller import Controller
from kafka08.controller.store import ControllerStore
from kafka08.errors import KafkaError
from kafka08.protocol import schemas
from kafka08.runtime import ThreadRuntime
from kafka08.settings.broker import BrokerConfig
from tests.controller.cluster import ControllerCluster
from tests.controller.support import T0, T1, T2, node, three
from tests.fakes.zookeeper import Session
from zk import znodes
from zk.client import CreateOp, SessionState


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
    assert [set(cluster.metadata[b].brokers) for b in cluster.brokers] == [{1, 2, 3}] * 3
    cluster.kill(3)
    assert [set(cluster.metadata[b].brokers) for b in cluster.brokers] == [{1, 2}] * 2


def test_request_headers_and_senders() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2])
    ids = {(type(request), client_id) for client_id, request in cluster.called}
    client_id = "id_1-host_null-port_9092"
    assert ids == {
        (schemas.LeaderAndIsrRequest, client_id),
        (schemas.UpdateMetadataRequest, client_id),
    }


def test_controller_dies() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2])
    cluster.kill(1)
    assert cluster.controller.epoch == 2
    assert cluster.state(T0) == node(2, 0, 1, 2, 3)
    assert set(cluster.controller_epochs.values()) == {2}


def test_controller_dies_that_also_leads() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2, 3])
    cluster.kill(1)
    # The new controller knew of the death when it read the isr; the leader shrinks it.
    assert cluster.state(T0) == node(2, 1, 2, 2, 3)
    assert cluster.leads(2) == {T0}


def test_who_dies_with_the_controller_leaves_every_isr() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 1, 3], [1, 2, 3], [3, 2])
    cluster.kill(1)
    assert cluster.state(T0) == node(2, 1, 2, 2, 3)
    assert cluster.states[2][T0].isr == [2, 3]
    assert cluster.metadata[3].topic_metadata("t").partitions[0].isr == [2, 3]
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
    cluster.brokers.pop(2)
    cluster.controllers.pop(2)
    cluster.sessions.pop(2).lose_session()
    controller, inbox = cluster.controllers[1], cluster.inbox(1)
    while not inbox.empty():
        controller.step(inbox.get())
    assert cluster.state(T0).leader == 3
    assert cluster.states[3][T0].leader == 2
    assert cluster.leads(2) == {T0}
    cluster.kill(1)
    assert cluster.state(T0) == node(3, 1, 1, 3)
    assert cluster.leads(3) == {T0}


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


@pytest.mark.parametrize("in_a_term", [True, False])
def test_an_office_lost_while_an_assignment_is_written_is_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, in_a_term: bool
) -> None:
    """In the middle of a term, and while a term begins."""
    cluster = three()
    cluster.create_topic("t", [2, 3])
    lost: list[int] = []
    real = ControllerStore.write_assignment

    def write(self: ControllerStore, *parts: Any) -> None:
        monkeypatch.undo()
        lost.append(self._context.epoch)
        path = "/controller_epoch"
        cluster.admin.set(path, znodes.encode_controller_epoch(self._context.epoch + 1))
        cluster.admin.delete("/controller")
        real(self, *parts)

    if not in_a_term:
        cluster.admin.delete("/controller")  # its term has not ended when the node is written
    monkeypatch.setattr(ControllerStore, "write_assignment", write)
    cluster.reassign((T0, [1, 2]))
    assert len(lost) == 1
    assert cluster.controller.epoch > lost[0] + 1
    assert {1, 2} <= set(cluster.assignment("t")[0])
    assert [record.exc_info for record in caplog.records if record.exc_info] == []
    moved = "Controller moved to another broker"
    assert len([text for text in caplog.messages if moved in text]) == 1


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
    cluster.inbox(1).items.clear()
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
    active.term.send_metadata([2], None)
    cluster.deliver(1)
    (request,) = cluster.took(2, schemas.UpdateMetadataRequest)
    assert request.controller_epoch == 1
    assert cluster.controller_epochs[2] == 2


def test_session_expiry_stops_sending_at_once_and_elects_again() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    old = cluster.controllers[1]
    active = old._active
    assert active is not None
    cluster.frozen.add(1)
    cluster.sessions[1].lose_session()
    cluster.settle()
    cluster.forget_requests()
    active.term.send_metadata([2, 3], None)
    cluster.inbox(1).put(events.TopicsChanged(1))
    cluster.sessions[1].renew_session()
    old.session_expired()
    cluster.register(1)
    cluster.frozen.clear()
    cluster.deliver(1)
    assert cluster.requests == []
    cluster.settle()
    assert cluster.controller.broker.id == 2
    assert old.controller_id == 2
    # And it is a candidate like any other.
    cluster.kill(2, 3)
    assert cluster.controller is old
    assert old.epoch == 3


def test_own_node_of_a_former_session_is_not_taken_for_ours() -> None:
    cluster = ControllerCluster()
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
    first.step(events.Stop())
    assert not cluster.exists("/controller")
    cluster.settle()
    assert cluster.controller.broker.id == 2
    first.step(events.Stop())
    assert znodes.decode_controller("", cluster.admin.get("/controller")[0]).broker_id == 2
    cluster.controllers[3].step(events.Stop())
    assert cluster.exists("/controller")


def test_stop_ends_every_task() -> None:
    cluster = three()
    runtime = cluster.runtimes[1]
    cluster.controller.stop()
    cluster.controller.step(events.Stop())
    assert [task.name for task in runtime.tasks if not task.ended] == []
    assert {task.name for task in runtime.tasks} >= {
        "Controller-1-to-broker-2-send-thread",
        "partition-rebalance-thread",
    }


def test_the_loop_starts_answers_and_stops() -> None:
    cluster = ControllerCluster()
    before = threading.active_count()
    config = BrokerConfig.from_properties({"broker.id": "1", "zookeeper.connect": "fake"})
    controller = Controller(
        config,
        cluster.sessions.setdefault(1, Session(cluster.server)),  # type: ignore[arg-type]
        ThreadRuntime(),
        broker=Broker(1, "h", 9092),
        connect=cluster.connection_to,
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
    cluster = ControllerCluster()
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
    cluster.server.forget_watches()
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
    original = session.get_all

    def noted(paths: Sequence[str], *watches: Any) -> Any:
        read.extend(paths)
        return original(paths, *watches)

    monkeypatch.setattr(session, "get_all", noted)
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
    assert len(cluster.leads(3)) == 250
    assert len(transactions) < 15
