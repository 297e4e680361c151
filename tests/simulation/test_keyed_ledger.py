"""A reader of a topic with keys misses what may not have been removed."""

from __future__ import annotations

import pytest

from tests.simulation.keyed_ledger import POLICIES, Keyed, KeyedLedger, Policy
from tests.simulation.ledger import MessagePlace

COMPACTED, _, BY_SIZE, BY_TIME = POLICIES


def ledger_of(policy: Policy, *keys: bytes) -> KeyedLedger:
    """Messages of these keys were acknowledged, at the offsets from 0 on."""
    ledger = KeyedLedger(policy)
    for offset, key in enumerate(keys):
        ledger.acknowledge(MessagePlace(0, offset), ledger.send(key))
    return ledger


def check(ledger: KeyedLedger, *offsets: int, start: int = 0) -> None:
    """Of the messages a reader found those at these offsets."""
    due = ledger.due(0)
    ledger.check_pass(due, {at: due[at] for at in offsets}, start, len(due))


def test_an_offset_keeps_its_message() -> None:
    ledger = ledger_of(COMPACTED, b"a")
    with pytest.raises(AssertionError, match="offset=0"):
        ledger.see(MessagePlace(0, 0), Keyed(b"a", b"another"))


def test_compaction_removes_what_has_a_later_message() -> None:
    check(ledger_of(COMPACTED, b"a", b"b", b"a"), 1, 2)


def test_the_last_message_of_a_key_is_missed() -> None:
    with pytest.raises(AssertionError, match="lost between 0 and 3"):
        check(ledger_of(COMPACTED, b"a", b"b", b"a"), 0, 2)


def test_a_key_that_was_deleted_may_be_gone() -> None:
    ledger = ledger_of(COMPACTED, b"a", b"b")
    ledger.send(b"a", deletes=True)
    check(ledger, 1)


def test_without_compaction_everything_is_missed() -> None:
    with pytest.raises(AssertionError, match="lost between 0 and 2"):
        check(ledger_of(BY_TIME, b"a", b"a"), 1)


def test_retention_by_time_removes_the_beginning() -> None:
    check(ledger_of(BY_TIME, b"a", b"a", b"b"), 2, start=2)


def test_retention_by_size_keeps_the_last_messages() -> None:
    ledger = ledger_of(BY_SIZE, *[b"a"] * (BY_SIZE.keeps + 5))
    check(ledger, *range(5, BY_SIZE.keeps + 5), start=5)
    with pytest.raises(AssertionError, match="lost between 6"):
        check(ledger, *range(6, BY_SIZE.keeps + 5), start=6)
