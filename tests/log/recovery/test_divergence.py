"""Where two logs part: identical tails, conflicts, cut ends, cleaned logs."""

from __future__ import annotations

import pytest

from kafka08.log.recovery.divergence import Agreement, compare
from kafka08.message.batch import encode_batch, header_of
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.markers import ABORT, COMMIT
from tests.fakes.transactional_log import marker
from tests.message.batches import batch


def entries(*items: tuple[int, str]) -> bytes:
    return b"".join([encode_entry(None, text.encode(), offset) for offset, text in items])


ABC = entries((5, "a"), (6, "b"), (7, "c"))
SIZE = len(ABC) // 3


def check(
    local: bytes, leader: bytes, offset: int = 5, *, compacted: bool = False
) -> tuple[int, bool]:
    """The end of the verified part, and whether the rest is in conflict."""
    agreement = compare(local, memoryview(leader), offset, offset, compacted=compacted)
    if not compacted:
        assert agreement.common == agreement.verified
    return agreement[:2]


def common(local: bytes, leader: bytes) -> int:
    return compare(local, memoryview(leader), 5, 3, compacted=True).common


@pytest.mark.parametrize("compacted", [False, True])
def test_the_same_bytes_agree_as_far_as_both_are_whole(compacted: bool) -> None:
    assert check(ABC, ABC, compacted=compacted) == (8, False)
    for cut in range(len(ABC)):
        whole = 5 + cut // SIZE
        assert check(ABC[:cut], ABC, compacted=compacted) == (whole, False)
        assert check(ABC, ABC[:cut], compacted=compacted) == (whole, False)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_another_message_at_the_same_offset_is_a_conflict(at: int, compacted: bool) -> None:
    other = bytearray(ABC)
    other[SIZE * (at + 1) - 1] ^= 1
    assert check(bytes(other), ABC, compacted=compacted) == (5 + at, True)
    assert check(ABC, bytes(other), compacted=compacted) == (5 + at, True)


def test_a_conflict_behind_a_cut_is_not_judged() -> None:
    other = entries((5, "a"), (6, "X"))
    assert check(other[:-1], ABC) == (6, False)
    assert check(ABC, other[:-1]) == (6, False)


def test_nothing_on_one_side_says_nothing() -> None:
    assert check(b"", ABC) == (5, False)
    assert check(ABC, b"") == (5, False)


def test_a_gap_is_a_conflict_unless_compacted() -> None:
    gap = entries((5, "a"), (7, "c"))
    for local, leader in ((gap, ABC), (ABC, gap)):
        assert check(local, leader) == (6, True)
        assert check(local, leader, compacted=True) == (8, False)


def test_a_conflict_behind_a_gap_counts_from_the_last_common_message() -> None:
    assert check(entries((5, "a"), (7, "X")), ABC, compacted=True) == (6, True)
    assert check(ABC, entries((5, "a"), (7, "X")), compacted=True) == (6, True)


def test_one_side_ends_before_the_other_begins() -> None:
    assert check(entries((5, "a")), entries((9, "z")), compacted=True) == (6, False)


def wrapped(*items: tuple[int, str], codec: int = 2) -> bytes:
    return encode_entry(None, compress(codec, entries(*items)), items[-1][0], codec)


def test_wrappers_with_other_ends_can_be_in_conflict() -> None:
    """None of the ends is in both, and 5 and 6 are other messages."""
    local = wrapped((4, "a"), (5, "b"), (6, "c")) + wrapped((7, "d"), (8, "e"))
    leader = wrapped((4, "a"), (5, "X"), (6, "Y"), (7, "Z")) + wrapped((8, "b"), (9, "c"))
    for one, other in ((local, leader), (leader, local)):
        assert check(one, other, 4, compacted=True) == (4, True)


def test_a_conflict_within_an_entry_counts_from_its_first_message() -> None:
    """A log is cut between entries: a cut within one would lose what it has before."""
    ours = entries((3, "x")) + wrapped((4, "a"), (5, "b"), (6, "c"))
    leader = entries((3, "x"), (4, "a"), (5, "b"), (6, "Y"))
    assert check(ours, leader, 3, compacted=True) == (4, True)
    assert check(ours[len(entries((3, "x"))) :], leader, 5, compacted=True) == (4, True)
    assert check(leader, ours, 3, compacted=True) == (6, True)


def test_another_time_is_a_conflict() -> None:
    one, other = (encode_entry(b"k", b"v", 5, timestamp=time) for time in (7, 8))
    assert check(one, other, compacted=True) == (5, True)


def test_a_batch_without_records_agrees_with_what_it_was() -> None:
    """Compaction leaves it where a producer needs it."""
    whole = batch([(b"k", b"v", 0, ())], 5, producer_id=3)
    empty = encode_batch(header_of(whole)._replace(count=0), b"")
    for one, other in ((whole, empty), (empty, whole)):
        assert check(one, other, compacted=True) == (6, False)


def test_a_marker_is_no_gap() -> None:
    """It stands where the other side has messages, or another marker."""
    messages = batch([(b"k", b"v", 0, ()), (b"l", b"w", 0, ())], 5)
    later = entries((8, "d"))
    commit, abort = (marker(7, at, kind) for at, kind in ((5, COMMIT), (5, ABORT)))
    for one, other in ((messages, commit), (commit, messages), (commit, abort)):
        assert check(one, other + later, compacted=True) == (5, True)
    assert check(commit + later, commit + entries((9, "e")), compacted=True) == (9, False)
    assert common(commit + later, commit + entries((9, "e"))) == 6
    # behind the first message of the other side
    assert check(messages, entries((5, "?")) + marker(7, 6, COMMIT), compacted=True) == (5, True)
    behind = marker(7, 6, COMMIT)
    assert check(messages, behind, compacted=True) == (5, True)


def test_a_marker_that_one_side_has_cleaned_is_no_conflict() -> None:
    rest = entries((6, "b"))
    for one, other in ((marker(7, 5, ABORT) + rest, rest), (rest, marker(7, 5, ABORT) + rest)):
        assert check(one, other, compacted=True) == (7, False)


def test_a_wrapper_that_one_side_has_cleaned_is_no_conflict() -> None:
    whole, cleaned = wrapped((5, "a"), (6, "b"), (7, "c")), wrapped((5, "a"), (7, "c"))
    shorter = wrapped((5, "a"), (6, "b")) + entries((8, "d"))
    for local, leader in ((whole, cleaned), (cleaned, whole)):
        assert check(local, leader) == (5, True)
        assert check(local, leader, compacted=True) == (8, False)
    assert check(whole, shorter, compacted=True) == (8, False)
    assert check(shorter, whole, compacted=True) == (8, False)
    assert check(whole, wrapped((5, "X"), (7, "c")), compacted=True) == (5, True)
    assert check(whole, encode_entry(None, b"?", 7, 2), compacted=True) == (5, True)


def test_the_end_of_what_both_have() -> None:
    assert common(ABC, ABC[: 2 * SIZE]) == 7
    assert common(ABC, entries((6, "b"), (9, "z"))) == 7
    assert common(ABC, entries((5, "a"), (7, "X"))) == 6
    assert common(ABC, entries((9, "z"))) == common(ABC, b"") == common(b"", ABC) == 3
    # an entry that has a message of the leader is the leader's
    assert common(wrapped((5, "a"), (6, "b"), (7, "c")), entries((6, "b"), (9, "z"))) == 8


@pytest.mark.parametrize("is_over", [True, False])
def test_a_log_is_cut_where_it_parts_from_the_leader(is_over: bool) -> None:
    def cut(verified: int, conflict: bool, common: int) -> int | None:
        return Agreement(verified, conflict, common).cut_at(9, is_over=is_over)

    assert cut(7, True, 7) == 7
    assert cut(7, True, 5) == 5
    assert cut(9, False, 5) == 5  # nothing of it is left to compare
    assert cut(9, False, 9) is None
    assert cut(7, False, 5) == (5 if is_over else None)
