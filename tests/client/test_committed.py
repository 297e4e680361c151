"""Readers of committed transactions are shown no batch of an aborted one."""

from __future__ import annotations

from kafka08.client.committed import without_aborted
from kafka08.message.markers import ABORT, COMMIT
from kafka08.message.sets import encode_set, iter_messages
from tests.fakes.transactional_log import marker, written

DATA = b"".join(
    [
        encode_set([(None, b"old")]),
        written(7, 1, b"aborted"),
        written(8, 2, b"kept", b"too"),
        written(7, 4, b"plain", attributes=0),
        written(7, 5, b"aborted"),
        marker(7, 6, ABORT),
        written(7, 7, b"committed"),
        marker(8, 8, COMMIT),
        written(8, 9, b"later"),
        marker(7, 10, COMMIT),
        marker(8, 11, ABORT),
    ]
)


def shown(*aborted: tuple[int, int], data: bytes = DATA) -> list[bytes | None]:
    return [message.value for message in iter_messages(without_aborted(data, aborted))]


def test_without_aborted_transactions_the_bytes_are_the_same() -> None:
    assert without_aborted(DATA, []) is DATA
    assert without_aborted(DATA, [(9, 0), (7, 100)]) is DATA


def test_batches_are_left_out_up_to_the_marker() -> None:
    all_ = [b"old", b"aborted", b"kept", b"too", b"plain", b"aborted", b"committed", b"later"]
    assert shown() == all_
    assert shown((7, 1)) == [b"old", b"kept", b"too", b"plain", b"committed", b"later"]
    assert shown((8, 9)) == all_[:-1]
    assert shown((8, 9), (7, 1)) == [b"old", b"kept", b"too", b"plain", b"committed"]


def test_the_bytes_may_begin_within_a_transaction() -> None:
    start = DATA.index(written(8, 2, b"kept", b"too"))
    assert shown((7, 1), data=DATA[start:]) == [b"kept", b"too", b"plain", b"committed", b"later"]


def test_a_cut_entry_at_the_end_is_left_out_with_the_rest() -> None:
    assert shown((7, 1), data=DATA[:-5]) == shown((7, 1))
    assert bytes(without_aborted(DATA[:-5], [(7, 1)])).endswith(marker(7, 10, COMMIT))
