from __future__ import annotations

import pytest

from kafka08.console.cluster_state import BrokerView
from kafka08.console.migration.findings import findings
from kafka08.console.migration.obstacles import MigrationStep, steps
from kafka08.console.migration.old_groups import OldGroup
from kafka08.console.migration.reports import BrokerReport, KnownClient, Reports
from kafka08.lag.collector import GroupLag
from tests.console.migration.uses import NEW, OLD, fetch, produce, report

OURS = BrokerView(1, is_live=True, is_ours=True)


def found(
    *brokers: BrokerView,
    reports: tuple[BrokerReport, ...] = (),
    groups: tuple[str, ...] = (),
    old: tuple[str, ...] = (),
) -> dict[str, MigrationStep]:
    said = Reports({each.broker_id: each for each in reports})
    lags = {each: GroupLag(("zookeeper",), 0, {}) for each in groups}
    members = {each: OldGroup(("m",), ("web1",), ()) for each in old}
    views = {each.id: each for each in brokers or (OURS,)}
    result = findings([f"t{number}" for number in range(12)], views, lags, members, said)
    return {each.name: each for each in steps(views, said.brokers, result)}


def test_nothing_is_in_the_way() -> None:
    result = found(reports=(report(produce(NEW, 8, "t0"), fetch(NEW, 11, "t0")),))
    assert list(result) == ["formats", "groups", "clients"]
    assert all(each.obstacles == each.costs == () for each in result.values())


def test_brokers_that_refuse_later_clients() -> None:
    original = BrokerView(2, is_live=True, is_ours=False)
    off = BrokerView(3, is_live=True, is_ours=False)
    gone = BrokerView(4, is_live=False, is_ours=False)
    result = found(OURS, original, off, gone, reports=(report(broker_id=3, serves_later=False),))
    two, three = result["formats"].obstacles
    assert two.startswith("Broker 2 is of 0.8.2.2, or has api.versions.enable=false: while it is")
    assert three == "Broker 3 has api.versions.enable=false."
    assert result["clients"].obstacles == (two, three)


@pytest.mark.parametrize(
    ("version", "is_old"),
    [("0.8.2", True), ("0.10.2-IV0", True), ("0.11.0", False), ("1.0", False), ("3.0", False)],
)
def test_formats_that_brokers_store(version: str, is_old: bool) -> None:
    obstacles = found(reports=(report(format_version=version),))["formats"].obstacles
    assert bool(obstacles) is is_old
    if is_old:
        assert f"Broker 1 has log.message.format.version={version}: it conv" in obstacles[0]


def test_readers_of_0_8_are_a_cost() -> None:
    uses = [fetch(OLD, 0, f"t{number}") for number in range(10)]
    step = found(reports=(report(*uses),))["formats"]
    assert step.obstacles == ()
    assert step.costs[0].startswith("Clients of 0.8 read t0, t1, t2, t3, t4, t5, t6, t7 and 2 more")


def test_groups_and_their_clients() -> None:
    names = tuple(f"g{number}" for number in range(10))
    result = found(groups=names, old=("g0", "g1"))
    assert result["groups"].obstacles[0].startswith("g0: 1 member of 0.8 on web1, with offsets")
    assert result["groups"].obstacles[-1] == "2 more groups are in the table."
    assert result["clients"].obstacles == (
        "g0, g1: later consumers cannot share a group with members in ZooKeeper.",
    )


def test_clients_by_name() -> None:
    clients = [KnownClient("", "10.0.0.1", "p", False), OLD]
    result = found(reports=(report(*(produce(each, 0, "t0") for each in clients)),))
    assert result["clients"].obstacles == (
        "A client without an id at 10.0.0.1 writes t0.",
        "shop at 10.0.0.3 writes t0.",
    )
    many = [OLD._replace(host=f"10.0.1.{number}") for number in range(11)]
    result = found(reports=(report(*(produce(each, 0, "t0") for each in many)),))
    assert result["clients"].obstacles[-1] == "3 more clients of 0.8 are in the table."
