"""The reaction of the active controller to topics, brokers and controlled shutdowns."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.controller import events
from kafka08.controller.controller import _Reply
from kafka08.errors import KafkaError
from kafka08.protocol import schemas
from tests.controller.cluster import ControllerCluster
from tests.controller.support import T0, T1, T2, node, three
from tests.fakes.runtime import FakeRuntime
from zk import znodes


def shut_down(cluster: ControllerCluster, broker_id: int) -> list[TopicPartition]:
    """Call ControlledShutdown; returns the partitions still led, or the error."""
    reply = _Reply(FakeRuntime())
    cluster.put(events.ControlledShutdown(broker_id, reply))
    return reply.wait(0)


# Topics


def test_new_topic() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1], [3, 1, 2])
    assert cluster.state(T0) == node(2, 0, 1, 2, 3, 1)
    assert cluster.state(T1) == node(3, 0, 1, 3, 1, 2)
    assert cluster.version(T0) == 0
    told = schemas.PartitionStateInfo("t", 0, 1, 2, 0, [2, 3, 1], 0, [2, 3, 1])
    for broker_id in cluster.brokers:
        assert cluster.states[broker_id][T0] == told
        assert cluster.metadata[broker_id].partition_count("t") == 2


def test_new_topic_with_dead_replicas() -> None:
    cluster = three()
    cluster.kill(2)
    cluster.create_topic("t", [2, 3, 1], [2])
    assert cluster.state(T0) == node(3, 0, 1, 3, 1)
    assert not cluster.exists(znodes.partition_state_path(*T1))
    cluster.start(2)
    assert cluster.state(T1) == node(2, 0, 1, 2)
    assert cluster.states[2][T0].leader == 3


def test_partitions_added() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2])
    before = cluster.state(T0)
    path = znodes.topic_path("t")
    cluster.admin.set(path, znodes.encode_topic({0: [1, 2], 1: [2, 3], 2: [3, 1]}))
    cluster.settle()
    assert cluster.state(T0) == before
    assert cluster.state(T1) == node(2, 0, 1, 2, 3)
    assert cluster.leads(3) == {T2}
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
    assert cluster.leads(3) == {T0}
    assert cluster.states[1][T0].leader == 3
    assert cluster.metadata[1].topic_metadata("t").partitions[0].leader == 3


def test_follower_dies() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1])
    cluster.kill(3)
    assert cluster.state(T0) == node(2, 1, 1, 2, 1)
    assert cluster.states[2][T0].isr == [2, 1]


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
    assert cluster.metadata[1].topic_metadata("t").partitions[0].error == 5
    cluster.start(2)
    assert cluster.state(T0) == node(2, 2, 1, 2)
    assert cluster.leads(2) == {T0}


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


@pytest.mark.scenario("ops-8")
def test_unclean_elections_are_counted() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [2, 3], [2, 3])
    cluster.write_isr(T0, 2)
    cluster.write_isr(T1, 2)
    cluster.kill(2)
    assert [cluster.state(each).leader for each in (T0, T1, T2)] == [3, 3, 3]
    assert cluster.context.stats.unclean.count == 2


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
    cluster.states[2].clear()
    cluster.register(2)
    cluster.settle()
    assert cluster.state(T0) == node(3, 1, 1, 3)
    assert cluster.state(T1) == node(3, 1, 1, 3)
    # The first LeaderAndIsr of the new process carries all it hosts.
    first = cluster.took(2, schemas.LeaderAndIsrRequest)[0]
    assert {state.partition for state in first.partitions} == {0, 1}
    assert set(cluster.states[2]) == {T0, T1}
    assert set(cluster.metadata[1].brokers) == {1, 2, 3}


def test_a_broker_with_nothing_new_changes_nothing() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    cluster.forget_requests()
    cluster.put(events.BrokerIdsChanged(1))
    assert cluster.requests == []


def test_first_request_to_a_returning_broker_has_everything() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2], [1, 3])
    cluster.kill(3)
    cluster.start(3)
    first, second, *_ = cluster.took(3)
    assert [type(first), type(second)] == [
        schemas.UpdateMetadataRequest,
        schemas.LeaderAndIsrRequest,
    ]
    assert {s.partition for s in second.partitions} == {0, 1, 2}
    assert cluster.metadata[3].partition_count("t") == 3


def test_several_brokers_die_at_once() -> None:
    cluster = ControllerCluster()
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [2, 3, 4], [2, 3])
    cluster.kill(2, 3)
    assert cluster.state(T0) == node(4, 1, 1, 4)
    assert cluster.state(T1) == node(-1, 1, 1, 2, 3)
    cluster.start(3)
    assert cluster.state(T1) == node(3, 2, 1, 3)


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
    stops = cluster.took(3, schemas.StopReplicaRequest)
    assert stops
    assert all(not s.delete_partitions and s.partitions == [("t", 1)] for s in stops)
    assert {c for c, r in cluster.called if r in stops} == {""}
    # Requests still reach it.
    assert cluster.states[3][T0].leader == 1
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
    cluster.controllers[2].step(events.Stop())
    with pytest.raises(KafkaError, match="Controller moved"):
        cluster.controllers[2].controlled_shutdown(3)


def test_controlled_shutdown_of_the_controller() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2, 3])
    assert shut_down(cluster, 1) == []
    cluster.controllers[1].step(events.Stop())
    cluster.kill(1)
    assert cluster.controller.broker.id == 2
    assert cluster.state(T0).leader == 2
    assert cluster.state(T0).leader_epoch == 1
