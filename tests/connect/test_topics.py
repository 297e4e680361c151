"""Tasks wait for their topics, with an end."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.connect.interface import ConnectError
from kafka08.connect.topics import WAIT_S, await_topics
from kafka08.errors import UnknownTopicOrPartitionError
from tests.fakes.runtime import FakeRuntime


class Metadata:
    """The part of ClusterClient that asks for topics; ``missing`` ones appear after a while."""

    def __init__(self, missing: int) -> None:
        self.missing = missing
        self.asked: list[list[str]] = []

    def refresh(self, topics: list[str]) -> None:
        self.asked.append(topics)
        if len(self.asked) == 1:
            raise ConnectionRefusedError("not yet")

    def partitions(self, topic: str) -> None:
        if topic == "late" and len(self.asked) <= self.missing:
            raise UnknownTopicOrPartitionError(topic)


def waiting(cluster: Any, runtime: FakeRuntime, stopping: Any = None) -> None:
    await_topics(cluster, ["t", "late"], "topics", stopping or runtime.event(), runtime)


def test_the_wait_ends_when_all_exist() -> None:
    cluster, runtime = Metadata(3), FakeRuntime()
    waiting(cluster, runtime)
    assert cluster.asked == [["t", "late"]] * 4
    assert runtime.slept == pytest.approx([0.2] * 3)


def test_the_error_names_option_value_and_cause() -> None:
    runtime = FakeRuntime()
    with pytest.raises(ConnectError, match=r"topics has value t,late, but some .*: late"):
        waiting(Metadata(10**9), runtime)
    assert sum(runtime.slept) == pytest.approx(WAIT_S)


def test_a_stop_ends_the_wait_without_an_error() -> None:
    cluster, runtime = Metadata(10**9), FakeRuntime()
    stopping = runtime.event()
    runtime.while_waiting = [lambda: None, stopping.set]
    waiting(cluster, runtime, stopping)
    assert len(cluster.asked) == 2
