"""Settings of later releases over the wire: what tools write, what is refused, rates of brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08 import admin
from kafka08.errors import LaterCode
from kafka08.protocol import admin_schemas as a
from tests.server.admin_support import AdminRig
from zk import entity_configs

RATE = "leader.replication.throttled.rate"
THROTTLED = "leader.replication.throttled.replicas"
TOPIC, BROKER = a.TOPIC_RESOURCE, a.BROKER_RESOURCE

# Settings that tools of later releases write for every topic.
OF_TOOLS = {
    "kafka-topics": {"compression.type": "producer", "preallocate": "false"},
    "Streams, changelog": {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"},
    "Streams, repartition": {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "segment.bytes": "52428800",
        "segment.index.bytes": "52428800",
    },
    "Connect": {"cleanup.policy": "compact", "min.insync.replicas": "1"},
    "kafka-reassign-partitions --throttle": {
        THROTTLED: "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
    },
    "all replicas throttled": {THROTTLED: "*"},
    "no replicas throttled": {THROTTLED: ""},
    "MirrorMaker 2": {
        "cleanup.policy": "delete",
        "compression.gzip.level": "-1",
        "compression.lz4.level": "9",
        "compression.type": "producer",
        "compression.zstd.level": "3",
        "delete.retention.ms": "86400000",
        "file.delete.delay.ms": "60000",
        "flush.messages": "9223372036854775807",
        "flush.ms": "9223372036854775807",
        "index.interval.bytes": "4096",
        "local.retention.bytes": "-2",
        "local.retention.ms": "-2",
        "max.message.bytes": "1048588",
        "message.downconversion.enable": "true",
        "message.format.version": "3.0-IV1",
        "min.cleanable.dirty.ratio": "0.5",
        "preallocate": "false",
        "remote.log.copy.disable": "false",
        "remote.log.delete.on.disable": "false",
        "remote.storage.enable": "false",
        "retention.bytes": "-1",
        "retention.ms": "604800000",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "segment.jitter.ms": "0",
        "segment.ms": "604800000",
    },
}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[AdminRig]:
    made = AdminRig(tmp_path, later=True)
    made.create("t", [1])
    yield made


def shown(rig: AdminRig, kind: int, name: str, *keys: str) -> dict[str, tuple[str, bool]]:
    request = a.DescribeConfigsRequest([a.DescribedResource(kind, name, list(keys))])
    [resource] = rig.call(request).resources
    assert resource.error == 0, resource
    return {entry.name: (entry.value, entry.is_default) for entry in resource.entries}


def replace(rig: AdminRig, topic: str, config: dict[str, str]) -> tuple[int, str | None]:
    altered = a.AlteredResource(TOPIC, topic, entries(config))
    code, text = rig.call(a.AlterConfigsRequest([altered], False)).resources[0][:2]
    return code, text


def change(
    rig: AdminRig, kind: int, name: str, *changes: tuple[str, int, str | None]
) -> tuple[int, str | None]:
    changed = a.ChangedResource(kind, name, [a.ConfigChange(*each) for each in changes])
    request = a.IncrementalAlterConfigsRequest([changed], False)
    code, text = rig.call(request).resources[0][:2]
    return code, text


def create(rig: AdminRig, topic: str, config: dict[str, str]) -> tuple[int, str | None]:
    new = a.NewTopic(topic, 1, 1, [], entries(config))
    code, text = rig.call(a.CreateTopicsRequest([new], 1000, False), 1).topics[0][1:3]
    return code, text


def entries(config: dict[str, str]) -> list[a.TopicConfigEntry]:
    return [a.TopicConfigEntry(*item) for item in config.items()]


@pytest.mark.parametrize("tool", OF_TOOLS)
def test_what_tools_write_is_accepted_and_shown(rig: AdminRig, tool: str) -> None:
    """A tool that compares what it wrote with what it reads must find no difference."""
    config = OF_TOOLS[tool]
    assert replace(rig, "t", config) == (0, None)
    assert create(rig, "u", config) == (0, None)
    set_ = [(key, a.SET_CONFIG, value) for key, value in config.items()]
    rig.create("v", [1])
    assert change(rig, TOPIC, "v", *set_) == (0, None)
    for topic in ("t", "u", "v"):
        found = shown(rig, TOPIC, topic)
        assert {key: found[key] for key in config} == {
            key: (value, False) for key, value in config.items()
        }


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("compression.type", "gzip", "Messages are stored with the codec of their producer."),
        ("compression.type", "uncompressed", "Messages are stored with the codec"),
        ("preallocate", "true", "Segments grow as messages are appended."),
        ("remote.storage.enable", "true", "There is no remote storage"),
        ("remote.log.copy.disable", "true", "There is no remote storage"),
        ("remote.log.delete.on.disable", "true", "There is no remote storage"),
        ("compression.gzip.level", "0", "not one of -1, 1, 2,"),
        ("compression.lz4.level", "18", "not in the range (1,17)"),
        ("compression.zstd.level", "23", "not in the range (-131072,22)"),
        ("local.retention.ms", "-3", "not in the range"),
        (THROTTLED, "0-1", "are * or a list of partition:broker, not 0-1."),
        (THROTTLED, "*,0:1", "are * or a list of partition:broker, not *,0:1."),
        ("foo", "1", 'Unknown configuration "foo"'),
    ],
)
def test_what_is_refused_is_named_with_the_reason(
    rig: AdminRig, key: str, value: str, reason: str
) -> None:
    answers = [
        replace(rig, "t", {key: value}),
        change(rig, TOPIC, "t", (key, a.SET_CONFIG, value)),
        create(rig, "u", {key: value}),
    ]
    for code, text in answers:
        assert code == LaterCode.INVALID_CONFIG
        assert text is not None and reason in text and (key in text or "throttled.replicas" in text)
    assert rig.config("t") == {}
    assert not admin.topic_exists(rig.zk, "u")


def test_rates_of_brokers_are_changed_and_shown(rig: AdminRig) -> None:
    me = str(rig.broker_id)
    assert shown(rig, BROKER, me, RATE) == {RATE: ("9223372036854775807", True)}
    assert shown(rig, BROKER, "") == {}
    assert change(rig, BROKER, "", (RATE, a.SET_CONFIG, "500")) == (0, None)
    assert shown(rig, BROKER, "") == {RATE: ("500", True)}
    assert shown(rig, BROKER, me, RATE) == {RATE: ("500", True)}
    assert change(rig, BROKER, me, (RATE, a.SET_CONFIG, "70")) == (0, None)
    assert shown(rig, BROKER, me, RATE) == {RATE: ("70", False)}
    assert entity_configs.fetch(rig.zk, f"brokers/{me}") == {RATE: "70"}
    assert change(rig, BROKER, me, (RATE, a.DELETE_CONFIG, None)) == (0, None)
    assert shown(rig, BROKER, me, RATE) == {RATE: ("500", True)}
    assert len(rig.zk.children("/config/changes")) == 3


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (RATE, "0", "is not in the range"),
        (RATE, "x", "is not an integer"),
        ("log.dirs", "/x", "is read from server.properties"),
        ("log.cleaner.threads", "2", "is read from server.properties"),
        ("listeners", "PLAINTEXT://:1", "is read from server.properties"),
        ("foo", "1", "is not a setting of this broker"),
    ],
)
def test_other_settings_of_brokers_are_refused_by_name(
    rig: AdminRig, key: str, value: str, reason: str
) -> None:
    for name in ("", str(rig.broker_id)):
        code, text = change(rig, BROKER, name, (key, a.SET_CONFIG, value))
        assert code == LaterCode.INVALID_CONFIG
        assert text is not None and text.startswith(key) and reason in text
        assert not rig.zk.exists(f"/config/brokers/{name or '<default>'}")


def test_a_broker_keeps_what_other_tools_wrote(rig: AdminRig) -> None:
    path = f"brokers/{rig.broker_id}"
    entity_configs.alter(rig.zk, path, lambda _: {"log.retention.ms": "5"})
    assert change(rig, BROKER, str(rig.broker_id), (RATE, a.SET_CONFIG, "70")) == (0, None)
    assert entity_configs.fetch(rig.zk, path) == {"log.retention.ms": "5", RATE: "70"}


def test_a_check_of_a_broker_changes_nothing(rig: AdminRig) -> None:
    altered = [a.AlteredResource(BROKER, "", entries({RATE: value})) for value in ("70", "x")]
    answers = rig.call(a.AlterConfigsRequest(altered, True)).resources
    assert [each.error for each in answers] == [0, LaterCode.INVALID_CONFIG]
    assert not rig.zk.exists("/config/brokers/<default>")


def test_words_are_appended_to_lists_and_taken_out(rig: AdminRig) -> None:
    for operation, value, expected in (
        (a.APPEND_CONFIG, "0:1", "0:1"),
        (a.APPEND_CONFIG, "0:2,0:1", "0:2,0:1"),
        (a.SUBTRACT_CONFIG, "0:2,5:5", "0:1"),
        (a.SUBTRACT_CONFIG, "0:1", ""),
    ):
        assert change(rig, TOPIC, "t", (THROTTLED, operation, value)) == (0, None)
        assert rig.config("t") == {THROTTLED: expected}


@pytest.mark.parametrize(
    "wrong", [("flush.ms", a.APPEND_CONFIG, "1"), (THROTTLED, 9, "1"), (THROTTLED, 0, None)]
)
def test_changes_that_make_no_sense(rig: AdminRig, wrong: tuple[str, int, str | None]) -> None:
    assert change(rig, TOPIC, "t", wrong)[0] == LaterCode.INVALID_REQUEST
    assert rig.config("t") == {}


def test_a_value_that_a_tool_left_in_zookeeper_is_shown_and_can_be_deleted(rig: AdminRig) -> None:
    kept = {"compression.type": "gzip", "flush.ms": "5"}
    entity_configs.alter(rig.zk, "topics/t", lambda _: kept)
    assert shown(rig, TOPIC, "t")["compression.type"] == ("gzip", False)
    assert change(rig, TOPIC, "t", ("compression.type", a.DELETE_CONFIG, None)) == (0, None)
    assert rig.config("t") == {"flush.ms": "5"}
