from __future__ import annotations

import pytest

from kafka08.console.migration.findings import (
    LATER,
    MIDDLE,
    Findings,
    findings,
    generation,
)
from kafka08.console.migration.findings import (
    OLD as OF_0_8,
)
from kafka08.console.migration.old_groups import OldGroup
from kafka08.console.migration.reports import BrokerReport, KnownClient, Reports
from kafka08.lag.collector import GroupLag
from tests.console.migration.uses import HELD, NEW, OLD, fetch, of_group, produce, report

MEMBERS = OldGroup(("g_1",), ("web1",), ("t",))


def found(
    *reports: BrokerReport,
    topics: tuple[str, ...] = ("t", "u"),
    brokers: tuple[int, ...] = (1,),
    groups: dict[str, tuple[str, ...]] | None = None,
    old: dict[str, OldGroup] | None = None,
) -> Findings:
    lags = {name: GroupLag(storages, 0, {}) for name, storages in (groups or {}).items()}
    said = Reports({each.broker_id: each for each in reports})
    return findings(topics, brokers, lags, old or {}, said)


@pytest.mark.parametrize(
    ("api", "version", "expected", "asking"),
    [
        ("Produce", 0, OF_0_8, MIDDLE),
        ("Produce", 1, OF_0_8, MIDDLE),
        ("Produce", 2, MIDDLE, MIDDLE),
        ("Produce", 3, LATER, LATER),
        ("Fetch", 1, OF_0_8, MIDDLE),
        ("Fetch", 3, MIDDLE, MIDDLE),
        ("Fetch", 4, LATER, LATER),
        ("OffsetCommit", 1, OF_0_8, MIDDLE),
        ("OffsetCommit", 2, MIDDLE, MIDDLE),
        ("OffsetCommit", 3, LATER, LATER),
        ("JoinGroup", 0, MIDDLE, MIDDLE),
        ("JoinGroup", 2, LATER, LATER),
    ],
)
def test_generations(api: str, version: int, expected: str, asking: str) -> None:
    assert generation(of_group(OLD, api, version, "g")) == expected
    assert generation(of_group(HELD, api, version, "g")) == asking


def test_topics_by_who_uses_them() -> None:
    uses = (
        produce(OLD, 0, "t"),
        produce(NEW, 8, "t", 2),
        produce(NEW, 8, "gone", 2),
        fetch(OLD, 0, "u", 9_000),
        fetch(HELD, 1, "u"),
    )
    result = found(report(*uses), topics=("u", "t", "silent", "__consumer_offsets"))
    silent, t, u = result.topics
    assert silent == ("silent", {}, {}, (), None)
    assert t == ("t", {OF_0_8: {OLD}, LATER: {NEW}}, {}, (0, 2), 1_000)
    assert u == ("u", {}, {OF_0_8: {OLD}, MIDDLE: {HELD}}, (), 9_000)
    assert (result.written_by_old, result.read_by_old) == (["t"], ["u"])


def test_clients_are_those_of_all_brokers_and_their_last_time_counts() -> None:
    other = report(fetch(OLD, 0, "t", 9_000), of_group(OLD, "OffsetCommit", 1, "g"), broker_id=2)
    result = found(report(produce(OLD, 0, "t"), produce(NEW, 3, "t")), other, brokers=(1, 2))
    assert result.clients == ((OLD, ("writes t", "reads t", "commits as g"), 9_000),)


def test_the_console_and_unknown_apis_do_not_count() -> None:
    own = [KnownClient(each, "h", "p", False) for each in ("console", "console-browser")]
    result = found(report(*(fetch(each, 0, "t") for each in own), of_group(OLD, "Other", 0, "t")))
    assert (result.clients, result.read_by_old) == ((), [])


@pytest.mark.parametrize(
    ("storages", "old", "text"),
    [
        (("kafka",), None, ""),
        (("zookeeper",), None, "offsets in ZooKeeper alone, and no member"),
        (("zookeeper", "kafka"), None, "old offsets in ZooKeeper, beside those in Kafka"),
        (("kafka",), MEMBERS, "1 member of 0.8 on web1: stop the last one"),
        (("zookeeper", "kafka"), MEMBERS, "1 member of 0.8 on web1: stop the last one"),
        (("zookeeper",), MEMBERS, "1 member of 0.8 on web1, with offsets in ZooKeeper: set"),
        (("zookeeper",), OldGroup(("a", "b"), (), ()), "2 members of 0.8, with offsets"),
    ],
)
def test_what_keeps_a_group(storages: tuple[str, ...], old: OldGroup | None, text: str) -> None:
    result = found(groups={"g": storages}, old={"g": old} if old else {})
    assert result.groups[0].keeps.startswith(text)
    assert bool(result.in_zookeeper) is bool(text)


def test_a_group_that_has_members_alone() -> None:
    [group] = found(old={"g": MEMBERS}).groups
    assert (group.storages, group.old) == ((), MEMBERS)
    assert "with offsets in ZooKeeper" in group.keeps


def test_clients_of_a_group() -> None:
    named = OLD._replace(client_id="g")
    uses = (
        of_group(NEW, "JoinGroup", 5, "g"),
        of_group(OLD, "OffsetCommit", 0, "g"),
        fetch(named, 0, "t"),
        produce(OLD._replace(host="10.0.0.9", client_id="g"), 0, "t"),
        of_group(OLD, "OffsetCommit", 0, "other"),
    )
    [group] = found(report(*uses), groups={"g": ("kafka",)}).groups
    assert group.clients == {OF_0_8: {OLD, named}, LATER: {NEW}}


def test_what_is_missing_is_known() -> None:
    result = found(report(), report(broker_id=2, forgotten=3, since_ms=5_000), brokers=(1, 2))
    assert (result.silent, result.since_ms, result.forgotten) == ((), 5_000, 3)
    assert not result.is_complete
    assert found(report()).is_complete
    silent = found(report(), brokers=(1, 2, 3))
    assert (silent.silent, silent.is_complete) == ((2, 3), False)
    assert found().since_ms is None
