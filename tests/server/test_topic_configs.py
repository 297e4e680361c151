"""Settings of topics: notifications applied once each, in order, although some are not readable."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.server.topic_configs import NOTIFICATION_EXPIRY_MS, TopicConfigManager
from tests.server.support import Rig
from zk import znodes
from zk.errors import SessionExpiredError, ZkConnectionError


class Followed:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        rig.clock.now = 0  # when all the fake's nodes are made
        for topic in ("t", "u"):
            rig.lead(topic)
        self.configs = TopicConfigManager(rig.config, rig.runtime, rig.zk, rig.logs.logs)  # type: ignore[arg-type]

    def store(self, topic: str, data: bytes) -> None:
        self.rig.zk.create_or_set(znodes.topic_config_path(topic), data)

    def notify(self, topic: str) -> str:
        return self.rig.zk.create(
            znodes.config_change_path_prefix(), znodes.encode_config_change(topic), sequence=True
        )

    def change(self, topic: str, **settings: str) -> str:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        self.store(topic, znodes.encode_topic_config(config))
        return self.notify(topic)

    def retention(self, topic: str = "t") -> int:
        log = self.rig.logs.get_log(TopicPartition(topic, 0))
        assert log is not None
        return log.config.retention_ms


@pytest.fixture
def followed(rig: Rig) -> Followed:
    return Followed(rig)


def test_changes_made_before_the_start_are_applied(followed: Followed) -> None:
    followed.change("t", retention_ms="5")
    followed.configs.start()
    assert followed.retention() == 5
    assert followed.retention("u") == 604_800_000


def test_changes_are_applied_as_they_come(followed: Followed) -> None:
    followed.configs.start()
    for number in (5, 6):
        followed.change("t", retention_ms=str(number))
        followed.configs.changes.step()
        assert followed.retention() == number
    followed.change("t")
    followed.configs.changes.step()
    assert followed.retention() == 604_800_000


def test_each_notification_is_applied_once(followed: Followed) -> None:
    followed.configs.start()
    followed.change("t", retention_ms="5")
    followed.configs.changes.step()
    followed.store("t", znodes.encode_topic_config({"retention.ms": "6"}))  # untold
    followed.change("u", retention_ms="7")
    followed.configs.changes.step()
    assert (followed.retention("t"), followed.retention("u")) == (5, 7)


def test_every_partition_of_the_topic_changes(followed: Followed) -> None:
    followed.rig.lead("t", 1)
    followed.change("t", retention_ms="5")
    followed.configs.start()
    logs = followed.rig.logs.logs
    assert [log.config.retention_ms for key, log in logs.items() if key.topic == "t"] == [5, 5]


@pytest.mark.parametrize(
    "bad",
    [b"{", b"[]", b'{"version":2,"config":{}}', b'{"version":1,"config":{"retention.ms":"x"}}'],
)
def test_settings_that_make_no_sense_stop_nothing(followed: Followed, bad: bytes) -> None:
    followed.change("t", retention_ms="5")
    followed.configs.start()
    followed.store("t", bad)
    followed.notify("t")
    followed.change("u", retention_ms="7")
    followed.configs.changes.step()
    assert followed.retention("u") == 7
    assert followed.retention("t") == 604_800_000
    assert followed.configs.log_config("t") == followed.configs.log_config("nobody")


def test_notifications_that_make_no_sense_stop_nothing(followed: Followed) -> None:
    zk = followed.rig.zk
    zk.create(znodes.config_change_path("not_ours"), b"")
    zk.create(znodes.config_change_path("config_change_x"), b"")
    followed.notify("nobody")
    zk.create(znodes.config_change_path_prefix(), b"", sequence=True)
    zk.create(znodes.config_change_path_prefix(), b"\xff\xff\xff", sequence=True)
    followed.change("t", retention_ms="5")
    followed.configs.start()
    assert followed.retention() == 5


def test_old_notifications_are_removed(followed: Followed) -> None:
    first = followed.change("t", retention_ms="5")
    followed.configs.start()
    zk = followed.rig.zk
    clock = followed.rig.clock
    clock.now = NOTIFICATION_EXPIRY_MS / 1000
    second = followed.change("t", retention_ms="6")
    followed.configs.changes.step()
    assert first in followed.rig.zookeeper.nodes
    clock.now += 0.001
    followed.configs.session_expired()
    followed.configs.changes.step()
    assert not {first, second} & set(followed.rig.zookeeper.nodes)
    assert zk.exists(znodes.TOPIC_CONFIG_CHANGES) is not None


def test_a_new_session_is_looked_through(followed: Followed) -> None:
    followed.configs.start()
    followed.rig.zookeeper._child_watches.clear()
    followed.change("t", retention_ms="5")
    followed.configs.session_expired()
    followed.configs.changes.step()
    assert followed.retention() == 5
    followed.change("t", retention_ms="6")  # and watched again
    followed.configs.changes.step()
    assert followed.retention() == 6


def test_what_an_outage_interrupted_is_taken_up_again(followed: Followed) -> None:
    followed.configs.start()
    followed.change("t", retention_ms="5")
    followed.rig.zk.down = True
    followed.configs.changes.step()
    followed.rig.zk.down = False
    # though nobody says that the connection is back: it was never lost
    followed.configs.changes.step()
    assert followed.retention() == 5
    followed.change("t", retention_ms="6")
    followed.configs.changes.step()
    assert followed.retention() == 6


def test_a_session_that_ends_meanwhile_is_no_obstacle(followed: Followed) -> None:
    followed.change("t", retention_ms="5")
    path = znodes.topic_config_path("t")
    followed.rig.zk.fails[path] = SessionExpiredError(path=path)
    assert followed.configs.log_config("t").retention_ms == 5


def test_settings_that_cannot_be_read_are_not_taken_for_none(followed: Followed) -> None:
    followed.rig.zk.down = True
    with pytest.raises(ZkConnectionError):
        followed.configs.log_config("t")


def test_stopping(followed: Followed) -> None:
    followed.configs.start()
    followed.configs.stop()
    followed.configs.changes.step()  # the stop woke it, not a change
