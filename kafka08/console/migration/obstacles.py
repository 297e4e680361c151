"""The obstacles to the next steps of a migration, in plain words, by name. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafka08.console.cluster_state import BrokerView
from kafka08.console.migration.findings import Findings, OldClient
from kafka08.console.migration.reports import BrokerReport
from kafka08.console.shown import number

_NAMED: Final = 8


class MigrationStep(NamedTuple):
    """``obstacles``: sentences. ``costs``: what it costs to go on nevertheless. With neither,
    nothing that was seen keeps from it."""

    name: str
    title: str
    obstacles: tuple[str, ...]
    costs: tuple[str, ...] = ()


def steps(
    brokers: Mapping[int, BrokerView], reports: Mapping[int, BrokerReport], found: Findings
) -> list[MigrationStep]:
    refusing = tuple(_refusing(brokers, reports))
    old = [f"{named(each)} {_listed(each.does)}." for each in found.clients]
    return [
        MigrationStep(
            "formats",
            "Later versions and message formats (api.versions.enable, message.format.version)",
            (*refusing, *_formats(reports)),
            tuple(_conversions(found)),
        ),
        MigrationStep(
            "groups",
            "Leaving ZooKeeper groups",
            _first([f"{each.name}: {each.keeps}." for each in found.in_zookeeper], "groups"),
        ),
        MigrationStep(
            "clients",
            "Clients of 4.x alone",
            (*refusing, *_first(old, "clients of 0.8"), *_shared_groups(found)),
        ),
    ]


def _refusing(
    brokers: Mapping[int, BrokerView], reports: Mapping[int, BrokerReport]
) -> Iterator[str]:
    for broker in brokers.values():
        report = reports.get(broker.id)
        if report is not None and not report.serves_later:
            yield f"Broker {broker.id} has api.versions.enable=false."
        elif broker.is_live and report is None and broker.is_ours is False:
            yield (
                f"Broker {broker.id} is of 0.8.2.2, or has api.versions.enable=false: while it is "
                "registered, all brokers refuse clients that ask for versions."
            )


def _formats(reports: Mapping[int, BrokerReport]) -> Iterator[str]:
    for report in reports.values():
        if _is_before_0_11(report.format_version):
            yield (
                f"Broker {report.broker_id} has "
                f"log.message.format.version={report.format_version}: it converts "
                "what later clients write, and refuses headers."
            )


def _is_before_0_11(release: str) -> bool:
    major, _, rest = release.partition(".")
    minor = rest.partition(".")[0].partition("-")[0]
    return major == "0" and minor.isdecimal() and int(minor) < 11


def _conversions(found: Findings) -> Iterator[str]:
    topics = found.read_by_old
    if topics:
        yield (
            f"Clients of 0.8 read {_listed(topics)}: brokers convert later messages for them, "
            "which takes time, and they see no timestamps and no headers."
        )


def _first(sentences: Sequence[str], what: str) -> tuple[str, ...]:
    more = len(sentences) - _NAMED
    rest = (f"{number(more)} more {what} are in the table.",) if more > 0 else ()
    return (*sentences[:_NAMED], *rest)


def _shared_groups(found: Findings) -> Iterator[str]:
    names = [each.name for each in found.in_zookeeper if each.old]
    if names:
        yield (f"{_listed(names)}: later consumers cannot share a group with members in ZooKeeper.")


def named(old: OldClient) -> str:
    return f"{old.client.client_id or 'A client without an id'} at {old.client.host}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {number(more)} more" if more > 0 else "")
