"""The sender of requests."""

from __future__ import annotations

from kafka08.network.peer import Peer


def test_the_host_of_an_address_of_either_family() -> None:
    assert Peer("10.0.0.1:9092").host == "10.0.0.1"
    assert Peer("::1:9092").host == "::1"


def test_who_waits_for_a_login_or_the_end_is_called() -> None:
    peer, calls = Peer(), []
    peer.is_admitted = False
    peer.admitted = lambda: calls.append("admitted")
    peer.wake = lambda: calls.append("woken")
    peer.admit("User:a")
    assert peer.is_admitted and peer.principal == "User:a"
    peer.end()
    assert peer.has_ended and calls == ["admitted", "woken"]
