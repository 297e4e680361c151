"""Facts that a ledger refuses."""

from __future__ import annotations

import pytest

from tests.simulation.ledger import InGeneration, Ledger, MessagePlace

FIRST, SECOND = MessagePlace(0, 0), MessagePlace(0, 1)


def test_what_was_acknowledged_is_lost_until_it_is_seen() -> None:
    ledger = Ledger()
    ledger.acknowledge(FIRST, b"a")
    ledger.acknowledge(SECOND, b"b")
    assert ledger.lost == {FIRST: b"a", SECOND: b"b"}
    ledger.see(FIRST, b"a")
    assert ledger.lost == {SECOND: b"b"}
    ledger.deleted_until[0] = 2
    assert not ledger.lost


def test_a_place_has_one_value() -> None:
    ledger = Ledger()
    ledger.acknowledge(FIRST, b"a")
    with pytest.raises(AssertionError, match="was acknowledged for b'a'"):
        ledger.see(FIRST, b"b")


def test_a_value_has_one_place() -> None:
    ledger = Ledger()
    ledger.see(FIRST, b"a")
    with pytest.raises(AssertionError, match="b'a' is at"):
        ledger.see(SECOND, b"a")


def test_a_value_may_come_again_after_it_was_deleted() -> None:
    ledger = Ledger()
    ledger.see(FIRST, b"a")
    ledger.deleted_until[0] = 1
    ledger.see(SECOND, b"a")
    with pytest.raises(AssertionError, match="b'a' is at"):
        ledger.see(MessagePlace(0, 2), b"a")


def test_a_leader_alone_may_lose_a_message_but_not_move_it() -> None:
    ledger = Ledger()
    ledger.hope(FIRST, b"a")
    ledger.acknowledge(FIRST, b"b")
    ledger.see(FIRST, b"b")
    assert ledger.dashed == 1
    with pytest.raises(AssertionError, match="b'a' is at"):
        ledger.see(SECOND, b"a")


def test_idempotent_values_are_in_order() -> None:
    ledger = Ledger()
    ledger.see(FIRST, b"b")
    ledger.see(SECOND, b"a")
    ledger.check_order({0: [b"b", b"a"]})
    with pytest.raises(AssertionError, match="are at"):
        ledger.check_order({0: [b"a", b"b"]})


def test_only_the_first_idempotent_values_may_be_deleted() -> None:
    ledger = Ledger()
    ledger.see(SECOND, b"b")
    with pytest.raises(AssertionError, match="b'a' is lost"):
        ledger.check_order({0: [b"a", b"b"]})
    ledger.deleted_until[0] = 1
    ledger.check_order({0: [b"a", b"b"]})
    with pytest.raises(AssertionError, match="b'c' is lost"):
        ledger.check_order({0: [b"b", b"c"]})


def test_a_partition_has_one_owner_in_a_generation() -> None:
    ledger = Ledger()
    ledger.own(InGeneration(0, 1), "one")
    ledger.own(InGeneration(0, 2), "two")
    with pytest.raises(AssertionError, match="one and two own"):
        ledger.own(InGeneration(0, 1), "two")


def test_a_group_passes_over_what_was_deleted_alone() -> None:
    ledger = Ledger()
    ledger.deliver(FIRST)
    ledger.deliver(SECOND)
    ledger.deliver(FIRST)
    with pytest.raises(AssertionError, match="has read up to 2 and gets"):
        ledger.deliver(MessagePlace(0, 3))
    ledger.deleted_until[0] = 3
    ledger.deliver(MessagePlace(0, 3))
