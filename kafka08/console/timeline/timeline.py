"""The events of a cluster, found by comparing each look at it with the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.console.cluster_state import ClusterState, PartitionView
from kafka08.console.shown import moment, time_of
from kafka08.console.timeline import comparing
from kafka08.console.timeline.audit_file import AuditEntry
from kafka08.console.timeline.happenings import (
    ACCESS,
    GAP,
    GROUP,
    LEADER,
    MOVE,
    OFFSETS,
    SETTING,
    TOPIC,
    Happening,
    happening,
)
from kafka08.console.timeline.journal import Journal
from kafka08.lag.collector import Lags

_MISSED = 3
_LEAST_GAP_MS = 15_000
"""Not seen for longer than three intervals and this is a gap."""
_ACTIONS = {
    "abort transaction": (GROUP, "The transaction of {} was aborted"),
    "add access rule": (ACCESS, "A rule was added for {}"),
    "add partitions": (TOPIC, "Partitions were added to {}"),
    "add user": (ACCESS, "User {} was added"),
    "change broker settings": (SETTING, "Settings of {} were changed"),
    "change settings": (SETTING, "Settings of {} were changed"),
    "clone topic": (TOPIC, "Topic {} was made as a clone"),
    "create topic": (TOPIC, "Topic {} was created"),
    "delete access rule": (ACCESS, "A rule was deleted for {}"),
    "delete group": (GROUP, "Group {} was deleted"),
    "delete password": (ACCESS, "A password of user {} was deleted"),
    "delete topic": (TOPIC, "Topic {} was marked for deletion"),
    "delete user": (ACCESS, "User {} was deleted"),
    "empty topic": (TOPIC, "Topic {} was emptied"),
    "preferred election": (LEADER, "Preferred leaders were asked for: {}"),
    "reassign": (MOVE, "Moves were asked for: {}"),
    "remove quotas": (ACCESS, "The quotas of {} were removed"),
    "set offsets": (OFFSETS, "The offsets of group {} were set"),
    "set password": (ACCESS, "User {} has another password"),
    "set quotas": (ACCESS, "The quotas of {} were set"),
}
"""By the action in the audit log. A message that was sent makes none."""


class _Subject(NamedTuple):
    """A part of the cluster that is looked at. ``every_ms``: between two looks."""

    key: str
    said: str
    every_ms: int

    @property
    def gap_ms(self) -> int:
        return max(_MISSED * self.every_ms, _LEAST_GAP_MS)


class Timeline:
    """``refresh_ms`` and ``lag_interval_ms``: how often the cluster and the groups are looked at.
    One task at a time for each of the two."""

    def __init__(self, journal: Journal, refresh_ms: int, lag_interval_ms: int) -> None:
        self.journal = journal
        self._cluster = _Subject("cluster", "The cluster", refresh_ms)
        self._leaders = _Subject("leaders", "Leaders and replicas in sync", refresh_ms)
        self._groups = _Subject("groups", "The lag of groups", lag_interval_ms)
        self._state: ClusterState | None = None
        self._views: Mapping[TopicPartition, PartitionView] | None = None
        self._lags: Lags | None = None

    def saw(self, state: ClusterState) -> None:
        """A look at the cluster that succeeded."""
        before, self._state = self._state, state
        found = list(self._gap(self._cluster, state.time_ms))
        was_seen = not found
        if before is not None:
            found += comparing.between(before, state)
        if state.told:
            times = (self.journal.seen(self._leaders.key) or state.time_ms, state.time_ms)
            gap = list(self._gap(self._leaders, state.time_ms))
            found += gap if was_seen else []  # otherwise it is a part of the other gap
            former, views = self._views, comparing.known_views(self._views or {}, state)
            self._views = views
            if former is not None:
                found += comparing.leaders(times, former, views)
            self.journal.note_seen(self._leaders.key, state.time_ms)
        self.journal.add(found)
        self.journal.note_seen(self._cluster.key, state.time_ms)

    def collected(self, lags: Lags) -> None:
        """A round of lag that succeeded."""
        before, self._lags = self._lags, lags
        found = list(self._gap(self._groups, lags.time_ms))
        if before is not None:
            found += comparing.groups(before, lags)
        self.journal.add(found)
        self.journal.note_seen(self._groups.key, lags.time_ms)

    def changed(self, time_ms: int, action: str, target: str) -> None:
        """A change that was made with a console, as the audit log has it. Its user is for admins
        alone, and left out."""
        if action in _ACTIONS:
            kind, text = _ACTIONS[action]
            said = f"{text.format(target)}, with this console"
            self.journal.add([happening((time_ms, time_ms), kind, said, [target])])

    def _gap(self, subject: _Subject, time_ms: int) -> Iterator[Happening]:
        last = self.journal.seen(subject.key)
        if last is not None and time_ms - last > subject.gap_ms:
            span = f"from {moment(last)} to {moment(time_ms)}"
            yield happening((last, time_ms), GAP, f"{subject.said}: not seen {span}")

    def unseen(self, now_ms: int) -> list[Happening]:
        """The gaps that have not ended yet."""
        found = {}
        for subject in (self._cluster, self._leaders, self._groups):
            last = self.journal.seen(subject.key)
            if last is not None and now_ms - last > subject.gap_ms:
                text = f"{subject.said}: not seen since {moment(last)}"
                found[subject.key] = happening((last, now_ms), GAP, text)
        if self._cluster.key in found:
            found.pop(self._leaders.key, None)
        return list(found.values())

    def remember(self, entries: Sequence[AuditEntry]) -> None:
        """The entries of the audit file, the newest first, unless the journal knows events
        already. Those whose time cannot be read are left out."""
        if self.journal.events():
            return
        for entry in reversed(entries):
            time_ms = time_of(entry.time)
            if time_ms is not None:
                self.changed(time_ms, entry.action, entry.target)

    def events(self, now_ms: int) -> list[Happening]:
        """The newest first, with the gaps that have not ended."""
        return [*self.unseen(now_ms), *self.journal.events()]

    def close(self) -> None:
        self.journal.close()
