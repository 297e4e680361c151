"""Idempotent producers: the table of sequences and epochs, snapshots, truncation, expiry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kafka08.log.producer_state import (
    BatchMetadata,
    CompletedTransaction,
    CorruptSnapshotError,
    Origin,
    ProducerStates,
)
from kafka08.message.markers import ABORT, COMMIT, IN_TRANSACTION, OTHER_CONTROL
from tests.log.support import last_batches

LAST = (1 << 31) - 1
# Two producers, as Kafka 3.9.1 stored them.
SNAPSHOT = bytes.fromhex(
    "00018e90e50e00000002"
    "0000000000000021000100000002000000000000001700000002"
    "0000018bcfe58f12ffffffffffffffffffffffff"
    "000000000000002200000000000900000000000000"
    "1a000000020000018bcfe58f12ffffffffffffffffffffffff"
)


def batch(
    first: int, count: int = 1, *, offset: int = 0, epoch: int = 0, producer: int = 7, at: int = 0
) -> BatchMetadata:
    return BatchMetadata(producer, epoch, first, offset, count - 1, at)


def in_transaction(first: int, *, offset: int = 0, **more: int) -> BatchMetadata:
    return batch(first, offset=offset, **more)._replace(part=IN_TRANSACTION)


def marker(part: int, *, offset: int = 0, coordinator: int = 0, **more: int) -> BatchMetadata:
    found = batch(-1, offset=offset, **more)
    return found._replace(part=part, coordinator_epoch=coordinator)


def states(*batches: BatchMetadata) -> ProducerStates:
    found = ProducerStates()
    for each in batches:
        assert found.check(each) is None
        found.update(each, 0)
    return found


@pytest.mark.scenario("modern-46")
@pytest.mark.parametrize("first", [0, 5, LAST])
def test_an_unknown_producer_may_begin_anywhere(first: int) -> None:
    found = states(batch(first, 3))
    assert last_batches(found)[7][-1].last_sequence == (first + 2) % (1 << 31)


@pytest.mark.scenario("modern-46")
def test_the_next_sequence_wraps_to_0() -> None:
    found = states(batch(LAST - 1, 2), batch(0))
    assert found.check(batch(1)) is None
    across = states(batch(LAST, 2))
    assert across.check(batch(1)) is None


@pytest.mark.parametrize("part", [ABORT, COMMIT])
def test_a_batch_of_an_ended_transaction_is_not_repeated(part: int) -> None:
    """librdkafka purges a batch that may be stored when it aborts, and gives its sequences to the
    next transaction, whose messages must not be taken for stored."""
    found = states(in_transaction(0, offset=10), in_transaction(1, offset=11))
    assert found.check(in_transaction(1)) is not None
    found.update(marker(part, offset=12), 0)
    for first in (0, 1):
        with pytest.raises(OutOfOrderSequenceError, match="instead of 2"):
            found.check(in_transaction(first))
    found.update(in_transaction(2, offset=13), 0)
    assert found.check(in_transaction(2)) is not None
    with pytest.raises(OutOfOrderSequenceError, match="instead of 3"):
        found.check(in_transaction(1))


@pytest.mark.scenario("modern-46")
def test_the_last_five_batches_are_recognised() -> None:
    found = states(*(batch(n * 2, 2, offset=100 + n * 2) for n in range(7)))
    for n in range(2, 7):
        stored = found.check(batch(n * 2, 2))
        assert stored is not None and stored.base_offset == 100 + n * 2
    for n in range(2):
        with pytest.raises(OutOfOrderSequenceError):
            found.check(batch(n * 2, 2))


@pytest.mark.scenario("modern-46")
@pytest.mark.parametrize(("first", "count"), [(4, 1), (1, 1), (0, 1), (0, 4), (1, 2), (2, 2)])
def test_gaps_and_overlaps_are_errors(first: int, count: int) -> None:
    found = states(batch(0, 3))
    with pytest.raises(OutOfOrderSequenceError):
        found.check(batch(first, count))


@pytest.mark.scenario("modern-46")
def test_epochs() -> None:
    found = states(batch(0, epoch=1))
    with pytest.raises(InvalidProducerEpochError):
        found.check(batch(1, epoch=0))
    with pytest.raises(OutOfOrderSequenceError):
        found.check(batch(1, epoch=2))
    assert found.check(batch(0, epoch=2)) is None
    found.update(batch(0, epoch=2, offset=9), 0)
    with pytest.raises(InvalidProducerEpochError):
        found.check(batch(0, epoch=1))
    assert found.check(batch(1, epoch=2)) is None


@pytest.mark.parametrize(("first", "epoch"), [(-1, 0), (0, -1), (-5, -1)])
def test_a_batch_needs_epoch_and_sequence(first: int, epoch: int) -> None:
    with pytest.raises(InvalidRecordError):
        ProducerStates().check(batch(first, epoch=epoch))


def test_a_snapshot_is_the_bytes_of_kafka_3_9() -> None:
    found = ProducerStates.restore(SNAPSHOT, 0)
    assert last_batches(found) == {
        33: (BatchMetadata(33, 1, 0, 21, 2, 1700000010002),),
        34: (BatchMetadata(34, 0, 7, 24, 2, 1700000010002),),
    }
    assert found.snapshot() == SNAPSHOT


@pytest.mark.parametrize(
    "data",
    [
        b"",
        SNAPSHOT[:9],
        SNAPSHOT[:-1],
        SNAPSHOT[:-1] + b"\0",
        b"\0\2" + SNAPSHOT[2:],
        SNAPSHOT[:6] + b"\0\0\0\1" + SNAPSHOT[10:],
    ],
)
def test_a_damaged_snapshot_is_an_error(data: bytes) -> None:
    with pytest.raises(CorruptSnapshotError):
        ProducerStates.restore(data, 0)


@pytest.mark.scenario("modern-45")
def test_after_a_snapshot_the_last_batch_is_known() -> None:
    before = states(batch(0, 2, offset=10), batch(2, 3, offset=12, at=99))
    after = ProducerStates.restore(before.snapshot(), 0)
    assert after.check(batch(2, 3)) == batch(2, 3, offset=12, at=99)
    assert after.check(batch(5)) is None
    with pytest.raises(OutOfOrderSequenceError):
        after.check(batch(0, 2))


def test_a_producer_of_which_there_are_only_markers_begins_with_0() -> None:
    """As with a new epoch: the marker of a timeout brings one."""
    found = ProducerStates()
    found.update(marker(ABORT, epoch=3), 0)
    again = ProducerStates.restore(found.snapshot(), 0)
    for each in (found, again):
        assert each.check(batch(0, epoch=3)) is None
        with pytest.raises(OutOfOrderSequenceError):
            each.check(batch(17, epoch=3))
        with pytest.raises(InvalidProducerEpochError):
            each.check(batch(0, epoch=2))


def test_markers_leave_the_sequence_as_it_is() -> None:
    found = states(batch(0, 2))
    for _ in range(9):
        found.update(marker(COMMIT), 0)
    assert found.check(batch(0, 2)) is not None and found.check(batch(2)) is None
    with pytest.raises(OutOfOrderSequenceError):
        found.check(batch(3))


def test_truncation_takes_batches_back() -> None:
    found = states(*(batch(n, offset=n) for n in range(8)), batch(0, offset=2, producer=8))
    assert found.truncate(5)
    assert found.check(batch(5)) is None and found.check(batch(4)) is not None
    assert not found.truncate(3)  # batches 0 to 2 are in the log and not here
    assert list(last_batches(found)) == [8]
    assert found.truncate(3) and not found.truncate(0) and len(found) == 0


@pytest.mark.scenario("modern-47")
def test_producers_are_forgotten_when_they_are_silent() -> None:
    """By the broker's clock: the times of the batches are the producer's."""
    found = ProducerStates()
    for producer in range(200_000):
        found.update(batch(0, producer=producer, at=producer), 1000)
    found.update(batch(1, producer=5, at=5), 2000)
    assert found.expire(1000) == 0
    assert found.expire(1001) == 199_999 and list(last_batches(found)) == [5]


def test_after_a_restart_the_time_of_the_last_batch_counts() -> None:
    before = states(batch(0, at=10), batch(0, producer=8, at=20), batch(0, producer=9, at=99))
    after = ProducerStates.restore(before.snapshot(), 30)
    assert after.expire(20) == 1 and list(last_batches(after)) == [8, 9]
    assert after.expire(31) == 2  # that of 9 was in the future


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.booleans()), max_size=40))
def test_replays_give_the_same_state(steps: list[tuple[int, int, bool]]) -> None:
    """Sends with repetitions: each batch is stored once, and the log rebuilds the state."""
    found, log, end = ProducerStates(), [], 0
    following = dict.fromkeys(range(5), 0)
    for producer, count, again in steps:
        sent = batch(following[producer], count, offset=end, producer=producer)
        assert found.check(sent) is None
        found.update(sent, 0)
        log.append(sent)
        end += count
        following[producer] += count
        if again:
            assert found.check(sent._replace(base_offset=end)) == sent
    rebuilt = ProducerStates()
    for each in log:
        rebuilt.update(each, 0)
    assert last_batches(rebuilt) == last_batches(found)
    assert sum(each.last_delta + 1 for each in log) == end


# Transactions


def test_a_transaction_begins_with_its_first_batch_and_ends_with_a_marker() -> None:
    found = states(in_transaction(0, offset=5))
    assert found.open == {7: 5}
    assert found.update(in_transaction(1, offset=6), 0) is None
    assert found.update(in_transaction(0, offset=7, producer=8), 0) is None
    assert found.open == {7: 5, 8: 7}
    done = found.update(marker(COMMIT, offset=9), 0)
    assert done == CompletedTransaction(7, 5, 9, is_aborted=False)
    assert found.open == {8: 7} and found[7].transaction_start == -1
    done = found.update(marker(ABORT, offset=10, producer=8), 0)
    assert done == CompletedTransaction(8, 7, 10, is_aborted=True)
    assert not found.open and found.transactional_end == 11


def test_a_marker_without_batches_completes_nothing() -> None:
    found = ProducerStates()
    assert found.update(marker(ABORT, coordinator=4), 0) is None
    assert found[7].coordinator_epoch == 4 and not found.open


def test_other_control_batches_end_no_transaction() -> None:
    found = states(in_transaction(0, offset=5))
    assert found.update(marker(OTHER_CONTROL, offset=6), 0) is None
    assert found.open == {7: 5}


def test_the_marker_of_a_timeout_brings_a_new_epoch() -> None:
    found = states(in_transaction(0, offset=5), in_transaction(1, offset=6))
    done = found.update(marker(ABORT, offset=7, epoch=1), 0)
    assert done == CompletedTransaction(7, 5, 7, is_aborted=True)
    with pytest.raises(InvalidProducerEpochError):  # a late write
        found.check(in_transaction(2))
    with pytest.raises(OutOfOrderSequenceError):
        found.check(in_transaction(2, epoch=1))
    assert found.check(in_transaction(0, epoch=1)) is None


def test_a_producer_sends_nothing_beside_its_transaction() -> None:
    found = states(in_transaction(0))
    with pytest.raises(InvalidTxnStateError):
        found.check(batch(1))
    found.update(marker(COMMIT), 0)
    assert found.check(batch(1)) is None


def test_coordinators_are_fenced_by_their_epoch() -> None:
    found = states(in_transaction(0, epoch=2))
    found.update(marker(COMMIT, epoch=2, coordinator=5), 0)

    def check(part: int, **more: int) -> None:
        assert found.check(marker(part, **more), Origin.COORDINATOR) is None

    check(ABORT, epoch=2, coordinator=5)
    check(ABORT, epoch=3, coordinator=6)
    with pytest.raises(TransactionCoordinatorFencedError):
        check(COMMIT, epoch=2, coordinator=4)
    with pytest.raises(InvalidProducerEpochError):
        check(COMMIT, epoch=1, coordinator=5)
    # Offsets have the same sequence each time.
    offsets = in_transaction(0, epoch=2)
    assert found.check(offsets, Origin.COORDINATOR) is None
    with pytest.raises(InvalidProducerEpochError):
        found.check(in_transaction(0, epoch=1), Origin.COORDINATOR)


def test_a_snapshot_has_open_transactions_in_the_order_of_their_offsets() -> None:
    found = states(in_transaction(0, offset=5), in_transaction(0, offset=8, producer=9))
    found.update(in_transaction(0, offset=9, producer=3), 0)
    found.update(marker(COMMIT, offset=10, producer=9, coordinator=6, at=77), 0)
    found.update(in_transaction(1, offset=11, producer=9), 0)
    again = ProducerStates.restore(found.snapshot(), 0, 12)
    assert list(again.open.items()) == [(7, 5), (3, 9), (9, 11)]
    assert again[9].coordinator_epoch == 6 and again.transactional_end == 12
    assert again.snapshot() == found.snapshot()


def test_a_truncation_behind_a_transaction_changes_nothing() -> None:
    assert states(batch(0, offset=1), in_transaction(1, offset=2)).truncate(3)
    found = states(batch(0, offset=1), in_transaction(1, offset=2))
    assert not found.truncate(2)
    assert found.open == {7: 2} and len(last_batches(found)[7]) == 2


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    found = states(in_transaction(0), batch(0, producer=8))
    assert found.expire(1) == 1
    assert list(found) == [7]
    found.update(marker(COMMIT), 0)
    assert found.expire(1) == 1
