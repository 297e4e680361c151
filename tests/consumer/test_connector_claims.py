"""High-level consumers: owner nodes, those of others above all, and the ends of sessions."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka08.consumer.errors import (
    ConsumerRebalanceFailedError,
)
from tests.consumer.group_world import ConnectorMember, GroupWorld, settle
from zk import znodes
from zk.errors import SessionExpiredError


@pytest.mark.scenario("client-9")
def test_stuck_owner_fails_all_tries_and_leaves_nothing_claimed(world: GroupWorld) -> None:
    world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")
    member = ConnectorMember(world)
    with pytest.raises(ConsumerRebalanceFailedError, match="can't rebalance after 4 retries"):
        member.join()
    assert world.runtime.slept == [2.0] * 4
    assert world.owners() == {1: "g_other-0"}


def test_a_partition_is_claimed_as_soon_as_its_owner_has_released_it(world: GroupWorld) -> None:
    world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")

    def release() -> None:
        world.runtime.clock.advance(0.25)
        world.ensemble.remove("/consumers/g/owners/t/1")

    world.runtime.while_waiting.append(release)
    ConnectorMember(world).join()
    assert world.runtime.slept == []
    assert set(world.owners()) == {0, 1}


def test_a_try_that_a_new_member_has_disturbed_is_repeated_at_once(world: GroupWorld) -> None:
    """It took partition 1 by the view with both members, while ours was without it."""
    world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")
    other = znodes.ConsumerRegistration({"t": 1}, znodes.STATIC, "1")

    def join() -> None:
        world.ensemble.put("/consumers/g/ids/g_other", znodes.encode_consumer(other))

    world.runtime.while_waiting.append(join)
    ConnectorMember(world).join()
    assert world.runtime.slept == []
    assert set(world.owners()) == {0, 1}


def test_owners_that_release_in_turn_do_not_use_up_the_tries(world: GroupWorld) -> None:
    world.topic("t", 12)
    paths = [f"/consumers/g/owners/t/{number}" for number in range(12)]
    for path in paths:
        world.ensemble.put(path, b"g_other-0")
    for path in paths:
        world.runtime.while_waiting.append(lambda path=path: world.ensemble.remove(path))
    ConnectorMember(world).join()
    assert world.runtime.slept == []
    assert len(world.owners()) == 12


def test_owners_that_come_back_again_and_again_end_the_tries(world: GroupWorld) -> None:
    path = "/consumers/g/owners/t/1"
    world.ensemble.put(path, b"g_other-0")

    def come_back() -> None:
        world.ensemble.remove(path)
        world.ensemble.put(path, b"g_other-0")
        world.runtime.while_waiting.append(come_back)

    world.runtime.while_waiting.append(come_back)
    with pytest.raises(ConsumerRebalanceFailedError, match="can't rebalance after 4 retries"):
        ConnectorMember(world).join()


@pytest.mark.scenario("client-9")
def test_worker_recovers_with_the_next_event(world: GroupWorld, caplog: Any) -> None:
    member = ConnectorMember(world).join()
    world.ensemble.put("/consumers/g/owners/u/0", b"g_other-0")
    world.topic("t", 3)
    world.ensemble.put("/consumers/g/owners/t/2", b"g_other-0")
    member.handle_events()
    assert "can't rebalance" in caplog.text
    assert world.owners() == {2: "g_other-0"}
    world.ensemble.remove("/consumers/g/owners/t/2")
    world.topic("t", 3)
    member.handle_events()
    assert len(world.owners()) == 3


def test_worker_tries_again_without_an_event(world: GroupWorld, caplog: Any) -> None:
    member = ConnectorMember(world).join()
    world.ensemble.put("/consumers/g/owners/t/2", b"g_other-0")
    world.topic("t", 3)
    member.handle_events()
    assert "[t,2] is still owned by g_other-0" in caplog.text
    assert "delete /consumers/g/owners/t/2" in caplog.text
    # As if the session of the watch had ended.
    del world.ensemble.nodes["/consumers/g/owners/t/2"]
    member.handle_events()
    assert len(world.owners()) == 3


def test_owner_nodes_of_others_are_left_alone_after_the_session(world: GroupWorld) -> None:
    """The one who slept through its session's end must not take from who took over."""
    member = ConnectorMember(world).join()
    world.ensemble.end_session(member.zk.session_id)
    other = ConnectorMember(world, "b").join()
    owners = world.owners()
    assert set(owners.values()) == {"g_b-0"}
    # Its client has a new session already; the news of that is still on its way.
    member.zk.new_session()
    member.handle_events()
    assert world.owners() == owners
    member.zk.expire()
    settle(member, other)
    assert sorted(world.owners().values()) == ["g_b-0", "g_c-0"]


@pytest.mark.scenario("client-8")
def test_session_lost_during_a_rebalance_ends_it(world: GroupWorld, caplog: Any) -> None:
    member = ConnectorMember(world).join()
    world.ensemble.put("/consumers/g/owners/t/2", b"g_other-0")
    world.topic("t", 3)
    world.runtime.on_sleep = lambda seconds: member.zk.expire() if seconds == 2.0 else None
    member.handle_events()
    assert world.runtime.slept == [2.0]
    world.runtime.on_sleep = None
    del world.ensemble.nodes["/consumers/g/owners/t/2"]
    member.handle_events()
    assert set(world.owners()) == {0, 1, 2}


@pytest.mark.parametrize("stolen", [False, True])
def test_an_owner_node_that_somebody_deletes_is_claimed_again(
    world: GroupWorld, stolen: bool
) -> None:
    member = ConnectorMember(world).join()
    world.ensemble.remove("/consumers/g/owners/t/1")
    if stolen:
        world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")
        del world.ensemble.nodes["/consumers/g/owners/t/1"]
    member.handle_events()
    assert world.owners() == {0: "g_c-0", 1: "g_c-0"}


def test_a_group_that_is_deleted_under_its_members_forms_again(world: GroupWorld) -> None:
    """As kafka-console-consumer --delete-consumer-offsets and the perf test do."""
    member = ConnectorMember(world).join()
    for path in sorted(world.ensemble.nodes, reverse=True):
        if path.startswith("/consumers/g"):
            world.ensemble.remove(path)
    member.handle_events()
    assert world.ensemble.below("/consumers/g/ids") == ["g_c"]
    assert world.owners() == {0: "g_c-0", 1: "g_c-0"}


def test_an_owner_node_an_attempt_left_behind_is_replaced(world: GroupWorld) -> None:
    member = ConnectorMember(world)
    for path in ("/consumers", "/consumers/g", "/consumers/g/owners", "/consumers/g/owners/t"):
        world.ensemble.put(path)
    world.ensemble.add("/consumers/g/owners/t/0", b"g_c-7", member.zk.session_id)
    member.join()
    assert world.owners() == {0: "g_c-0", 1: "g_c-0"}


def test_owner_node_of_an_old_session_is_not_taken_for_ours(world: GroupWorld) -> None:
    world.ensemble.add("/consumers", b"", 0)
    for path in ("/consumers/g", "/consumers/g/owners", "/consumers/g/owners/t"):
        world.ensemble.put(path)
    world.ensemble.add("/consumers/g/owners/t/0", b"g_c-0", 99)
    member = ConnectorMember(world)
    world.runtime.on_sleep = lambda seconds: world.ensemble.end_session(99)
    member.join()
    assert world.runtime.slept == [2.0]
    assert len(world.owners()) == 2


@pytest.mark.scenario("client-8")
def test_expired_session_registers_and_claims_anew(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    member = ConnectorMember(world).join()
    assert len(member.read()) == 2
    world.runtime.clock.now_ms += 5000
    member.zk.expire()
    assert world.owners() == {}
    member.handle_events()
    assert len(world.owners()) == 2
    assert '"timestamp":"1005' in world.ensemble.text("/consumers/g/ids/g_c")
    # Nothing was committed on the way: another may have gone further.
    assert world.offset("t", 0) is None
    assert member.read() == [("t", 0, 0), ("t", 0, 1)]


def test_an_expired_session_is_told_without_a_traceback(
    world: GroupWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.cluster.append("t", 0, b"a")
    member = ConnectorMember(world).join()
    member.read()

    def expired(call: str, path: str) -> None:
        raise SessionExpiredError(path=path)

    member.zk.before = expired
    world.runtime.step("kafka-consumer-autocommit")
    member.zk.expire()
    member.handle_events()
    texts = [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
    assert [text.partition(": ")[0] for text in texts] == [
        "The offsets were not committed",
        "error during syncedRebalance",
    ]
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    member.zk.before = None
    member.handle_events()
    assert len(world.owners()) == 2
    member.read()
    member.zk.before = expired
    member.connector.close()
    assert caplog.records[-2].getMessage().startswith("The last offsets were not committed: ")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_same_id_waits_for_the_other_to_go(world: GroupWorld) -> None:
    other = ConnectorMember(world).join()
    world.runtime.on_sleep = lambda seconds: other.connector.close() if seconds == 6.0 else None
    second = ConnectorMember(world).join({"t": 2})
    assert world.runtime.slept.count(6.0) == 1
    assert world.owners() == {0: "g_c-0", 1: "g_c-1"}
    assert second.zk.session_id != other.zk.session_id


def test_close_during_a_rebalance_ends_it(world: GroupWorld) -> None:
    world.ensemble.put("/consumers/g/owners/t/1", b"g_other-0")
    member = ConnectorMember(world)
    world.runtime.on_sleep = lambda seconds: member.connector.close()
    member.join()
    assert world.runtime.slept == [2.0]
    assert world.owners() == {1: "g_other-0"}
