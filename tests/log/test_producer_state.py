"""Idempotent producers: the table of sequences and epochs, snapshots, truncation, expiry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    OutOfOrderSequenceError,
)
from kafka08.log.producer_state import BatchMetadata, CorruptSnapshotError, ProducerStates
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


def test_a_producer_of_control_batches_alone_has_no_sequence() -> None:
    found = ProducerStates()
    found.update(batch(-1, epoch=3), 0)
    again = ProducerStates.restore(found.snapshot(), 0)
    for each in (found, again):
        assert each.check(batch(17, epoch=3)) is None
        with pytest.raises(InvalidProducerEpochError):
            each.check(batch(0, epoch=2))


def test_control_batches_leave_the_sequence_as_it_is() -> None:
    found = states(batch(0, 2))
    for _ in range(9):
        found.update(batch(-1), 0)
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
