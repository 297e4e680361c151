"""Settings of topics: those of ZooKeeper are applied to the topics' logs."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.server.cluster_view.topic_configs import TopicConfigs
from tests.server.support import Rig
from zk import znodes
from zk.errors import SessionExpiredError, ZkConnectionError


class FollowedConfigs:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        for topic in ("t", "u"):
            rig.lead(topic)
        self.configs = TopicConfigs(rig.config, rig.zk, rig.logs.logs)  # type: ignore[arg-type]

    def store(self, topic: str, data: bytes) -> None:
        self.rig.zk.create_or_set(znodes.topic_config_path(topic), data)

    def change(self, topic: str, **settings: str) -> None:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.store(topic, znodes.encode_topic_config(config))
        self.configs.changed(f"topics/{topic}")

    def retention(self, topic: str = "t") -> int:
        log = self.rig.logs.get_log(TopicPartition(topic, 0))
        assert log is not None
        return log.config.retention_ms


@pytest.fixture
def followed(rig: Rig) -> FollowedConfigs:
    return FollowedConfigs(rig)


def test_changes_are_applied_to_the_topics_logs_alone(followed: FollowedConfigs) -> None:
    followed.change("t", retention_ms="5")
    assert (followed.retention("t"), followed.retention("u")) == (5, 604_800_000)
    followed.change("t")
    assert followed.retention() == 604_800_000
    followed.change("nobody", retention_ms="5")


def test_every_partition_of_the_topic_changes(followed: FollowedConfigs) -> None:
    followed.rig.lead("t", 1)
    followed.change("t", retention_ms="5")
    logs = followed.rig.logs.logs
    assert [log.config.retention_ms for key, log in logs.items() if key.topic == "t"] == [5, 5]


@pytest.mark.parametrize(
    "bad",
    [b"{", b"[]", b'{"version":2,"config":{}}', b'{"version":1,"config":{"retention.ms":"x"}}'],
)
def test_settings_that_make_no_sense_count_as_none(followed: FollowedConfigs, bad: bytes) -> None:
    followed.change("t", retention_ms="5")
    followed.store("t", bad)
    followed.configs.changed("topics/t")
    assert followed.retention("t") == 604_800_000
    assert followed.configs.log_config("t") == followed.configs.log_config("nobody")


def test_an_outage_changes_nothing_and_is_told(followed: FollowedConfigs) -> None:
    followed.change("t", retention_ms="5")
    followed.rig.zk.down = True
    with pytest.raises(ZkConnectionError):
        followed.configs.changed("topics/t")
    assert followed.retention() == 5


def test_a_session_that_ends_meanwhile_is_no_obstacle(followed: FollowedConfigs) -> None:
    followed.change("t", retention_ms="5")
    path = znodes.topic_config_path("t")
    followed.rig.zk.fails[path] = SessionExpiredError(path=path)
    assert followed.configs.log_config("t").retention_ms == 5


def test_settings_that_cannot_be_read_are_not_taken_for_none(followed: FollowedConfigs) -> None:
    followed.rig.zk.down = True
    with pytest.raises(ZkConnectionError):
        followed.configs.log_config("t")


@pytest.mark.parametrize("stored", ["gzip", "nonsense"])
def test_a_setting_without_effect_costs_the_others_nothing(
    followed: FollowedConfigs, stored: str
) -> None:
    followed.change("t", retention_ms="5", compression_type=stored, preallocate="true")
    assert followed.retention() == 5
