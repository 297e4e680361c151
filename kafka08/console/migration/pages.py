"""Which clients still speak 0.8, and what keeps the cluster from the steps of a migration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from werkzeug.wrappers import Response

from kafka08.console.migration import old_groups, reports
from kafka08.console.migration.findings import (
    GENERATIONS,
    OLD,
    Clients,
    Findings,
    GroupUse,
    OldClient,
    TopicUse,
    findings,
)
from kafka08.console.migration.obstacles import steps
from kafka08.console.migration.reports import KnownClient, Reports
from kafka08.console.pages.cluster import state_of
from kafka08.console.pages.tables import Column, Table, fields, table
from kafka08.console.shown import iso, number
from kafka08.console.site import Visit

_SHOWN: Final = 500
_KINDS: Final = {"": "all", "old": "with clients of 0.8"}
_LEAST_MS: Final = 24 * 3_600_000
"""A record that is younger may miss clients that come once a day."""


def _counts(clients: Clients) -> dict[str, int]:
    return {each: len(clients[each]) for each in clients}


def _rank(clients: Clients) -> tuple[int, ...]:
    """The most old ones last."""
    return tuple(len(clients.get(each, ())) for each in GENERATIONS)


def _of_clients(name: str, title: str, hint: str) -> Column:
    """A column of the clients in the field ``name`` of a row."""
    clients = attrgetter(name)
    return Column(
        name,
        title,
        lambda row: _rank(clients(row)),
        is_number=True,
        hint=hint,
        value=lambda row: _counts(clients(row)),
    )


_TOPICS: Final = (
    Column("name", "Topic", lambda row: row.name),
    _of_clients("writers", "Written by", "Clients by their generation"),
    _of_clients("readers", "Read by", "Clients by their generation"),
    Column("formats", "Formats written", lambda row: row.formats),
    Column("last_used", "Last used", lambda row: row.last_ms, value=lambda row: iso(row.last_ms)),
)
_GROUPS: Final = (
    Column("name", "Group", lambda row: row.name),
    Column("commits_to", "Commits to", lambda row: row.storages),
    Column(
        "members_of_0_8",
        "Members of 0.8",
        lambda row: len(row.old.members) if row.old else 0,
        is_number=True,
        hint="Registered in ZooKeeper",
    ),
    Column("reads", "They read", lambda row: row.old.topics if row.old else ()),
    _of_clients("clients", "Clients", "That commit, join, or have the group's name"),
    Column("keeps", "Kept in ZooKeeper by", lambda row: row.keeps),
)
_CLIENTS: Final = (
    Column("client_id", "KnownClient id", lambda row: row.client.client_id),
    Column("host", "Address", lambda row: row.client.host),
    Column("principal", "Principal", lambda row: row.client.principal),
    Column("does", "Does", lambda row: row.does),
    Column("last_seen", "Last seen", lambda row: row.last_ms, value=lambda row: iso(row.last_ms)),
)


class _Tables(NamedTuple):
    topics: Table[TopicUse]
    groups: Table[GroupUse]
    clients: Table[OldClient]


def migration(visit: Visit) -> Response:
    site, state, lags = visit.site, state_of(visit), visit.site.observer.lags
    config = site.config
    said = reports.read(state.live, site.broker_pages, site.runtime)
    live = {each.id for each in state.live}
    groups = lags.groups if lags else {}
    found = findings(state.topics, live, groups, old_groups.read(site.zk), said)
    tables = _tables(visit, found)
    sentences = _sentences(found, said)
    is_young = found.since_ms is not None and site.clock.millis() - found.since_ms < _LEAST_MS
    every_step = steps(state.brokers, said.brokers, found)
    data = {
        "sentences": sentences,
        "is_complete": bool(said.brokers) and found.is_complete,
        "listening_since": iso(found.since_ms),
        "silent_brokers": found.silent,
        "broker_errors": said.errors,
        "forgotten": found.forgotten,
        "topics": [fields(row, _TOPICS) for row in tables.topics.rows],
        "groups": [fields(row, _GROUPS) for row in tables.groups.rows],
        "old_clients": [fields(row, _CLIENTS) for row in tables.clients.rows],
        "steps": every_step,
    }
    return visit.answer(
        "migration.html",
        data,
        found=found,
        generations=GENERATIONS,
        is_young=is_young,
        kinds=list(_KINDS.items()),
        lags=lags,
        most=_SHOWN,
        name=_name(visit),
        refresh=max(config.lag_interval_ms // 1000, 1),
        said=said,
        silent=_by_reason(said.errors),
        sentences=sentences,
        show=visit.request.args.get("show", ""),
        sorts={
            each: visit.request.args[each]
            for each in ("topics", "groups", "clients")
            if visit.request.args.get(each)
        },
        state=state,
        steps=every_step,
        tables=tables,
    )


def _by_reason(errors: Mapping[int, str]) -> dict[str, list[int]]:
    """The brokers that have not said it for the same reason."""
    found: dict[str, list[int]] = {}
    for broker, reason in errors.items():
        found.setdefault(reason, []).append(broker)
    return found


def _name(visit: Visit) -> str:
    return visit.request.args.get("name", "").strip()


def _tables(visit: Visit, found: Findings) -> _Tables:
    """With ``name``: the rows that name it. Those with most clients of 0.8 come first."""
    name = _name(visit).lower()
    is_old = visit.request.args.get("show") == "old"

    def wanted(texts: Iterable[str], old: bool) -> bool:
        return (old or not is_old) and any(name in each.lower() for each in texts)

    topics = [
        each
        for each in found.topics
        if wanted([each.name, *_texts(each.writers, each.readers)], _has_old(each))
    ]
    topics.sort(key=lambda each: (_rank(each.writers)[0], _rank(each.readers)[0]), reverse=True)
    groups = [
        each
        for each in found.groups
        if wanted([each.name, *_texts(each.clients)], bool(each.keeps) or OLD in each.clients)
    ]
    groups.sort(key=lambda each: not each.keeps)
    clients = [
        each for each in found.clients if wanted([*_texts_of(each.client), *each.does], True)
    ]
    return _Tables(
        table(visit, topics, _TOPICS, "topics"),
        table(visit, groups, _GROUPS, "groups"),
        table(visit, clients, _CLIENTS, "clients"),
    )


def _has_old(topic: TopicUse) -> bool:
    return OLD in topic.writers or OLD in topic.readers


def _texts(*every: Clients) -> list[str]:
    return [
        text
        for clients in every
        for of_generation in clients.values()
        for client in of_generation
        for text in _texts_of(client)
    ]


def _texts_of(client: KnownClient) -> tuple[str, ...]:
    return client.client_id, client.host, client.principal, client.software


def _sentences(found: Findings, said: Reports) -> list[str]:
    """The first is about topics, if a broker has said who uses them, the last about groups."""
    total, sentences = len(found.topics), []
    if said.brokers:
        written, read = len(found.written_by_old), len(found.read_by_old)
        least = "" if found.is_complete else "At least " if written else "As far as is known, "
        sentences.append(
            f"{least}{number(written) if written else 'none'} of {_count(total, 'topic')} "
            f"{'is' if written < 2 else 'are'} still written by 0.8 clients, "
            f"and {number(read) if read else 'none'} {'is' if read < 2 else 'are'} read by them."
        )
    kept = len(found.in_zookeeper)
    sentences.append(
        f"{number(kept) if kept else 'none'} of {_count(len(found.groups), 'group')} "
        f"{'is' if kept < 2 else 'are'} still in ZooKeeper."
    )
    return [each[0].upper() + each[1:] for each in sentences]


def _count(value: int, noun: str) -> str:
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"
