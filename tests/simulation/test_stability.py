"""A leader has no transaction open below what was stable before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.common import TopicPartition
from tests.simulation.stability import Stability


def led(epoch: int, stable: int, *starts: int) -> Any:
    """A partition led in an epoch, with transactions open from these offsets."""
    states = SimpleNamespace(open=dict(enumerate(starts)))
    return SimpleNamespace(
        topic_partition=TopicPartition("t", 0),
        leader_epoch=epoch,
        last_stable_offset=stable,
        log=SimpleNamespace(producers=SimpleNamespace(states=states)),
    )


def test_what_was_stable_stays_so() -> None:
    stability = Stability()
    stability.look(led(1, 5, 5, 8))
    stability.look(led(2, 0))  # it does not know the high watermark yet
    stability.look(led(2, 5, 5))
    with pytest.raises(AssertionError, match="open from 4 in epoch 2, and was stable up to 5"):
        stability.look(led(2, 4, 4))


def test_a_former_leader_has_not_heard_of_a_marker() -> None:
    stability = Stability()
    stability.look(led(2, 9))
    stability.look(led(1, 5, 5))
    with pytest.raises(AssertionError, match="was stable up to 9"):
        stability.look(led(3, 5, 5))
