"""Administrators at their quotas: their requests are carried out, and read from after a pause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.network.peer import Peer, current_peer
from kafka08.protocol import admin_schemas as a
from kafka08.security.limits import Entity
from kafka08.server.quotas.throttle import MOST_SECONDS
from tests.server.admin_support import AdminRig

ALICE = Entity(user="alice")


class Administrator:
    """Alice, who is read from again once her pauses are over."""

    def __init__(self, directory: Path) -> None:
        self.rig = AdminRig(directory, later=True)
        self.peer = Peer("127.0.0.1:5000", "User:alice")

    def pause(self) -> float:
        """The seconds of the pause that the last request caused."""
        seconds, self.peer.mute_seconds = self.peer.mute_seconds, 0.0
        return seconds

    def create(self, topic: str, partitions: int, *, check: bool = False) -> int:
        """The error."""
        new = a.NewTopic(topic, partitions, 1, [], [])
        answer = self.rig.call(a.CreateTopicsRequest([new], 1000, check))
        return int(answer.topics[0].error)


@pytest.fixture
def admin(tmp_path: Path) -> Iterator[Administrator]:
    made = Administrator(tmp_path)
    token = current_peer.set(made.peer)
    yield made
    current_peer.reset(token)


def test_without_a_quota_nothing_is_counted(admin: Administrator) -> None:
    assert admin.create("t", 50) == 0
    assert admin.pause() == 0


def test_partitions_are_counted_as_they_are_made_and_deleted(admin: Administrator) -> None:
    """A rate of one a second, of which ten were saved."""
    admin.rig.mutations.limits.set(ALICE, 1)
    assert admin.create("t", 10) == 0
    assert admin.pause() == 0
    more = [a.MorePartitions("t", 12, None)]
    answer = admin.rig.call(a.CreatePartitionsRequest(more, 0, False))
    assert answer.throttle_time_ms == pytest.approx(2000, rel=0.1)
    assert admin.pause() == pytest.approx(2, rel=0.1)
    admin.rig.runtime.clock.advance(2)
    assert admin.rig.call(a.DeleteTopicsRequest(["t"], 0)).topics[0].error in (0, 7)
    assert admin.pause() == MOST_SECONDS


def test_what_was_not_done_is_not_counted(admin: Administrator) -> None:
    admin.rig.mutations.limits.set(ALICE, 0.1)
    assert admin.create("t", 50, check=True) == 0
    assert admin.create("t", 2**31 - 1) != 0
    more = [a.MorePartitions("nobody", 50, None)]
    assert admin.rig.call(a.CreatePartitionsRequest(more, 0, False)).topics[0].error
    assert admin.rig.call(a.DeleteTopicsRequest(["nobody"], 0)).topics[0].error
    assert admin.pause() == 0


def test_others_are_not_held(admin: Administrator) -> None:
    admin.rig.mutations.limits.set(Entity(user="bob"), 0.1)
    assert admin.create("t", 50) == 0
    assert admin.pause() == 0
