"""kafka08.client.routing: requests split by leader, and the answers put together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafka08.client.routing import Answers, ask_leaders, by_leader
from kafka08.common import Broker, TopicPartition
from kafka08.errors import LeaderNotAvailableError

ONE, TWO = Broker(1, "one", 9092), Broker(2, "two", 9092)
T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))
LEADERS = {T0: ONE, T1: TWO, T2: ONE}


def test_partitions_without_a_leader_are_left_out() -> None:
    times = {T0: 1, T1: 2, T2: 3, T3: 4}
    assert by_leader(times, LEADERS.get) == {ONE: {T0: 1, T2: 3}, TWO: {T1: 2}}


def test_a_leader_that_fails_fails_its_partitions_alone() -> None:
    refused = ConnectionRefusedError("gone")
    not_led = LeaderNotAvailableError("not me")

    def ask(leader: Broker, times: Mapping[TopicPartition, int]) -> Answers:
        if leader == ONE:
            raise refused
        return Answers({T1: times[T1] + 10}, {T3: not_led})

    answers = ask_leaders({ONE: {T0: 0, T2: 2}, TWO: {T1: 1, T3: 3}}, ask)
    assert answers.values == {T1: 11}
    assert answers.errors == {T0: refused, T2: refused, T3: not_led}
    with pytest.raises(ConnectionRefusedError):
        answers.checked()


def test_answers_without_errors() -> None:
    assert ask_leaders({ONE: {T0: 5}}, lambda leader, led: Answers(dict(led), {})).checked() == {
        T0: 5
    }
