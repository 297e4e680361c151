"""APIs 4 to 7 and what follows from them: roles, epochs, names, deleted logs."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.errors import UnknownError
from kafka08.log import manager as manager_module
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.schemas import (
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    PartitionStateInfo,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from tests.server.support import BROKERS, ME, PEER, THIRD, Rig, message_set, partition_state, texts
from zk.errors import ZkConnectionError

T = TopicPartition("t", 0)


def roles(rig: Rig, *states: PartitionStateInfo, epoch: int = 1, leaders: Any = BROKERS) -> Any:
    """(error, {(topic, partition): error}) of a LeaderAndIsr request."""
    answer = rig.call(LeaderAndIsrRequest(9, epoch, list(states), leaders))
    return answer.error, {(topic, number): error for topic, number, error in answer.partitions}


def stop(rig: Rig, *keys: tuple[str, int], delete: bool = False, epoch: int = 1) -> Any:
    partitions = [StopReplicaPartition(*key) for key in keys]
    answer = rig.call(StopReplicaRequest(9, epoch, delete, partitions))
    return answer.error, {(topic, number): error for topic, number, error in answer.partitions}


def everything_below(path: Path) -> set[str]:
    return {
        os.path.join(folder, name)
        for folder, folders, files in os.walk(path)
        for name in (*folders, *files)
    }


# LeaderAndIsr


def test_leading_makes_a_log(rig: Rig) -> None:
    rig.topic_settings["t"] = {"retention.ms": "5"}
    assert roles(rig, partition_state("t", 0, leader_epoch=4, zk_version=7)) == (0, {T: 0})
    partition = rig.replicas.partitions[T]
    assert partition.is_leader
    assert (partition.leader_epoch, partition.zk_version, partition.isr) == (4, 7, (ME,))
    log = rig.logs.get_log(T)
    assert log is not None and log is partition.log and log.config.retention_ms == 5
    assert rig.leader_changes == [(T, True)]


def test_following_starts_a_fetcher(rig: Rig) -> None:
    state = partition_state("t", 0, leader=PEER, replicas=[ME, PEER])
    assert roles(rig, state) == (0, {T: 0})
    assert rig.fetchers.added == [(T, Broker(*BROKERS[1][:3]))]
    assert not rig.replicas.partitions[T].is_leader
    assert rig.leader_changes == []


def test_following_a_dead_leader_fetches_nothing(rig: Rig) -> None:
    for leader, epoch in ((PEER, 0), (-1, 1)):
        state = partition_state("t", 0, leader=leader, leader_epoch=epoch, replicas=[ME, PEER])
        assert roles(rig, state, leaders=[BROKERS[0]]) == (0, {T: 0})
    assert rig.logs.get_log(T) is not None
    assert rig.fetchers.added == []


def test_a_dead_leader_is_followed_once_it_is_back_at_the_same_epoch(rig: Rig) -> None:
    """Another controller may find nothing to change, and name the same leader and epoch again."""
    state = partition_state("t", 0, leader=PEER, leader_epoch=3, replicas=[ME, PEER])
    assert roles(rig, state, leaders=[BROKERS[0]]) == (0, {T: 0})
    assert roles(rig, state, epoch=2) == (0, {T: 0})
    assert rig.fetchers.added == [(T, Broker(*BROKERS[1][:3]))]


def test_a_leader_steps_down_for_a_dead_one(rig: Rig) -> None:
    rig.lead(leader_epoch=2, replicas=[ME, PEER])
    state = partition_state("t", 0, leader=PEER, leader_epoch=3, replicas=[ME, PEER])
    assert roles(rig, state, leaders=[BROKERS[0]]) == (0, {T: 0})
    assert not rig.replicas.partitions[T].is_leader
    assert rig.leader_changes[-1] == (T, False)


def test_partitions_of_others_are_left_out(rig: Rig) -> None:
    strange = partition_state("u", 0, leader=PEER, replicas=[PEER, THIRD])
    assert roles(rig, strange, partition_state("t", 0)) == (0, {T: 0})
    assert set(rig.logs.logs) == set(rig.replicas.partitions) == {T}


def test_controller_epochs_never_go_back(rig: Rig) -> None:
    assert roles(rig, partition_state("t", 0), epoch=5) == (0, {T: 0})
    assert roles(rig, partition_state("u", 0), epoch=4) == (11, {})
    assert stop(rig, T, delete=True, epoch=4) == (11, {})
    assert rig.call(UpdateMetadataRequest(9, 4, [partition_state("u")], BROKERS)) == (-1,)
    assert set(rig.logs.logs) == {T}
    assert rig.cache.topics() == []
    assert roles(rig, partition_state("u", 0), epoch=5) == (0, {("u", 0): 0})
    assert rig.call(UpdateMetadataRequest(9, 6, [], BROKERS)) == (0,)
    assert stop(rig, epoch=5) == (11, {})


@pytest.mark.parametrize("epoch", [3, 2, -1])
def test_leader_epochs_must_rise(rig: Rig, epoch: int) -> None:
    roles(rig, partition_state("t", 0, leader_epoch=3))
    late = partition_state("t", 0, leader=PEER, leader_epoch=epoch, replicas=[ME, PEER])
    assert roles(rig, late, partition_state("u", 0)) == (0, {T: 13, ("u", 0): 0})
    assert rig.replicas.partitions[T].is_leader
    assert rig.fetchers.added == []


def test_the_first_leader_epoch_may_be_0_and_not_below(rig: Rig) -> None:
    assert roles(rig, partition_state("t", 0, leader_epoch=-1)) == (0, {T: 13})
    assert rig.logs.logs == {}
    assert roles(rig, partition_state("t", 0, leader_epoch=0)) == (0, {T: 0})


def test_changing_roles_forth_and_back(rig: Rig) -> None:
    partition = rig.lead(replicas=[ME, PEER], isr=[ME])
    rig.append("a")
    rig.follow()
    assert rig.fetchers.added == [(T, Broker(*BROKERS[1][:3]))]
    assert partition.any_log().log_end_offset == 1  # nothing is cut before it is compared
    rig.lead(replicas=[ME, PEER], isr=[ME])
    assert rig.fetchers.removed.count(T) == 3  # every change stops the fetcher first
    assert rig.leader_changes == [(T, True), (T, False), (T, True)]
    rig.append("b")
    assert texts(rig.fetch(("t", 0, 0, 1000))["t", 0][2]) == ["a", "b"]


def test_leading_again_at_a_higher_epoch_is_no_change_of_leader(rig: Rig) -> None:
    rig.lead()
    rig.lead()
    assert rig.leader_changes == [(T, True)]


def test_a_log_that_cannot_be_made_fails_its_partition_only(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = rig.logs.create_log

    def fails(key: TopicPartition, config: Any) -> Any:
        if key == T:
            raise OSError("as told")
        return create(key, config)

    monkeypatch.setattr(rig.logs, "create_log", fails)
    answer = roles(rig, partition_state("t", 0), partition_state("u", 0))
    assert answer == (0, {T: -1, ("u", 0): 0})
    assert set(rig.replicas.partitions) == {("u", 0)}
    monkeypatch.undo()
    assert roles(rig, partition_state("t", 0)) == (0, {T: 0})  # the same epoch, tried again


def test_settings_that_cannot_be_read_close_the_connection(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer would be the last we hear of it: controllers resend only without one."""

    def away(topic: str) -> Any:
        raise ZkConnectionError()

    monkeypatch.setattr(rig.roles, "log_config", away)
    with pytest.raises(ConnectionClosed):
        roles(rig, partition_state("t", 0), partition_state("u", 0))
    assert not rig.replicas.partitions
    monkeypatch.undo()
    assert roles(rig, partition_state("t", 0), partition_state("u", 0)) == (0, {T: 0, ("u", 0): 0})


def test_settings_are_read_only_where_a_log_is_made(rig: Rig) -> None:
    rig.lead()
    rig.lead()
    roles(rig, partition_state("u", 0, leader=PEER, replicas=[PEER]))
    assert rig.asked_configs == ["t"]


def test_a_log_deleted_while_settings_are_read_is_made_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.lead()
    read = rig.roles.log_config

    def slowly(topic: str) -> Any:
        if topic == "u":
            stop(rig, T, delete=True)
        return read(topic)

    monkeypatch.setattr(rig.roles, "log_config", slowly)
    again = partition_state("t", 0, leader_epoch=1)
    assert roles(rig, again, partition_state("u", 0)) == (0, {T: 0, ("u", 0): 0})
    assert rig.logs.get_log(T) is rig.replicas.partitions[T].log


ILLEGAL = ["", ".", "..", "../evil", "../../evil", "a/../../evil", "a/b", "a\0b", "x" * 256, "ä"]


@pytest.mark.parametrize("name", [*ILLEGAL, "<absolute>"])
def test_names_that_are_no_directory_of_ours_are_refused(
    rig: Rig, tmp_path: Path, name: str
) -> None:
    if name == "<absolute>":
        name = str(tmp_path / "evil")
    before = everything_below(tmp_path)
    for leader in (ME, PEER):
        state = partition_state(name, 0, leader=leader, replicas=[ME, PEER])
        assert roles(rig, state, partition_state("ok", 0, leader_epoch=leader)) == (
            0,
            {(name, 0): 17, ("ok", 0): 0},
        )
    assert stop(rig, (name, 0), delete=True) == (0, {(name, 0): 0})
    assert stop(rig, ("ok", 0), delete=True) == (0, {("ok", 0): 0})
    assert everything_below(tmp_path) == before
    assert rig.asked_configs == ["ok"]  # ZooKeeper is not asked for such names either
    assert rig.replicas.partitions == {} and rig.logs.logs == {}


@pytest.mark.parametrize("number", [-1, -(2**31)])
def test_negative_partitions_are_refused(rig: Rig, tmp_path: Path, number: int) -> None:
    before = everything_below(tmp_path)
    assert roles(rig, partition_state("t", number)) == (0, {("t", number): 17})
    assert everything_below(tmp_path) == before


@pytest.mark.parametrize("name", ["../victim", "a/../../victim"])
def test_what_lies_outside_is_never_deleted(rig: Rig, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim-0"
    victim.mkdir()
    (victim / "00000000000000000000.log").write_bytes(b"precious")
    for _ in range(2):
        stop(rig, (name, 0), delete=True)
        roles(rig, partition_state(name, 0))
    assert (victim / "00000000000000000000.log").read_bytes() == b"precious"
    assert len(list(victim.iterdir())) == 1


# StopReplica


def test_stopping_keeps_the_log(rig: Rig) -> None:
    rig.follow()
    assert stop(rig, T) == (0, {T: 0})
    assert rig.fetchers.removed[-1] == T
    assert rig.logs.get_log(T) is not None
    rig.follow()
    assert len(rig.fetchers.added) == 2


def test_stopping_a_leader_ends_its_leadership(rig: Rig) -> None:
    rig.lead()
    assert stop(rig, T) == (0, {T: 0})
    assert rig.produce(("t", 0, message_set("a"))) == {T: (6, -1)}
    assert rig.leader_changes[-1] == (T, False)


def test_deleting_takes_the_log_and_lets_a_topic_start_over(rig: Rig) -> None:
    partition = rig.lead(leader_epoch=8)
    rig.append("a")
    directory = partition.any_log().directory
    rig.checkpoint_high_watermarks()
    assert stop(rig, T, delete=True) == (0, {T: 0})
    assert not os.path.exists(directory)
    assert rig.produce(("t", 0, message_set("a"))) == {T: (3, -1)}
    again = rig.lead(leader_epoch=0)
    assert again.any_log().log_end_offset == again.high_watermark == 0


def test_stopping_what_is_not_here_is_done(rig: Rig) -> None:
    for delete in (False, True):
        assert stop(rig, ("u", 0), ("v", -3), delete=delete) == (0, {("u", 0): 0, ("v", -3): 0})


def test_deleting_a_log_without_a_role(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    first = make_rig()
    directory = first.lead().any_log().directory
    first.close()
    rig = make_rig()  # the controller has not spoken yet
    assert stop(rig, T, delete=True) == (0, {T: 0})
    assert not os.path.exists(directory)


def test_a_log_that_cannot_be_deleted_fails_its_partition_only(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.lead()
    rig.lead("u")
    delete = rig.logs.delete_log

    def fails(key: TopicPartition) -> None:
        if key == T:
            raise OSError(errno.EMFILE, "as told")
        delete(key)

    monkeypatch.setattr(rig.logs, "delete_log", fails)
    assert stop(rig, T, ("u", 0), delete=True) == (0, {T: -1, ("u", 0): 0})
    monkeypatch.undo()
    assert stop(rig, T, delete=True) == (0, {T: 0})
    assert rig.logs.logs == {}


def test_a_deletion_is_on_disk_before_it_is_answered(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut another topic of that name would begin with the messages of this one."""
    parent = os.path.dirname(rig.lead().any_log().directory)
    synced: list[tuple[str, bool]] = []

    def sync(path: str) -> None:
        synced.append((path, os.path.exists(os.path.join(path, "t-0"))))

    monkeypatch.setattr(manager_module, "sync_directory", sync)
    assert stop(rig, T) == (0, {T: 0})
    assert synced == []
    assert stop(rig, T, delete=True) == (0, {T: 0})
    assert synced == [(parent, False)]
    # The answer may not have arrived, and the first request may still wait.
    assert stop(rig, T, delete=True) == (0, {T: 0})
    assert len(synced) == 2


def test_a_deletion_that_is_not_on_disk_fails(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.lead()

    def fails(path: str) -> None:
        raise OSError(errno.ENOSPC, "as told")

    monkeypatch.setattr(manager_module, "sync_directory", fails)
    assert stop(rig, T, delete=True) == (0, {T: -1})


# Failures of whole requests


def test_failures_name_each_partition(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("as told")

    for name in ("become_leader_or_follower", "stop_replicas", "update_metadata"):
        monkeypatch.setattr(rig.roles, name, broken)
    assert roles(rig, partition_state("t", 0)) == (0, {T: -1})
    assert stop(rig, T) == (0, {T: -1})
    assert rig.call(UpdateMetadataRequest(9, 1, [], [])) == (-1,)


# ControlledShutdown


def test_controlled_shutdown(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def remaining(broker_id: int) -> list[TopicPartition]:
        asked.append(broker_id)
        return [T, TopicPartition("u", 3)]

    monkeypatch.setattr(rig.controller, "controlled_shutdown", remaining)
    assert rig.call(ControlledShutdownRequest(PEER)) == (0, [("t", 0), ("u", 3)])
    assert asked == [PEER]

    def refused(broker_id: int) -> list[TopicPartition]:
        raise UnknownError("not the controller")

    monkeypatch.setattr(rig.controller, "controlled_shutdown", refused)
    assert rig.call(ControlledShutdownRequest(PEER)) == (-1, [])


# A new session


def test_leaderships_that_zookeeper_no_longer_records_are_given_up(rig: Rig) -> None:
    kept = rig.lead(replicas=[ME, PEER], isr=[ME])
    lost = rig.lead(partition=1, replicas=[ME, PEER], isr=[ME])
    alone = rig.lead(partition=2)
    stored = {kept.topic_partition: (ME, 0), lost.topic_partition: (PEER, 1)}
    rig.replicas.fence(True)
    assert rig.produce(("t", 0, message_set("a"))) == {T: (6, -1)}
    assert rig.produce(("t", 2, message_set("a"))) == {("t", 2): (0, 0)}
    rig.roles.confirm_leaderships(lambda key: stored.get(key))
    rig.replicas.fence(False)
    assert [each.is_leader for each in (kept, lost, alone)] == [True, False, True]
    assert rig.produce(("t", 0, message_set("a"))) == {T: (0, 0)}
    assert rig.produce(("t", 1, message_set("a"))) == {("t", 1): (6, -1)}


def test_a_server_of_zookeeper_that_is_behind_takes_no_leadership(rig: Rig) -> None:
    """The controller would not give it back: it does not repeat an epoch."""
    rig.lead(replicas=[ME, PEER], isr=[ME])
    partition = rig.lead(replicas=[ME, PEER], isr=[ME])
    for leader in (-1, PEER, ME):
        rig.roles.confirm_leaderships(lambda key, leader=leader: (leader, 0))  # type: ignore[misc]
        assert partition.is_leader and partition.leader_epoch == 1
    rig.roles.confirm_leaderships(lambda key: (PEER, 1))
    assert not partition.is_leader


def test_a_role_told_while_zookeeper_is_asked_stands(rig: Rig) -> None:
    partition = rig.lead(replicas=[ME, PEER], isr=[ME])

    def told_meanwhile(key: TopicPartition) -> None:
        rig.lead(replicas=[ME, PEER], isr=[ME])

    rig.roles.confirm_leaderships(told_meanwhile)
    assert partition.is_leader
