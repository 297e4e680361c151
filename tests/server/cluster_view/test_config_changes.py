"""Notices of changed settings: each passed on once, in order, although some are not readable."""

from __future__ import annotations

import pytest

from kafka08.server.cluster_view.config_changes import ConfigChanges
from kafka08.server.cluster_view.watched_children import NOTICE_EXPIRY_MS
from tests.server.support import Rig
from zk import entities
from zk.errors import ZkConnectionError
from zk.znodes import TOPIC_CONFIG_CHANGES


class FollowedNotices:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        rig.clock.now = 0  # when all the fake's nodes are made
        self.topics: list[str] = []
        self.users: list[str] = []
        self.fails = 0
        self.configs = ConfigChanges(
            rig.runtime,
            rig.zk,  # type: ignore[arg-type]
            [("topics", self._topic_changed), ("users", self.users.append)],
        )

    def _topic_changed(self, entity: str) -> None:
        if self.fails:
            self.fails -= 1
            raise ZkConnectionError(path=entity)
        self.topics.append(entity)

    def notify(self, entity: str) -> str:
        return self.notify_raw(entities.encode_config_change(entity))

    def notify_raw(self, data: bytes) -> str:
        return self.rig.zk.create(entities.CONFIG_CHANGE, data, sequence=True)


@pytest.fixture
def followed(rig: Rig) -> FollowedNotices:
    return FollowedNotices(rig)


def test_notices_before_the_start_and_after_it_go_to_the_entitys_users(
    followed: FollowedNotices,
) -> None:
    followed.notify("topics/t")
    followed.notify("users/alice/clients/c")
    followed.configs.start()
    assert (followed.topics, followed.users) == (["topics/t"], ["users/alice/clients/c"])
    followed.notify("clients/c")
    followed.notify("users/alice")
    followed.configs.step()
    assert (followed.topics, followed.users) == (
        ["topics/t"],
        ["users/alice/clients/c", "users/alice"],
    )


def test_notices_that_make_no_sense_stop_nothing(followed: FollowedNotices) -> None:
    zk = followed.rig.zk
    zk.create(entities.config_change_path("not_ours"), b"")
    zk.create(entities.config_change_path("config_change_x"), b"")
    for data in (b"", b"\xff\xff\xff", b'{"version":2,"entity_path":"users/.."}', b"{}"):
        followed.notify_raw(data)
    followed.notify("topics/t")
    followed.configs.start()
    assert followed.topics == ["topics/t"]


def test_a_notice_that_failed_is_passed_on_again_before_later_ones(
    followed: FollowedNotices,
) -> None:
    followed.configs.start()
    followed.fails = 1
    followed.notify("topics/t")
    followed.notify("topics/u")
    followed.configs.step()
    assert followed.topics == []
    followed.configs.step()
    assert followed.topics == ["topics/t", "topics/u"]


def test_old_notices_are_removed(followed: FollowedNotices) -> None:
    first = followed.notify("topics/t")
    followed.configs.start()
    clock = followed.rig.clock
    clock.now = NOTICE_EXPIRY_MS / 1000
    second = followed.notify("topics/t")
    followed.configs.step()
    assert first in followed.rig.zookeeper.nodes
    clock.now += 0.001
    followed.configs.session_expired()
    followed.configs.step()
    assert not {first, second} & set(followed.rig.zookeeper.nodes)
    assert followed.rig.zk.exists(TOPIC_CONFIG_CHANGES) is not None


def test_a_new_session_is_looked_through(followed: FollowedNotices) -> None:
    followed.configs.start()
    followed.rig.zookeeper.forget_watches()
    followed.notify("topics/t")
    followed.configs.session_expired()
    followed.configs.step()
    followed.notify("topics/u")  # and watched again
    followed.configs.step()
    assert followed.topics == ["topics/t", "topics/u"]


def test_stopping(followed: FollowedNotices) -> None:
    followed.configs.start()
    followed.configs.stop()
    followed.configs.step()  # the stop woke it, not a change
