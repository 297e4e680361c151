"""How kafka-log-convert learns the ends of transactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.message.batch import header_of
from kafka08.message.markers import ABORT, COMMIT
from kafka08.message.sets import encode_set
from tests.fakes.transactional_log import STORED, marker, written
from tools.logs.transactions import DROP, KEEP, UnknownOutcomeError, transactions


def segments(path: Path, *parts: list[bytes]) -> list[str]:
    found = []
    for part in parts:
        base = int.from_bytes(part[0][:8], "big")
        log = path / f"{base:020d}.log"
        log.write_bytes(b"".join(part))
        found.append(str(log))
    return found


@pytest.mark.parametrize("cut", range(len(STORED)))
def test_transactions_end_in_any_segment(tmp_path: Path, cut: int) -> None:
    parts = [STORED[:cut], STORED[cut:]] if cut else [STORED]
    found = transactions(segments(tmp_path, *parts))
    assert found.aborted == [(7, 1, 4), (7, 8, 9)]
    assert found.open == {8: 10}


def test_what_is_left_out(tmp_path: Path) -> None:
    found = transactions(segments(tmp_path, STORED))
    batches = [header_of(each) for each in STORED[1:-1]]  # the first and the last are of format 0

    def left_out(open_as: str) -> list[int]:
        aborted = found.left_out(open_as)
        return [each.base_offset for each in batches if each in aborted]

    assert left_out(KEEP) == [1, 8]
    assert left_out(DROP) == [1, 8, 10]
    with pytest.raises(UnknownOutcomeError, match=r"offset 10 is open \(producer 8; 1 in all\)"):
        found.left_out(None)


def test_without_open_transactions_nothing_has_to_be_said(tmp_path: Path) -> None:
    found = transactions(segments(tmp_path, STORED[:-2]))
    assert header_of(STORED[1]) in found.left_out(None)


def test_the_beginning_may_be_gone(tmp_path: Path) -> None:
    """By retention, or converted before an interruption."""
    found = transactions(segments(tmp_path, STORED[3:9]))
    assert found.aborted == [(7, 8, 9)]
    assert found.open == {}


def test_batches_without_a_transaction_stay(tmp_path: Path) -> None:
    plain = written(7, 2, b"plain", attributes=0)
    log = [written(7, 1, b"aborted"), plain, marker(7, 3, ABORT), written(7, 4, b"a")]
    found = transactions(segments(tmp_path, [*log, marker(7, 5, COMMIT)]))
    aborted = found.left_out(None)
    assert [header_of(each) in aborted for each in log] == [True, False, False, False]


def test_a_damaged_marker_may_have_ended_anything(tmp_path: Path) -> None:
    for number in range(1, len(STORED) - 1):
        log = list(STORED)
        broken = bytearray(log[number])
        broken[-1] ^= 1
        log[number] = bytes(broken)
        text = f"{0:020d}.log is damaged where transactions end, at position"
        with pytest.raises(UnknownOutcomeError, match=text):
            transactions(segments(tmp_path, log))


def test_a_log_without_transactions_may_be_damaged(tmp_path: Path) -> None:
    """Then the conversion says what is left as it is."""
    plain = bytearray(written(7, 1, b"plain", attributes=0))
    plain[-1] ^= 1
    log = [encode_set([(None, b"old")]), bytes(plain), b"no entry" * 9]
    assert transactions(segments(tmp_path, log)) == ([], {})
    log[1:1] = [written(8, 1, b"x")]
    with pytest.raises(UnknownOutcomeError, match="where transactions end"):
        transactions(segments(tmp_path, log))
