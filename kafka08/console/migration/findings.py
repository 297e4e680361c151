"""The topics, groups and clients that still speak 0.8, as brokers and ZooKeeper know them. Pure.

A client counts as one of 0.8 if it did not ask for API versions and used the versions 0 or 1 of
Produce, Fetch or OffsetCommit: those of 0.9 do so too, and know message format 0 alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from kafka08.common import INTERNAL_TOPICS
from kafka08.console.config import BROWSER_ID, CLIENT_ID
from kafka08.console.migration.old_groups import OldGroup
from kafka08.console.migration.reports import (
    FETCH,
    JOIN_GROUP,
    OFFSET_COMMIT,
    PRODUCE,
    KnownClient,
    Reports,
    Use,
)
from kafka08.lag.collector import KAFKA, ZOOKEEPER, GroupLag

OLD, MIDDLE, LATER = "0.8", "0.10", "0.11 or later"
GENERATIONS: Final = (OLD, MIDDLE, LATER)
# The first versions of 0.10 and of 0.11 by API.
_SINCE: Final = {PRODUCE: (2, 3), FETCH: (2, 4), OFFSET_COMMIT: (2, 3), JOIN_GROUP: (0, 2)}
_OWN: Final = (CLIENT_ID, BROWSER_ID)
_DOES: Final = {
    PRODUCE: "writes",
    FETCH: "reads",
    OFFSET_COMMIT: "commits as",
    JOIN_GROUP: "joins",
}
Clients = Mapping[str, frozenset[KnownClient]]
"""Clients by their generation, without generations that have none."""


class TopicUse(NamedTuple):
    """``formats``: of messages that were produced. ``last_ms``: when it was last used, None if it
    was not seen."""

    name: str
    writers: Clients
    readers: Clients
    formats: tuple[int, ...]
    last_ms: int | None


class GroupUse(NamedTuple):
    """``storages``: where it commits. ``old``: its members in ZooKeeper. ``clients``: those that
    commit, join, or are named like it. ``keeps``: why it cannot leave ZooKeeper, "" if it has."""

    name: str
    storages: tuple[str, ...]
    old: OldGroup | None
    clients: Clients
    keeps: str


class OldClient(NamedTuple):
    """``does``: such as "writes orders"."""

    client: KnownClient
    does: tuple[str, ...]
    last_ms: int


class Findings(NamedTuple):
    """``silent``: brokers, live ones, that did not say who speaks to them. ``since_ms``: since when
    all others have listened, None if there are none. ``forgotten``: uses that they have lost."""

    topics: tuple[TopicUse, ...]
    groups: tuple[GroupUse, ...]
    clients: tuple[OldClient, ...]
    silent: tuple[int, ...]
    since_ms: int | None
    forgotten: int

    @property
    def is_complete(self) -> bool:
        return not self.silent and not self.forgotten

    @property
    def written_by_old(self) -> list[str]:
        return [each.name for each in self.topics if OLD in each.writers]

    @property
    def read_by_old(self) -> list[str]:
        return [each.name for each in self.topics if OLD in each.readers]

    @property
    def in_zookeeper(self) -> list[GroupUse]:
        return [each for each in self.groups if each.keeps]


def generation(use: Use) -> str:
    """Of the client, as far as this use tells."""
    middle, later = _SINCE.get(use.api, (0, 0))
    if use.version >= later:
        return LATER
    return MIDDLE if use.version >= middle or use.client.asks_versions else OLD


def findings(
    topics: Collection[str],
    brokers: Collection[int],
    groups: Mapping[str, GroupLag],
    old_groups: Mapping[str, OldGroup],
    reports: Reports,
) -> Findings:
    """``topics`` and ``brokers`` are those of the cluster; ``groups`` those that commit."""
    uses = [
        use
        for report in reports.brokers.values()
        for use in report.uses
        if use.client.client_id not in _OWN and use.api in _DOES
    ]
    of_topic: dict[str | None, list[Use]] = defaultdict(list)
    of_client: dict[KnownClient, list[Use]] = defaultdict(list)
    for use in uses:
        of_topic[use.topic].append(use)
        of_client[use.client].append(use)
    shown = sorted(set(topics) - set(INTERNAL_TOPICS))
    return Findings(
        tuple(_topic(name, of_topic[name]) for name in shown),
        tuple(
            _group(name, groups.get(name), old_groups.get(name), _of_group(name, uses))
            for name in sorted({*groups, *old_groups})
        ),
        tuple(
            OldClient(client, _does(found), max(use.last_ms for use in found))
            for client, found in sorted(of_client.items())
            if OLD in map(generation, found)
        ),
        tuple(sorted(set(brokers) - reports.brokers.keys())),
        max((each.since_ms for each in reports.brokers.values()), default=None),
        sum(each.forgotten for each in reports.brokers.values()),
    )


def _topic(name: str, uses: Iterable[Use]) -> TopicUse:
    found = list(uses)
    written = [use for use in found if use.api == PRODUCE]
    return TopicUse(
        name,
        _by_generation(written),
        _by_generation(use for use in found if use.api == FETCH),
        tuple(sorted({use.format for use in written if use.format is not None})),
        max((use.last_ms for use in found), default=None),
    )


def _of_group(name: str, uses: Iterable[Use]) -> Clients:
    """A consumer of 0.8 has the name of its group as its client id, unless it sets another one."""
    return _by_generation(
        use for use in uses if use.group == name or (use.api == FETCH and use.client[0] == name)
    )


def _by_generation(uses: Iterable[Use]) -> Clients:
    found: dict[str, set[KnownClient]] = defaultdict(set)
    for use in uses:
        found[generation(use)].add(use.client)
    return {each: frozenset(found[each]) for each in GENERATIONS if each in found}


def _does(uses: Iterable[Use]) -> tuple[str, ...]:
    said = {
        (list(_DOES).index(use.api), f"{_DOES[use.api]} {use.topic or use.group or ''}")
        for use in uses
    }
    return tuple(text for _, text in sorted(said))


def _group(name: str, lag: GroupLag | None, old: OldGroup | None, clients: Clients) -> GroupUse:
    storages = lag.storages if lag else ()
    return GroupUse(name, storages, old, clients, _keeps(storages, old))


def _keeps(storages: tuple[str, ...], old: OldGroup | None) -> str:
    if old is not None:
        where = f" on {', '.join(old.hosts)}" if old.hosts else ""
        number = len(old.members)
        members = f"{number} member{'s' if number > 1 else ''} of 0.8{where}"
        if KAFKA in storages:
            return f"{members}: stop the last one, then start later consumers in its place"
        return (
            f"{members}, with offsets in ZooKeeper: set offsets.storage=kafka and "
            "dual.commit.enabled=true there, so that later consumers find the offsets"
        )
    if ZOOKEEPER not in storages:
        return ""
    if KAFKA in storages:
        return "old offsets in ZooKeeper, beside those in Kafka: it has no member of 0.8 any more"
    return "offsets in ZooKeeper alone, and no member: delete the group if nobody needs it"
