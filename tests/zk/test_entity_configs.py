"""Settings of entities: read, changed one at a time, and announced."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import entity_configs
from zk.znodes import MalformedNodeError

SERVER_NODE = "/config/users/alice"


@pytest.fixture
def zk() -> Session:
    return Session(FakeZooKeeper()).start()


def notices(zk: Session) -> list[bytes]:
    changes = "/config/changes"
    return [zk.get(f"{changes}/{name}")[0] for name in sorted(zk.children_if_exists(changes))]


def test_an_entity_without_a_node_has_no_settings(zk: Session) -> None:
    assert entity_configs.fetch(zk, "users/alice") == {}  # type: ignore[arg-type]
    assert entity_configs.names(zk, "users") == []  # type: ignore[arg-type]


def test_settings_are_added_and_taken_away(zk: Session) -> None:
    rates = {"producer_byte_rate": "1000", "consumer_byte_rate": "1000"}
    entity_configs.alter(zk, "users/alice", lambda present: {**present, **rates})  # type: ignore[arg-type]
    assert zk.get(SERVER_NODE)[0] == (
        b'{"version":1,"config":{"producer_byte_rate":"1000","consumer_byte_rate":"1000"}}'
    )

    def without(present: dict[str, str]) -> Mapping[str, str]:
        del present["producer_byte_rate"]
        return present

    entity_configs.alter(zk, "users/alice", without)  # type: ignore[arg-type]
    assert entity_configs.fetch(zk, "users/alice") == {"consumer_byte_rate": "1000"}  # type: ignore[arg-type]
    assert notices(zk) == [b'{"version":2,"entity_path":"users/alice"}'] * 2
    assert entity_configs.names(zk, "users") == ["users/alice"]  # type: ignore[arg-type]


def test_a_writer_between_reading_and_writing_loses_nothing(zk: Session) -> None:
    others = [{"a": "1"}, {"a": "1", "b": "2"}]

    def change(present: dict[str, str]) -> Mapping[str, str]:
        if others:
            other = others.pop(0)
            entity_configs.alter(zk, "users/alice", lambda _: other)  # type: ignore[arg-type]
        return {**present, "mine": "x"}

    entity_configs.alter(zk, "users/alice", change)  # type: ignore[arg-type]
    assert entity_configs.fetch(zk, "users/alice") == {"a": "1", "b": "2", "mine": "x"}  # type: ignore[arg-type]


def test_a_node_that_makes_no_sense_is_not_overwritten(zk: Session) -> None:
    zk.create(SERVER_NODE, b"{", makepath=True)
    with pytest.raises(MalformedNodeError):
        entity_configs.alter(zk, "users/alice", lambda present: present)  # type: ignore[arg-type]
    assert zk.get(SERVER_NODE)[0] == b"{"
    assert notices(zk) == []
