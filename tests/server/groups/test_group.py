"""Replies that are given once, and members with parked requests."""

from __future__ import annotations

import threading

import pytest

from kafka08.server.groups.group import JoinAnswer, JoinRequest, Member, Reply, Strategy, SyncAnswer


def member(*strategies: Strategy) -> Member:
    return Member("m", JoinRequest("g", "m", None, "c", "/h", 1000, 2000, "consumer", strategies))


def test_a_reply_is_given_once() -> None:
    reply: Reply[SyncAnswer] = Reply(threading.Event())
    reply.send(SyncAnswer(0, b"a"))
    assert reply.event.is_set() and reply.answer == SyncAnswer(0, b"a")
    with pytest.raises(RuntimeError, match="answered twice"):
        reply.send(SyncAnswer(27))
    assert reply.answer == SyncAnswer(0, b"a")


def test_the_metadata_of_a_strategy() -> None:
    found = member(Strategy("range", b"r"), Strategy("sticky", b"s"))
    assert [found.metadata_for(name) for name in ("sticky", "range", "other", None)] == [
        b"s",
        b"r",
        b"",
        b"",
    ]


def test_parked_requests_are_answered_and_gone() -> None:
    found = member()
    assert not found.is_parked
    found.join, found.sync = Reply(threading.Event()), Reply(threading.Event())
    join, sync = found.join, found.sync
    found.answer_join(JoinAnswer(0, "m", 3))
    assert found.is_parked and join.answer == JoinAnswer(0, "m", 3)
    found.answer_sync(SyncAnswer(27))
    assert not found.is_parked and sync.answer == SyncAnswer(27)
    found.answer_join(JoinAnswer(25))
    found.answer_sync(SyncAnswer(25))
    assert (join.answer, sync.answer) == (JoinAnswer(0, "m", 3), SyncAnswer(27))
