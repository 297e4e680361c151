"""The controller's writes: fenced by its epoch, conditional, and repeatable."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.controller.context import ControllerContext, LeaderAndIsr, PartitionAndReplica
from kafka08.controller.store import WRITES, ControllerStore
from kafka08.errors import StaleControllerEpochError
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.errors import NoAuthError, NoNodeError, ZkConnectionError
from zk.registry import ensure_common_paths
from zk.watches import WatchSet

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FIRST = LeaderAndIsr(1, 0, (1, 2), 7, 0)
EPOCH = 7


class StoreCase:
    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.session: Any = Session(self.server)
        self.events: list[Any] = []
        self.context = ControllerContext()
        self.store = ControllerStore(
            self.session, WatchSet(self.session, self.events.append), self.context
        )
        ensure_common_paths(self.session)
        self.server.put(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(EPOCH))
        self.context.epoch, self.context.epoch_zk_version = EPOCH, 0
        self.assign({0: [1, 2], 1: [2, 1]})

    def assign(self, replicas: dict[int, list[int]], topic: str = "t") -> None:
        self.server.put(znodes.topic_path(topic), znodes.encode_topic(replicas))

    def another_controller(self) -> None:
        self.server.put(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(EPOCH + 1))


@pytest.fixture
def case() -> StoreCase:
    return StoreCase()


def test_states_are_created_with_their_parents(case: StoreCase) -> None:
    created = case.store.create_states({T0: FIRST, T1: FIRST})
    assert created == {T0: FIRST, T1: FIRST} == case.store.states([T0, T1])
    other = FIRST._replace(leader=2)
    assert case.store.create_states({T0: other, TopicPartition("none", 0): FIRST}) == {}
    # As after a first try whose answer was lost.
    assert case.store.create_states({T0: FIRST, T1: other}) == {T0: FIRST}
    assert case.store.states([T0, T1]) == {T0: FIRST, T1: FIRST}


def test_states_are_read_with_the_zxids_of_their_last_writes(case: StoreCase) -> None:
    case.store.create_states({T0: FIRST, T1: FIRST})
    created = case.server.zxid
    path = znodes.partition_state_path(*T0)
    case.session.set(path, case.session.get(path)[0])
    assert case.store.written_states([T0, T1]) == {
        T0: (FIRST._replace(zk_version=1), created + 1),
        T1: (FIRST, created),
    }


def test_states_are_written_if_nobody_else_did(case: StoreCase) -> None:
    case.store.create_states({T0: FIRST, T1: FIRST})
    mine = FIRST._replace(leader=2, leader_epoch=1, zk_version=1)
    theirs = FIRST._replace(isr=(2,), leader_epoch=1, zk_version=1)
    assert case.store.write_states({T1: theirs}) == ({T1: theirs}, {})
    gone = TopicPartition("gone", 0)
    assert case.store.write_states({T0: mine, T1: mine, gone: mine}) == ({T0: mine}, {T1: theirs})
    assert case.store.write_states({T0: mine}) == ({T0: mine}, {})  # again, after a lost answer


def test_many_states_go_in_several_transactions(case: StoreCase) -> None:
    many = {TopicPartition("t", number): FIRST for number in range(2 * WRITES + 1)}
    assert case.store.create_states(many) == many
    after = {tp: state._replace(zk_version=1) for tp, state in many.items()}
    assert case.store.write_states(after) == (after, {})


def test_a_replaced_controller_writes_nothing(case: StoreCase) -> None:
    case.store.create_states({T0: FIRST})
    before = dict(case.server.nodes)
    case.another_controller()
    for write in (
        lambda: case.store.create_states({T1: FIRST}),
        lambda: case.store.write_states({T0: FIRST._replace(zk_version=1)}),
        lambda: case.store.write_assignment(T0, [3]),
        lambda: case.store.delete_topic("t"),
    ):
        with pytest.raises(StaleControllerEpochError):
            write()
    changed = {path for path, node in case.server.nodes.items() if before.get(path) != node}
    assert changed <= {znodes.CONTROLLER_EPOCH, znodes.DELETE_REPLICAS}
    assert before.keys() <= case.server.nodes.keys()


def test_a_reassigned_replica_is_noted_until_it_is_deleted(case: StoreCase) -> None:
    assert case.store.write_assignment(T0, [2, 3]) == (1, 2)
    left = PartitionAndReplica("t", 0, 1)
    assert case.store.replicas_to_delete() == {left}
    assert case.store.still_assigned([left, PartitionAndReplica("t", 0, 2)]) == {
        left: False,
        PartitionAndReplica("t", 0, 2): True,
    }
    assert case.store.write_assignment(T0, [1, 2]) == (2, 3)
    assert case.store.replicas_to_delete() == {PartitionAndReplica("t", 0, 3)}
    case.store.forget_replicas_to_delete([left, PartitionAndReplica("t", 0, 3)])
    assert case.store.replicas_to_delete() == set()
    with pytest.raises(NoNodeError):
        case.store.write_assignment(TopicPartition("gone", 0), [1])


def test_malformed_nodes_count_as_absent(case: StoreCase, caplog: pytest.LogCaptureFixture) -> None:
    case.store.create_states({T0: FIRST, T1: FIRST})
    case.server.put(znodes.partition_state_path(*T0), b"{")
    case.server.put(znodes.broker_path(4), b"not json")
    case.server.put(znodes.broker_path(5), znodes.encode_broker(_registration(5)))
    case.server.put(f"{znodes.DELETE_REPLICAS}/odd", b"")
    assert case.store.states([T0, T1]) == {T1: FIRST}
    assert list(case.store.brokers("event")) == [5]
    assert case.store.replicas_to_delete() == set()
    assert len(caplog.records) == 3


def _registration(number: int) -> znodes.BrokerRegistration:
    return znodes.BrokerRegistration(f"h{number}", 9092, -1, "1")


def test_a_read_arms_its_watch(case: StoreCase) -> None:
    assert case.store.brokers("ids") == {}
    case.server.put(znodes.broker_path(5), znodes.encode_broker(_registration(5)))
    assert case.events == ["ids"]


def test_trouble_with_zookeeper_is_not_hidden(case: StoreCase) -> None:
    case.session.down = True
    for read in (lambda: case.store.brokers("x"), lambda: case.store.states([T0])):
        with pytest.raises(ZkConnectionError):
            read()


def offsets_of(case: StoreCase, group: str, topic: str = "t") -> str:
    path = znodes.consumer_topic_offsets_path(group, topic)
    for number in (0, 1):
        case.session.create_or_set(f"{path}/{number}", b"500")
    return path


def multis(case: StoreCase, monkeypatch: pytest.MonkeyPatch, refused: str = "-") -> list[list[str]]:
    """The paths of each transaction from now on. Those below ``refused`` fail."""
    found: list[list[str]] = []
    multi = case.session.multi

    def recorded(ops: Any) -> Any:
        paths = [op.path for op in ops]
        if any(path.startswith(refused) for path in paths):
            raise NoAuthError(refused, path=refused)
        found.append(paths)
        return multi(ops)

    monkeypatch.setattr(case.session, "multi", recorded)
    return found


def test_settings_go_in_one_transaction_with_the_topic(
    case: StoreCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    case.store.create_states({T0: FIRST, T1: FIRST})
    case.server.put(znodes.topic_config_path("t"), b"{}")
    case.server.put(znodes.delete_topic_path("t"))
    path = offsets_of(case, "g")
    found = multis(case, monkeypatch)
    case.store.delete_topic("t")
    first, second, third = found
    assert first[-1] == path
    assert second[-2:] == [znodes.topic_config_path("t"), znodes.topic_path("t")]
    assert third[-1] == znodes.delete_topic_path("t")


def test_a_topic_without_settings_is_deleted(case: StoreCase) -> None:
    case.server.put(znodes.delete_topic_path("t"))
    case.store.delete_topic("t")
    assert not case.session.exists(znodes.topic_path("t"))
    case.server.put(znodes.topic_config_path("t"), b"{}")
    case.store.delete_topic("t")  # once more, as after a failover
    assert not case.session.exists(znodes.delete_topic_path("t"))


def test_offsets_that_may_not_be_deleted_do_not_stop_the_deletion(
    case: StoreCase, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept, deleted = offsets_of(case, "a"), offsets_of(case, "b")
    multis(case, monkeypatch, refused=kept)
    case.store.delete_topic("t")
    assert case.session.exists(kept) and not case.session.exists(deleted)
    assert not case.session.exists(znodes.topic_path("t"))
    assert f"Could not delete {kept}" in caplog.text


def test_a_replaced_controller_deletes_no_offsets(case: StoreCase) -> None:
    path = offsets_of(case, "g")
    case.another_controller()
    with pytest.raises(StaleControllerEpochError):
        case.store.delete_topic("t")
    assert case.session.exists(f"{path}/0")
