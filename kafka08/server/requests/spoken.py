"""Which versions clients speak: what each was last heard to send, and when.

Kept in memory, so a start forgets it. A request is noted once a round for each connection, API,
topic or group: times are exact to a round. The record is bounded, and the entries heard least
recently go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from kafka08.protocol.registry import APIS
from kafka08.runtime import Clock, Scheduler
from kafka08.server.part import Room
from kafka08.server.requests.dispatch import Handler
from kafka08.server.requests.heard import KINDS, NO_FORMAT, HeardTopics, Seen, Spoken

ROUND_MS: Final = 60_000
KEPT_MS: Final = 24 * 3_600_000
MOST: Final = 10_000
# Entries after which a round ends early: they take memory for each connection.
_MOST_IN_ROUND: Final = 100_000


class SpokenVersions(Room):
    """``since_ms``: when it began. ``forgotten``: entries that went because there were ``most``;
    those that were not heard for ``KEPT_MS`` do not count."""

    def __init__(self, clock: Clock, most: int = MOST, most_in_round: int = _MOST_IN_ROUND) -> None:
        self._clock = clock
        self._most = most
        self._most_in_round = most_in_round
        self._in_round = 0
        self._seen: list[Seen] = []
        self._last: OrderedDict[Spoken, int] = OrderedDict()  # the one heard last is at the end
        self.since_ms = clock.millis()
        self.forgotten = 0

    def heard(self, handlers: Iterable[Handler]) -> list[Handler]:
        """The handlers; those of APIs that tell what a client does note their requests here."""
        return [self._heard(each) if each.key in KINDS else each for each in handlers]

    def _heard(self, handler: Handler) -> Handler:
        seen: Seen = {}
        self._seen.append(seen)
        return KINDS[handler.key](handler, seen, self.note)

    def note(self, spoken: Spoken) -> None:
        self._last[spoken] = self._clock.millis()
        self._last.move_to_end(spoken)
        if len(self._last) > self._most:
            self._last.popitem(last=False)
            self.forgotten += 1
        self._in_round += 1
        if self._in_round > self._most_in_round:
            self.begin_round()

    def begin_round(self) -> None:
        """Have requests noted again."""
        self._in_round = 0
        for seen in self._seen:
            seen.clear()
        oldest = self._clock.millis() - KEPT_MS
        while self._last and next(iter(self._last.values())) < oldest:
            self._last.popitem(last=False)

    def schedule(self, scheduler: Scheduler) -> None:
        if self._seen:
            scheduler.every("spoken-versions", ROUND_MS, self.begin_round, delay_ms=ROUND_MS)

    def items(self) -> list[tuple[Spoken, int]]:
        """With the time of each, ms since the epoch; the one heard last comes last."""
        return list(self._last.items())


def described(items: Iterable[tuple[Spoken, int]]) -> list[dict[str, object]]:
    """As JSON can hold it. Null stands for what is not known or does not apply."""
    return [_described(spoken, last_ms) for spoken, last_ms in items]


def _described(spoken: Spoken, last_ms: int) -> dict[str, object]:
    speaker = spoken.speaker
    name, version = speaker.software or (None, None)
    is_topic = KINDS[spoken.api_key] is HeardTopics
    return {
        "client_id": speaker.client_id,
        "host": speaker.host,
        "principal": speaker.principal,
        "asks_versions": speaker.software is not None,
        "software": name or None,
        "software_version": version or None,
        "api": APIS[spoken.api_key].name,
        "version": spoken.version,
        "topic": spoken.name if is_topic else None,
        "group": None if is_topic else spoken.name,
        "format": None if spoken.format == NO_FORMAT else spoken.format,
        "last_ms": last_ms,
    }
