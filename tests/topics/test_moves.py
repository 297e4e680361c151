"""Moves as values; tests/tools has what the command prints of them."""

from __future__ import annotations

import pytest

from kafka08.admin import AdminCommandFailedError
from kafka08.common import TopicPartition
from kafka08.topics.moves import check_moves, parse_moves, parse_topics

T0 = TopicPartition("t", 0)
ENTRY = b'{"topic":"t","partition":0,"replicas":[%s]}'


def test_repeated_entries_are_kept_and_refused() -> None:
    text = b'{"partitions":[%s,%s]}' % (ENTRY % b"1,2", ENTRY % b"2,1")
    moves = parse_moves("form", text)
    assert moves == [(T0, (1, 2)), (T0, (2, 1))]
    with pytest.raises(AdminCommandFailedError, match=r"duplicate topic partitions: \[t,0\]$"):
        check_moves(moves)


@pytest.mark.parametrize("text", [b"", b"no json", b"{}"])
def test_texts_without_entries(text: bytes) -> None:
    assert parse_moves("form", text) == [] == parse_topics("form", text)
