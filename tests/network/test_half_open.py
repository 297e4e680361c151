"""Connections whose handshake or login is not over: how long, and how many."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.network import half_open
from kafka08.network.half_open import HalfOpen
from kafka08.network.peer import Peer


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


@pytest.mark.scenario("security-14")
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


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=60))
def test_room_is_made_by_an_address_with_the_most(arrivals: list[tuple[str, bool]]) -> None:
    """Connections come, and some end at once: it is always one of the largest that shrinks."""
    known, there = HalfOpen(10, 5, 12), list[Opening]()
    for host, ends in arrivals:
        before = Counter(each.peer.host for each in there)
        before[host] += 1
        there += added(known, host)
        (gone, *others) = [each for each in there if each.was_shut] or [None]
        assert not others
        if before[host] > 5:
            assert gone is not None and gone.peer.host == host
        elif sum(before.values()) > 12:
            assert gone is not None and before[gone.peer.host] == max(before.values())
        else:
            assert gone is None
        if gone is not None:
            assert gone is next(each for each in there if each.peer.host == gone.peer.host)
            there.remove(gone)
        if ends:
            known.discard(there.pop(0))  # type: ignore[arg-type]
        assert len(known) == len(there)
