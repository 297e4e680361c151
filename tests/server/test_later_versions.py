"""A broker with api.versions.enable: metadata and administration in later versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka08.common import OFFSETS_TOPIC
from kafka08.errors import LaterCode
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.later_schemas import ApiVersionsRequest
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.schemas import NOT_ASKED, MetadataRequest
from kafka08.protocol.types import Struct
from tests.protocol.values import values
from tests.server.admin_support import AdminRig

JAVA = ApiVersionsRequest("apache-kafka-java", "4.3.0")


@pytest.fixture
def rig(tmp_path: Path) -> AdminRig:
    return AdminRig(tmp_path, later=True)


# --- Metadata


def test_null_is_all_and_empty_is_none(rig: AdminRig) -> None:
    rig.create("t", [1])
    assert [each.topic for each in rig.call(MetadataRequest([]), 0).topics] == ["t"]
    for version in range(1, 9):
        assert [each.topic for each in rig.call(MetadataRequest(None), version).topics] == ["t"]
        assert rig.call(MetadataRequest([]), version).topics == []


def test_version_8(rig: AdminRig) -> None:
    rig.create("t", [2, 9])
    rig.create(OFFSETS_TOPIC, [9])
    answer = rig.call(MetadataRequest(None), 8)
    assert answer.throttle_time_ms == 0
    assert answer.brokers == [(1, "host1", 9091, None), (2, "host2", 9092, None)]
    assert answer.controller_id == 1
    assert len(answer.cluster_id) == 22
    assert rig.call(MetadataRequest([]), 2).cluster_id == answer.cluster_id
    assert answer.topics == [
        (0, "t", False, [(0, 0, 2, 0, [2, 9], [2, 9], [9])], NOT_ASKED),
        (0, OFFSETS_TOPIC, True, [(5, 0, -1, 0, [9], [9], [9])], NOT_ASKED),
    ]
    assert answer.authorized_operations == NOT_ASKED


def test_topics_are_created_only_if_the_request_allows_it(rig: AdminRig) -> None:
    (topic,) = rig.call(MetadataRequest(["t"], allow_auto_topic_creation=False), 4).topics
    assert topic.error == 3
    assert rig.assignment("t") is None
    (topic,) = rig.call(MetadataRequest(["t"]), 4).topics
    assert topic.error == 5
    assert rig.assignment("t") is not None


# --- administration


@pytest.mark.scenario("modern-49")
@pytest.mark.parametrize("version", range(5))
def test_topics_in_every_version(rig: AdminRig, version: int) -> None:
    new = a.NewTopic("t", -1, -1, [], [])
    answer = rig.call(a.CreateTopicsRequest([new], 1000), version)
    assert [topic[:2] for topic in answer.topics] == [("t", 0)]
    assert rig.call(a.CreateTopicsRequest([new], 0), version).topics[0].error == 36
    deleted = rig.call(a.DeleteTopicsRequest(["t"], 1000), min(version, 3))
    assert deleted.topics == [("t", 0)]


@pytest.mark.scenario("modern-49")
def test_settings_and_where_they_come_from(rig: AdminRig) -> None:
    rig.create("t", [1], flush_ms="5")
    asked = a.DescribedResource(2, "t", None)
    (answer,) = rig.call(a.DescribeConfigsRequest([asked]), 3).resources
    sources = {entry.name: (entry.value, entry.source) for entry in answer.entries}
    assert sources["flush.ms"] == ("5", a.TOPIC_CONFIG)
    assert sources["cleanup.policy"] == ("delete", a.DEFAULT_CONFIG)


def change(rig: AdminRig, *changes: tuple[str, int, str | None], check: bool = False) -> Any:
    resource = a.ChangedResource(2, "t", [a.ConfigChange(*each) for each in changes])
    request = a.IncrementalAlterConfigsRequest([resource], check)
    return rig.call(request, 0).resources[0][:2]


@pytest.mark.scenario("modern-49")
def test_settings_change_one_by_one(rig: AdminRig) -> None:
    rig.create("t", [1], flush_ms="5", retention_ms="6")
    assert change(rig, ("flush.ms", 0, "7"), ("retention.ms", 1, None)) == (0, None)
    assert rig.config("t") == {"flush.ms": "7"}
    assert change(rig, ("flush.ms", 1, None), check=True) == (0, None)
    assert change(rig, ("flush.ms", 0, "x"))[0] == LaterCode.INVALID_CONFIG
    assert change(rig, ("cleanup.policy", 2, "compact"))[0] == LaterCode.INVALID_REQUEST
    assert change(rig, ("flush.ms", 0, None))[0] == LaterCode.INVALID_REQUEST
    assert rig.config("t") == {"flush.ms": "7"}


def test_settings_of_an_unknown_topic(rig: AdminRig) -> None:
    assert change(rig, ("flush.ms", 0, "7"))[0] == 3


# --- anything


@pytest.mark.scenario("modern-58")
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_request_that_can_be_read_is_answered(rig: AdminRig, data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(sorted(rig.served.values(), key=lambda api: api.key)))
    version = data.draw(st.sampled_from(api.versions))
    request = data.draw(values(api.request, version))
    if "timeout_ms" in request._fields:
        request = request._replace(timeout_ms=0)
    frame = bytearray(b"".join(encode_request(request, 5, "tests", version))[4:])
    reply = rig.dispatcher.handle(memoryview(frame), "127.0.0.1")
    assert reply is not None
    correlation_id, _ = decode_response(Struct(api.response, version), b"".join(reply)[4:])
    assert correlation_id == 5
