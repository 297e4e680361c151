"""Partitions that are let go: what the caller may wait for before, and what is committed."""

from __future__ import annotations

from kafka08.consumer.connector import ConsumerConnector
from tests.consumer.group_world import ConnectorMember, GroupWorld


class Working(ConnectorMember):
    """Takes messages, and is done with them only when it is told that partitions go."""

    def __init__(self, world: GroupWorld, name: str = "c") -> None:
        super().__init__(world, name)
        self.under_way: list[tuple[object, int]] = []
        self.settled = 0
        self.connector = ConsumerConnector(
            self.connector.config,
            runtime=world.runtime,
            zk=self.zk,
            channel=world.cluster.channel,
            before_release=self.settle,
        )

    def settle(self) -> None:
        self.settled += 1
        # Nothing more can be taken by now.
        assert all(stream.take() is None for stream in self.streams)
        for position, following in self.under_way:
            position.processed_offset = following  # type: ignore[attr-defined]
        self.under_way.clear()

    def take(self) -> None:
        [stream] = self.streams
        assert stream.has_next()
        taken = stream.take()
        assert taken is not None
        self.under_way.append((taken[0], taken[1].offset + 1))


def world() -> GroupWorld:
    made = GroupWorld()
    made.topic("t", 1)
    made.cluster.append("t", 0, b"a", b"b", b"c")
    return made


def test_before_the_last_commit() -> None:
    around = world()
    member = Working(around)
    member.join()
    member.fetch()
    member.take()
    member.take()
    member.connector.close()
    assert around.offset("t", 0) == "2"


def test_before_partitions_are_given_to_another() -> None:
    around = world()
    member = Working(around)
    member.join()
    member.fetch()
    member.take()
    [stream] = member.streams
    assert stream.has_next()
    before = member.settled
    around.topic("t", 2)
    member.handle_events()
    assert member.settled > before
    assert around.offset("t", 0) == "1"
    # Kept through the rebalance: it goes on behind what was taken.
    member.fetch()
    member.take()
    member.connector.close()
    assert around.offset("t", 0) == "2"


def test_an_ended_session_commits_nothing() -> None:
    around = world()
    member = Working(around)
    member.join()
    member.fetch()
    member.take()
    before = member.settled
    member.zk.expire()
    member.handle_events()
    assert member.settled > before
    assert around.offset("t", 0) is None
