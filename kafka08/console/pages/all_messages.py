"""Messages of all partitions of a topic in one table, by their times."""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

from werkzeug.wrappers import Response

from kafka08.common import TopicPartition
from kafka08.console.browser import Look
from kafka08.console.decoders import DECODERS
from kafka08.console.forms import FieldError, in_words
from kafka08.console.pages.messages import PAGE, chosen, look_at, partition_of, row_of
from kafka08.console.site import Visit
from kafka08.errors import KafkaError

_KINDS = {"newest": "the newest", "time": "a time", "oldest": "the oldest"}


class Looks(NamedTuple):
    """``found`` by partition. ``unread``: why others could not be read. ``limit``: what ended the
    reading, "" if nothing did."""

    found: dict[int, Look]
    unread: list[tuple[int, str]]
    limit: str


def all_messages(visit: Visit, name: str) -> Response:
    """The newest, the oldest, or the first since a time."""
    _, partitions = partition_of(visit, name)
    kind, decoder, at, has = chosen(visit, name, _KINDS)
    if at and kind != "time":
        raise FieldError("at", "a time is for messages from a time on")
    looks = _look_everywhere(visit, name, partitions, kind, at, has.encode())
    messages = [
        (message.timestamp, number, message)
        for number, look in looks.found.items()
        for message in look.messages
    ]
    # Of equal times those of a partition keep their order.
    messages.sort(key=itemgetter(0))
    shown = messages[-PAGE:][::-1] if kind == "newest" else messages[:PAGE]
    return visit.render(
        "all_messages.html",
        at=at,
        bytes_read=sum(look.bytes_read for look in looks.found.values()),
        decoder=decoder,
        decoders=list(DECODERS),
        has=has,
        kind=kind,
        kinds=list(_KINDS.items()),
        limit=looks.limit or next((each.limit for each in looks.found.values() if each.limit), ""),
        looked=looks.found,
        name=name,
        partitions=partitions,
        read=sum(look.read for look in looks.found.values()),
        rows=[
            (number, row_of(message, TopicPartition(name, number), decoder))
            for _, number, message in shown
        ],
        unread=looks.unread,
        untimed=sum(time < 0 for time, _, _ in shown),
    )


def _look_everywhere(
    visit: Visit, name: str, partitions: list[int], kind: str, at: str, needle: bytes
) -> Looks:
    """The limits of one read are those of all partitions together."""
    config, clock = visit.site.config, visit.site.clock
    end = clock.monotonic() + config.browse_timeout_ms / 1000
    looks = Looks({}, [], "")
    left = config.browse_max_bytes
    for number in partitions:
        if left <= 0:
            return looks._replace(limit=f"{config.browse_max_bytes} bytes")
        if clock.monotonic() >= end:
            return looks._replace(limit=f"{config.browse_timeout_ms} ms")
        try:
            look = look_at(visit, TopicPartition(name, number), kind, at, needle)
        except (OSError, KafkaError) as error:
            looks.unread.append((number, in_words(error)))
            continue
        looks.found[number] = look
        left -= look.bytes_read
    return looks
