"""Connections whose handshake or login is not over: how long, and how many."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.network import half_open
from kafka08.network.connection import Peer
from kafka08.network.half_open import HalfOpen


class Opening:
    """A connection that is not open yet."""

    def __init__(self, host: str = "h") -> None:
        self.peer = Peer(f"{host}:1")
        self.peer.is_admitted = False
        self.was_shut = False

    def shutdown(self) -> None:
        self.was_shut = True


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    seconds = Seconds()
    monkeypatch.setattr(half_open, "time", seconds)
    return seconds


def added(known: HalfOpen, *hosts: str) -> list[Any]:
    made: list[Any] = [Opening(host) for host in hosts]
    for each in made:
        known.add(each)
    return made


def test_the_late_are_shut_down(seconds: Seconds) -> None:
    known = HalfOpen(10, 5)
    (first,) = added(known, "a")
    seconds.now = 6
    second, admitted = added(known, "a", "b")
    admitted.peer.admit("User:x")
    seconds.now = 11
    assert known.check() == [first] and first.was_shut
    assert len(known) == 1
    seconds.now = 17
    assert known.check() == [second]
    assert not admitted.was_shut and len(known) == 0


def test_the_oldest_of_an_address_makes_room(seconds: Seconds) -> None:
    known = HalfOpen(10, 2)
    first, second, third, other = added(known, "a", "a", "a", "b")
    assert [each.was_shut for each in (first, second, third, other)] == [True, False, False, False]
    assert len(known) == 3


def test_the_admitted_do_not_count(seconds: Seconds) -> None:
    known = HalfOpen(10, 2)
    first, second = added(known, "a", "a")
    first.peer.admit("User:x")
    added(known, "a")
    assert not first.was_shut and not second.was_shut


def test_the_ended_are_forgotten(seconds: Seconds) -> None:
    known = HalfOpen(10, 2)
    (first,) = added(known, "a")
    known.discard(first)
    known.discard(first)
    assert len(known) == 0 and known.check() == []


def test_the_oldest_of_the_address_with_the_most_makes_room(seconds: Seconds) -> None:
    known = HalfOpen(10, 3, 4)
    alone, first, second, third = added(known, "honest", "flood", "flood", "flood")
    assert not any(each.was_shut for each in (alone, first, second, third))
    added(known, "other")
    assert [each.was_shut for each in (alone, first, second, third)] == [False, True, False, False]
    assert len(known) == 4
    second.peer.admit("User:x")
    added(known, "another")
    assert not second.was_shut and not third.was_shut and not alone.was_shut
    assert len(known) == 4
