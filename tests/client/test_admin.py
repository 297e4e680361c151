"""Administration over the wire: which broker is asked, and what its answers become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.client.admin import AdminClient, AdminNotServedError, RemoteError
from kafka08.client.cluster import NoBrokerError
from kafka08.common import Broker
from kafka08.errors import (
    LaterCode,
    RequestTimedOutError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

ENDPOINTS = [("b0", 9090), ("b1", 9091)]
Script = Callable[[int, Any], Any]


def serving(answers: dict[type, Any], *, originals: tuple[int, ...] = ()) -> Script:
    """Brokers with these answers; the ``originals`` (ports) close connections instead."""

    def script(port: int, request: Any) -> Any:
        if isinstance(request, schemas.MetadataRequest):
            return None
        if port in originals:
            raise ConnectionResetError("as 0.8.2.2 does")
        if isinstance(request, a.DescribeConfigsRequest) and not request.resources:
            return a.DescribeConfigsResponse(0, [])
        return answers[type(request)]

    return script


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster([Broker(0, "b0", 9090), Broker(1, "b1", 9091)])
    cluster.create("t", 1)
    return cluster


def client(cluster: FakeCluster, runtime: FakeRuntime | None = None) -> AdminClient:
    runtime = runtime or FakeRuntime()
    return AdminClient(ENDPOINTS, timeout_ms=1000, runtime=runtime, channel=cluster.channel)


def test_the_first_broker_that_serves_is_kept(cluster: FakeCluster) -> None:
    created = a.CreateTopicsResponse([a.CreatedTopic("new", 0, None)])
    cluster.script = serving({a.CreateTopicsRequest: created}, originals=(9090,))
    with client(cluster) as admin:
        admin.create_topic("new", assignment={0: (1, 0)}, config={"retention.ms": "5"})
        admin.create_topic("new", 3, 2)
    asked = [(port, r) for port, r in cluster.requests if isinstance(r, a.CreateTopicsRequest)]
    assert [port for port, _ in asked] == [9091, 9091]
    assert asked[0][1].topics == [
        a.NewTopic(
            "new",
            -1,
            -1,
            [a.ReplicaAssignment(0, [1, 0])],
            [a.TopicConfigEntry("retention.ms", "5")],
        )
    ]
    assert asked[1][1].topics == [a.NewTopic("new", 3, 2, [], [])]
    assert len(cluster.sent(schemas.MetadataRequest)) == 1


def test_nothing_is_changed_where_no_broker_serves(cluster: FakeCluster) -> None:
    cluster.script = serving({}, originals=(9090, 9091))
    text = "b0:9090, b1:9091: closed the connection"
    with client(cluster) as admin, pytest.raises(AdminNotServedError, match=text):
        admin.delete_topics(["t"])
    assert cluster.sent(a.DeleteTopicsRequest) == []
    cluster.down = {9090, 9091}
    with client(cluster) as admin, pytest.raises(NoBrokerError):
        admin.delete_topics(["t"])


@pytest.mark.parametrize(
    ("code", "message", "error", "text"),
    [
        (36, "ignored", TopicExistsError, "Topic 't' already exists"),
        (LaterCode.INVALID_REQUEST, "told so", RemoteError, "told so"),
        (3, None, RemoteError, ": topic t"),
    ],
)
def test_what_a_refusal_says(
    cluster: FakeCluster, code: int, message: str | None, error: type[Exception], text: str
) -> None:
    created = a.CreateTopicsResponse([a.CreatedTopic("t", code, message)])
    cluster.script = serving({a.CreateTopicsRequest: created})
    with client(cluster) as admin, pytest.raises(error, match=text):
        admin.create_topic("t")


def test_a_refused_deletion_is_explained(cluster: FakeCluster) -> None:
    codes = [a.TopicErrorCode("t", LaterCode.INVALID_REQUEST)]
    cluster.script = serving({a.DeleteTopicsRequest: a.DeleteTopicsResponse(codes)})
    with (
        client(cluster) as admin,
        pytest.raises(RemoteError, match=r"delete\.topic\.enable") as found,
    ):
        admin.delete_topics(["t"])
    assert found.value.wire_code == LaterCode.INVALID_REQUEST


def test_settings_by_topic_and_name(cluster: FakeCluster) -> None:
    entry = a.ConfigEntry("retention.ms", "5", False, is_default=False, source=1)
    found = a.ResourceConfig(0, None, a.TOPIC_RESOURCE, "t", [entry])
    cluster.script = serving({a.DescribeConfigsRequest: a.DescribeConfigsResponse(0, [found])})
    with client(cluster) as admin:
        assert admin.describe_configs(["t"]) == {"t": {"retention.ms": entry}}
        found = found._replace(error=3, message="no topic t")
        cluster.script = serving({a.DescribeConfigsRequest: a.DescribeConfigsResponse(0, [found])})
        with pytest.raises(RemoteError, match="no topic t"):
            admin.describe_configs(["t"])


def test_a_broker_is_asked_for_its_own_settings(cluster: FakeCluster) -> None:
    entry = a.ConfigEntry("num.partitions", "5", True)
    found = a.ResourceConfig(0, None, a.BROKER_RESOURCE, "1", [entry])
    error = a.ResourceError(0, None, a.BROKER_RESOURCE, "1")
    cluster.script = serving(
        {
            a.DescribeConfigsRequestV1: a.DescribeConfigsResponse(0, [found]),
            a.IncrementalAlterConfigsRequest: a.IncrementalAlterConfigsResponse(0, [error]),
        },
        originals=(9090,),
    )
    with client(cluster) as admin:
        assert admin.settings(a.BROKER_RESOURCE, "1") == [entry]
        admin.change_settings(a.BROKER_RESOURCE, "1", {"x": None}, validate_only=True)
        with pytest.raises(AdminNotServedError, match="b0:9090 closed the connection"):
            admin.settings(a.BROKER_RESOURCE, "0")
        with pytest.raises(NoBrokerError, match="id 7"):
            admin.settings(a.BROKER_RESOURCE, "7")
    asked_for = len(cluster.sent(schemas.MetadataRequest))
    known = {1: ("b1", 9091)}
    with AdminClient([], runtime=FakeRuntime(), channel=cluster.channel, brokers=known) as admin:
        assert admin.settings(a.BROKER_RESOURCE, "1") == [entry]
    assert len(cluster.sent(schemas.MetadataRequest)) == asked_for
    [asked] = cluster.sent(a.IncrementalAlterConfigsRequest)
    assert asked.validate_only
    assert asked.resources[0].configs == [a.ConfigChange("x", a.DELETE_CONFIG, None)]


def test_a_topic_made_by_asking_for_it(cluster: FakeCluster) -> None:
    """Brokers of 0.8.2.2 create topics at a Metadata request; their leaders come later."""
    runtime = FakeRuntime()
    admin = client(cluster, runtime)
    cluster.topic_errors["new"] = 5
    runtime.on_sleep = lambda seconds: (cluster.create("new", 1), cluster.topic_errors.clear())
    admin.create_by_metadata("new")
    assert len(runtime.slept) == 1
    runtime.on_sleep = None
    cluster.topic_errors["never"] = 5
    with pytest.raises(RequestTimedOutError, match="Topic never was created, but has no leaders"):
        admin.create_by_metadata("never")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.create_by_metadata("refused")
    admin.close()
