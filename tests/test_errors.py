"""Wire codes and their errors, in both directions."""

from __future__ import annotations

import pytest

from kafka08.errors import (
    BY_CODE,
    KafkaError,
    LeaderNotAvailableError,
    NotEnoughReplicasAfterAppendError,
    OutOfOrderSequenceError,
    UnknownError,
    code_of,
    for_code,
    raise_for_code,
)


def test_every_code_of_0_8_2_2_has_one_error() -> None:
    assert sorted(BY_CODE) == list(range(-1, 0)) + list(range(1, 21))
    assert all(type(for_code(code)) is BY_CODE[code] for code in BY_CODE)
    assert len({error.text for error in BY_CODE.values()}) == len(BY_CODE)


@pytest.mark.parametrize("code", [21, 45, 127, -2])
def test_a_code_that_0_8_2_2_does_not_know(code: int) -> None:
    assert type(for_code(code)) is UnknownError


def test_the_text_is_the_message_or_that_of_the_class() -> None:
    assert str(for_code(5)) == LeaderNotAvailableError.text
    assert str(for_code(5, "[t,0]")) == "[t,0]"


def test_the_code_of_an_exception() -> None:
    assert code_of(NotEnoughReplicasAfterAppendError()) == 20
    assert code_of(OutOfOrderSequenceError()) == 45
    assert code_of(KafkaError()) == code_of(ValueError()) == -1


def test_raising_by_code() -> None:
    raise_for_code(0)
    with pytest.raises(LeaderNotAvailableError, match="no leader"):
        raise_for_code(5, "no leader")


def test_errors_that_a_new_leader_cures() -> None:
    stale = {code for code, error in BY_CODE.items() if error.stale_metadata}
    assert stale == {3, 5, 6}
    assert stale < {code for code, error in BY_CODE.items() if error.retriable}
