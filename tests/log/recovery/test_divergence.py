"""Where two logs part: identical tails, conflicts, cut ends, cleaned logs."""

from __future__ import annotations

import pytest

from kafka08.log.recovery.divergence import Agreement, compare
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry


def entries(*items: tuple[int, str]) -> bytes:
    return b"".join([encode_entry(None, text.encode(), offset) for offset, text in items])


ABC = entries((5, "a"), (6, "b"), (7, "c"))
SIZE = len(ABC) // 3


def check(local: bytes, leader: bytes, offset: int = 5, *, compacted: bool = False) -> Agreement:
    return compare(local, memoryview(leader), offset, compacted=compacted)


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


def test_a_conflict_behind_a_gap() -> None:
    assert check(entries((5, "a"), (7, "X")), ABC, compacted=True) == (7, True)


def test_one_side_ends_before_the_other_begins() -> None:
    assert check(entries((5, "a")), entries((9, "z")), compacted=True) == (6, False)


def test_a_wrapper_that_one_side_has_cleaned_is_no_conflict() -> None:
    def wrapped(*items: tuple[int, str], codec: int = 2) -> bytes:
        return encode_entry(None, compress(codec, entries(*items)), items[-1][0], codec)

    whole, cleaned = wrapped((5, "a"), (6, "b"), (7, "c")), wrapped((5, "a"), (7, "c"))
    shorter = wrapped((5, "a"), (6, "b")) + entries((8, "d"))
    for local, leader in ((whole, cleaned), (cleaned, whole)):
        assert check(local, leader) == (5, True)
        assert check(local, leader, compacted=True) == (8, False)
    assert check(whole, shorter, compacted=True) == (8, False)
    assert check(shorter, whole, compacted=True) == (8, False)
    assert check(whole, wrapped((5, "X"), (7, "c")), compacted=True) == (5, True)
    assert check(whole, encode_entry(None, b"?", 7, 2), compacted=True) == (5, True)
