"""Facts about transactions that their ledger refuses."""

from __future__ import annotations

import pytest

from tests.simulation.ledger import MessagePlace
from tests.simulation.list_ledger import COPIES, Fate, ListLedger, Transaction


def places(*transactions: Transaction) -> dict[bytes, MessagePlace]:
    """All elements, one after the other."""
    elements = [each for transaction in transactions for each in transaction.elements]
    return {each.value: MessagePlace(each.partition, at) for at, each in enumerate(elements)}


def test_a_transaction_is_there_as_a_whole_or_not_at_all() -> None:
    ledger = ListLedger()
    asked = ledger.begin("a", [0, 3], commits=True)
    asked.fate = Fate.ASKED
    found = places(asked)
    ledger.check(found)
    ledger.check({})
    del found[asked.elements[0].value]
    with pytest.raises(AssertionError, match="half a transaction of a, asked to commit"):
        ledger.check(found)


def test_a_committed_one_is_not_lost() -> None:
    ledger = ListLedger()
    ledger.begin("a", [0, 3], commits=True).fate = Fate.COMMITTED
    assert ledger.committed == 1
    with pytest.raises(AssertionError, match="of a are lost"):
        ledger.check({})


def test_an_aborted_or_open_one_is_not_seen() -> None:
    ledger = ListLedger()
    transaction = ledger.begin("a", [2], commits=False)
    value = transaction.elements[0].value
    with pytest.raises(AssertionError, match="of an open transaction"):
        ledger.see(MessagePlace(0, 7), value)
    transaction.fate = Fate.ABORTED
    with pytest.raises(AssertionError, match="was aborted"):
        ledger.see(MessagePlace(0, 7), value)


def test_an_element_has_one_place_in_the_partition_of_its_list() -> None:
    ledger = ListLedger()
    transaction = ledger.begin("a", [2], commits=True)
    transaction.fate = Fate.ASKED
    value = transaction.elements[0].value
    ledger.see(MessagePlace(0, 7), value)
    ledger.see(MessagePlace(0, 7), value)
    with pytest.raises(AssertionError, match="is at"):
        ledger.see(MessagePlace(0, 8), value)
    with pytest.raises(AssertionError, match="is at"):
        ledger.see(MessagePlace(1, 7), value)


def test_the_elements_of_a_writer_are_in_their_order() -> None:
    ledger = ListLedger()
    first, second = (ledger.begin("a", [4], commits=True) for _ in range(2))
    other = ledger.begin("b", [4], commits=True)
    for each in (first, second, other):
        each.fate = Fate.COMMITTED
    ledger.check(places(first, other, second))
    ledger.check(places(other, first, second))
    with pytest.raises(AssertionError, match="a appended"):
        ledger.check(places(second, other, first))


def test_a_batch_is_of_one_partition() -> None:
    transaction = ListLedger().begin("a", [0, 2, 1, 4], commits=True)
    batches = []
    while transaction.left:
        batches.append([each.list for each in transaction.next_batch])
        del transaction.left[: len(batches[-1])]
    assert batches == [[0, 2], [1], [4]]


def test_what_is_to_be_aborted_has_the_key_of_an_element_that_stays() -> None:
    ledger = ListLedger()
    kept = ledger.begin("a", [1], commits=True).elements[0]
    dropped, other = ledger.begin("a", [1, 2], commits=False).elements
    assert dropped.key == kept.key != other.key
    assert dropped.value != kept.value
    assert ledger.begin("a", [1], commits=True).elements[0].key != kept.key


def test_copies_are_the_first_elements_of_each_partition_in_their_order() -> None:
    ledger = ListLedger()
    transactions = [ledger.begin("a", [0, 1], commits=True) for _ in range(3)]
    found = places(*transactions)
    even, odd = ([each.elements[at].value for each in transactions] for at in (0, 1))

    def copies(*values: bytes) -> dict[bytes, MessagePlace]:
        return {value: MessagePlace(COPIES, at) for at, value in enumerate(values)}

    ledger.check_copies(found, {})
    ledger.check_copies(found, copies(odd[0], even[0], odd[1], even[1], even[2]))
    for wrong in ((even[1], even[0]), (odd[0], odd[2])):
        with pytest.raises(AssertionError, match="the copies of partition"):
            ledger.check_copies(found, copies(*wrong))
