"""Which ends of a mirror are told to ask for versions, and what is said about it."""

from __future__ import annotations

import logging

import pytest

from kafka08.errors import ConfigError
from kafka08.protocol.negotiation import closed
from tools.mirror import ends
from tools.mirror.ends import End, settle

SETTING = ends.SETTING
LATER, OLD, AWAY = "later", "old", "away"


class MirroredCluster:
    """Brokers that serve the requests, close the connection, or cannot be reached."""

    def __init__(self, *brokers: str) -> None:
        self.brokers = list(brokers)
        self.asked: list[int] = []

    def end(self, name: str, *, is_later: bool = False, **settings: str) -> End:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        return End(name, given, self._listed, self._ask, is_later)

    def _listed(self) -> list[tuple[str, int]]:
        return [("h", port) for port in range(len(self.brokers))]

    def _ask(self, host: str, port: int) -> None:
        self.asked.append(port)
        if self.brokers[port] == OLD:
            raise closed(f"{host}:{port}")
        if self.brokers[port] == AWAY:
            raise ConnectionRefusedError


def never(seconds: float) -> None:
    raise AssertionError("it waits")


def settled(
    source: MirroredCluster, target: MirroredCluster, pause=lambda seconds: None
) -> tuple[str, str]:
    into, out = target.end("target"), source.end("source")
    settle(into, [out], pause)
    return out.settings[SETTING], into.settings[SETTING]


def test_both_ends_ask_if_both_can(caplog: pytest.LogCaptureFixture) -> None:
    both = settled(MirroredCluster(LATER, LATER), MirroredCluster(LATER), never)
    assert both == ("true", "true")
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("source", "target", "settings"),
    [
        ((LATER, OLD), (LATER,), ("false", "false")),
        ((OLD,), (OLD,), ("false", "false")),
        # The source says what is lost.
        ((LATER,), (OLD,), ("true", "false")),
        ((LATER,), (LATER, OLD), ("true", "false")),
    ],
)
def test_one_broker_that_does_not_serve_them_decides(
    source: tuple[str, ...], target: tuple[str, ...], settings: tuple[str, str]
) -> None:
    assert settled(MirroredCluster(*source), MirroredCluster(*target)) == settings


def test_a_source_of_08_leaves_the_target_as_it_is() -> None:
    """Its messages have nothing to lose, and keep their format."""
    target = MirroredCluster(LATER)
    assert settled(MirroredCluster(OLD), target) == ("false", "false")
    assert target.asked == []


def test_a_broker_that_is_stopping_is_asked_again() -> None:
    cluster = MirroredCluster(OLD)

    def pause(seconds: float) -> None:
        cluster.brokers[0] = LATER

    assert settled(cluster, MirroredCluster(LATER), pause) == ("true", "true")
    old = MirroredCluster(OLD)
    settled(old, MirroredCluster(LATER))
    assert old.asked == [0] * ends.TRIES


def test_brokers_that_are_away_do_not_count(caplog: pytest.LogCaptureFixture) -> None:
    assert settled(MirroredCluster(AWAY, LATER), MirroredCluster(LATER), never) == ("true", "true")
    cluster = MirroredCluster(AWAY)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            cluster.brokers[0] = LATER

    assert settled(cluster, MirroredCluster(LATER), pause) == ("true", "true")
    assert caplog.messages == ["No broker of source can be reached; waiting for one"]


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_file_decides(value: str) -> None:
    source, target = MirroredCluster(LATER), MirroredCluster(LATER)
    into, out = target.end("target", api_versions_request=value), source.end("source")
    settle(into, [out], never)
    assert (out.settings[SETTING], into.settings[SETTING]) == ("true", value)
    assert target.asked == []


def test_sources_that_lose_them_are_named(caplog: pytest.LogCaptureFixture) -> None:
    into = MirroredCluster(LATER).end("target")
    sources = [MirroredCluster(OLD).end("old"), MirroredCluster(LATER).end("new")]
    with caplog.at_level(logging.WARNING):
        settle(into, sources, lambda seconds: None)
    assert [each.settings[SETTING] for each in (*sources, into)] == ["false", "true", "true"]
    (text,) = caplog.messages
    assert text.startswith("Messages of old are copied without timestamps and headers")


def test_librdkafka_always_asks() -> None:
    cluster = MirroredCluster(LATER)
    into = cluster.end("target", is_later=True)
    settle(into, [MirroredCluster(LATER).end("source")], never)
    assert into.settings == {}
    assert cluster.asked == []
    out, into = cluster.end("source", is_later=True), MirroredCluster(OLD).end("target")
    settle(into, [out], lambda seconds: None)
    assert (out.settings, into.settings) == ({}, {SETTING: "false"})


def test_a_source_that_is_read_by_transactions_must_serve_them() -> None:
    committed = {"isolation_level": "read_committed"}
    out = MirroredCluster(LATER).end("source", **committed)
    settle(MirroredCluster(OLD).end("target"), [out], lambda seconds: None)
    assert out.settings[SETTING] == "true"
    out = MirroredCluster(LATER, OLD).end("source", **committed)
    text = r"isolation\.level of source has value read_committed, but its brokers do not serve"
    with pytest.raises(ConfigError, match=text):
        settle(MirroredCluster(LATER).end("target"), [out], lambda seconds: None)
