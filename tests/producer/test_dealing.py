"""Many records at once are distributed over partitions, in order within each."""

from __future__ import annotations

import random

from kafka08.message.entry import MIN_ENTRY
from kafka08.producer.dealing import Columns, dealt
from kafka08.producer.partitioners import RoundRobin


class First(random.Random):
    """RoundRobin begins with the first of two partitions."""

    def randrange(self, *args: int) -> int:  # type: ignore[override]
        return 1


def by_length(key: bytes, count: int) -> int:
    return len(key) % count


def shares(values: list[bytes | None], **given: object) -> list[tuple[int, Columns]]:
    asked = {"keys": None, "partitions": None, "times": (), "headers": None, **given}
    records = Columns(
        values,
        asked["keys"],  # type: ignore[arg-type]
        asked["times"],  # type: ignore[arg-type]
        asked["headers"],  # type: ignore[arg-type]
    )
    found = dealt(
        records,
        asked["partitions"],  # type: ignore[arg-type]
        RoundRobin(First()),
        [0, 1],
        3,
        by_length,
    )
    return list(found)


def test_records_without_keys_are_dealt_in_one_step() -> None:
    assert shares([b"a", b"b", b"c"]) == [
        (0, Columns([b"a", b"c"], None)),
        (1, Columns([b"b"], None)),
    ]


def test_a_key_decides_before_the_turn_and_a_partition_before_both() -> None:
    found = shares(
        [b"a", b"b", b"c", b"d"], keys=[b"xx", None, b"y", None], partitions=[None, None, 0, None]
    )
    assert found == [
        (2, Columns([b"a"], [b"xx"])),
        (0, Columns([b"b", b"c"], [None, b"y"])),
        (1, Columns([b"d"], [None])),
    ]


def test_sizes_are_those_of_uncompressed_entries() -> None:
    assert Columns([b"abc", None], None).sizes() == [MIN_ENTRY + 3, MIN_ENTRY]
    assert Columns([b"abc", None], [None, b"kk"]).sizes() == [MIN_ENTRY + 3, MIN_ENTRY + 2]


def test_times_and_headers_go_with_their_records() -> None:
    given = {"times": [1, 2, 3], "headers": [None, b"hh", None]}
    assert shares([b"a", b"b", b"c"], **given) == [
        (0, Columns([b"a", b"c"], None, [1, 3], [None, None])),
        (1, Columns([b"b"], None, [2], [b"hh"])),
    ]
    found = shares([b"a", b"b"], partitions=[2, 2], **given)
    assert found == [(2, Columns([b"a", b"b"], None, [1, 2], [None, b"hh"]))]
    assert found[0][1].sizes() == [MIN_ENTRY + 1, MIN_ENTRY + 3]
