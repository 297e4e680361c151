from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka08.console.migration.old_groups import OldGroup, read
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.znodes import ConsumerRegistration

MEMBER = "g_web1-1400000000000-1a2b3c4d"


@pytest.fixture
def server() -> FakeZooKeeper:
    return FakeZooKeeper()


def members(server: FakeZooKeeper) -> Any:
    zk: Any = Session(server)
    return read(zk)


def register(server: FakeZooKeeper, group: str, member: str, *topics: str) -> None:
    node = ConsumerRegistration(dict.fromkeys(topics, 1))
    server.put(znodes.consumer_id_path(group, member), znodes.encode_consumer(node))


def test_there_is_none(server: FakeZooKeeper) -> None:
    assert members(server) == {}
    server.put(znodes.consumer_offset_path("g", "t", 0), b"3")
    assert members(server) == {}


def test_members_their_hosts_and_topics(server: FakeZooKeeper) -> None:
    register(server, "g", MEMBER, "t")
    register(server, "g", "g_chosen", "u", "t")
    register(server, "a", "a_x", "v")
    found = members(server)
    assert list(found) == ["a", "g"]
    assert found["g"] == OldGroup(("g_chosen", MEMBER), ("web1",), ("t", "u"))


def test_a_registration_that_cannot_be_read_is_a_member(
    server: FakeZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    server.put(znodes.consumer_id_path("g", MEMBER), b"{")
    with caplog.at_level(logging.WARNING):
        assert members(server) == {"g": OldGroup((MEMBER,), ("web1",), ())}
    assert MEMBER in caplog.text
