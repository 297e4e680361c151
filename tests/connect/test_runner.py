"""Tasks wait for their topics, with an end."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.connect.interface import ConnectError
from kafka08.connect.runner import WAIT_S, await_topics
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime


def cluster_of(runtime: FakeRuntime, late_after: int) -> FakeCluster:
    """The first answer fails, and a topic is created during a later wait."""
    cluster = FakeCluster()
    cluster.create("t", 1)
    cluster.down = {9090}

    def slept(seconds: float) -> None:
        cluster.down = set()
        if len(runtime.slept) == late_after:
            cluster.create("late", 1)

    runtime.on_sleep = slept
    return cluster


def waiting(cluster: FakeCluster, runtime: FakeRuntime, stopping: Any = None) -> None:
    client = ClusterClient([("b0", 9090)], runtime=runtime, channel=cluster.channel)
    await_topics(client, ["t", "late"], "topics", stopping or runtime.event(), runtime)


def test_the_wait_ends_when_all_exist() -> None:
    runtime = FakeRuntime()
    waiting(cluster_of(runtime, 3), runtime)
    assert runtime.slept == pytest.approx([0.2] * 3)


def test_the_error_names_option_value_and_cause() -> None:
    runtime = FakeRuntime()
    text = r"topics has value t,late, but some .*: No metadata for topic late: code 3"
    with pytest.raises(ConnectError, match=text):
        waiting(cluster_of(runtime, -1), runtime)
    assert sum(runtime.slept) == pytest.approx(WAIT_S)


def test_a_stop_ends_the_wait_without_an_error() -> None:
    runtime = FakeRuntime()
    cluster = cluster_of(runtime, -1)
    stopping = runtime.event()
    runtime.while_waiting = [lambda: None, stopping.set]
    waiting(cluster, runtime, stopping)
    asked = [request.topics for request in cluster.sent(schemas.MetadataRequest)]
    assert asked == [["t", "late"], ["late"]]
