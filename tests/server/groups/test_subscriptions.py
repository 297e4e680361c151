"""The topics in the metadata of consumers."""

from __future__ import annotations

import pytest

from kafka08.server.groups.group import Group, JoinRequest, Member, Strategy
from kafka08.server.groups.subscriptions import subscribed_topics

# Versions 0 and 1 of a consumer's metadata, the latter with what follows the topics.
T_AND_U = bytes.fromhex("0000 00000002 0001 74 0001 75 ffffffff")
T = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000000")


def group_of(*metadata: tuple[bytes, ...]) -> Group:
    group = Group("g", 0, 0)
    for number, each in enumerate(metadata):
        strategies = tuple(Strategy(f"s{n}", data) for n, data in enumerate(each))
        name = f"m{number}"
        request = JoinRequest("g", name, None, "c", "/h", 1, 1, "consumer", strategies)
        group.members[name] = Member(name, request)
    return group


def test_all_members_and_strategies_count() -> None:
    assert subscribed_topics(group_of((T, T_AND_U), (T,))) == {"t", "u"}
    assert subscribed_topics(group_of((T,))) == {"t"}
    assert subscribed_topics(group_of()) == set()


@pytest.mark.scenario("modern-38")
@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0\0",
        T[:8],
        bytes.fromhex("0000 ffffffff"),
        bytes.fromhex("0000 00000001 ffff"),
    ],
)
def test_one_that_cannot_be_understood(metadata: bytes) -> None:
    assert subscribed_topics(group_of((T,), (T, metadata))) is None
