"""The message browser: by offset, by time, newest first, live, with a search that counts."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlencode

from werkzeug.exceptions import Forbidden, NotFound
from werkzeug.wrappers import Response

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.console.browser import Look, headers_of
from kafka08.console.decoders import DECODERS, Decoded, shown
from kafka08.console.forms import time_ms, whole
from kafka08.console.pages.cluster import topic_of
from kafka08.console.pages.exports import FORMS, downloaded, record
from kafka08.console.site import Visit
from kafka08.groups import reset
from kafka08.message.compression import NAMES
from kafka08.message.entry import APPEND_TIME, CREATE_TIME, AnyMessage

PAGE = 50
_TAIL = 500
_TAIL_SECONDS = 1
_STAMPED = {CREATE_TIME: "by the producer", APPEND_TIME: "by the broker"}
_KINDS = {
    "newest": "the newest",
    "offset": "an offset",
    "time": "a time",
    "oldest": "the oldest",
    "tail": "now on (live)",
}


class Row(NamedTuple):
    """``stamped_by``: who gave the timestamp, "" without one."""

    offset: int
    timestamp: int
    stamped_by: str
    codec: str
    key: Decoded | None
    value: Decoded | None
    headers: list[tuple[str, Decoded | None]]
    raw: str


def messages(visit: Visit, name: str) -> Response:
    """One page of messages, the newest first unless read from an offset on."""
    tp, partitions = partition_of(visit, name)
    kind, decoder, at, has = chosen(visit, name, _KINDS)
    look = look_at(visit, tp, kind, at, has.encode())
    if kind == "tail" and not at:  # the page that follows must know from where on
        return visit.redirect(_link(tp, "tail", look.end, decoder, has))
    goes_back = kind in ("newest", "tail") and not has
    found = look.messages[::-1] if goes_back else look.messages
    if form := visit.request.args.get("form"):
        return downloaded(found, tp, form)
    rows = [row_of(message, tp, decoder) for message in found]
    left_out = 0
    if kind == "tail" and at:
        left_out = max(look.end - whole(at, "at") - len(rows), 0)
    return visit.render(
        "messages.html",
        at=at,
        decoder=decoder,
        decoders=list(DECODERS),
        deleted=kind == "offset" and bool(at) and whole(at, "offset") < look.start,
        has=has,
        kind=kind,
        kinds=list(_KINDS.items()),
        left_out=left_out,
        links=_links(look, tp, kind, decoder, has),
        look=look,
        name=name,
        partition=tp.partition,
        partitions=partitions,
        refresh=_TAIL_SECONDS if kind == "tail" and at else 0,
        files=_files(_link(tp, *_place(look, goes_back), decoder, has)),
        rows=rows,
    )


def chosen(visit: Visit, name: str, kinds: Collection[str]) -> tuple[str, str, str, str]:
    """From where to read, the decoder's name, the offset or time that belongs to the first, and the
    text to search. Raises ValueError."""
    arguments = visit.request.args
    kind = arguments.get("from", "newest")
    decoder = arguments.get("as", "offsets" if name == OFFSETS_TOPIC else "guessed")
    if decoder not in DECODERS or kind not in kinds:
        raise ValueError(f"{kind}, {decoder}: not among the choices of this page")
    return kind, decoder, arguments.get("at", "").strip(), arguments.get("has", "")


def partition_of(visit: Visit, name: str) -> tuple[TopicPartition, list[int]]:
    """Raises Forbidden and NotFound."""
    if not visit.site.config.show_messages:
        raise Forbidden("The contents of messages are not shown (console.messages).")
    partitions = list(topic_of(visit, name).partitions)
    number = whole(visit.request.args.get("partition", "0"), "partition")
    if number not in partitions:
        raise NotFound(f"Topic {name} has no partition {number}.")
    return TopicPartition(name, number), partitions


def look_at(visit: Visit, tp: TopicPartition, kind: str, at: str, needle: bytes) -> Look:
    """At most PAGE messages of a partition, by offset. ``kind``: from where on, one of the choices
    of the page; ``at``: the offset or time that belongs to it."""
    browser = visit.site.browser
    if kind == "newest" and not needle:
        return browser.backward(tp, whole(at, "offset") if at else None, PAGE)
    if kind == "tail":
        since = whole(at, "offset") if at else 0
        return browser.backward(tp, None, _TAIL if at else PAGE, since)
    if kind == "time":
        since_ms = time_ms(at, "at", visit.site.clock.millis())
        offset = reset.at(visit.site.groups.storage, [tp], since_ms)[tp]
    elif kind == "newest" and not at:
        # A search goes forward; from the newest it begins a page before the end.
        offset = browser.backward(tp, None, PAGE).first
    else:
        offset = whole(at or "0", "offset") if kind != "oldest" or at else 0
    return browser.forward(tp, offset, PAGE, needle)


def _place(look: Look, goes_back: bool) -> tuple[str, int]:
    """Where the same messages are read again, whatever has come since."""
    return ("newest", look.next) if goes_back else ("offset", look.first)


def _links(
    look: Look, tp: TopicPartition, kind: str, decoder: str, has: str
) -> list[tuple[str, str]]:
    def link(kind: str, at: int) -> str:
        return _link(tp, kind, at, decoder, has)

    links = []
    if look.first > look.start and not has:
        links.append((link("newest", look.first), "Older"))
    if look.next < look.end:
        links.append((link("offset", look.next), "Continue the search" if has else "Newer"))
    if kind != "tail":
        links.append((link("tail", look.end), "Follow new messages"))
    return links


def _link(tp: TopicPartition, kind: str, at: int, decoder: str, has: str) -> str:
    values = {"partition": tp.partition, "from": kind, "at": at, "as": decoder, "has": has}
    return f"/topics/{tp.topic}/messages?{urlencode(values)}"


def _files(link: str) -> list[tuple[str, str]]:
    """A page of messages as files."""
    return [(f"{link}&{urlencode({'form': form})}", form.upper()) for form in FORMS]


def row_of(message: AnyMessage, tp: TopicPartition, decoder: str) -> Row:
    """``decoder``: its name."""
    of_key, of_value = DECODERS[decoder]
    values = {"partition": tp.partition, "offset": message.offset}
    return Row(
        message.offset,
        message.timestamp,
        _STAMPED.get(message.timestamp_type, ""),
        NAMES.get(message.codec, str(message.codec)),
        shown(message.key, of_key),
        shown(message.value, of_value),
        [(name, shown(value)) for name, value in headers_of(message)],
        f"/topics/{tp.topic}/raw?{urlencode(values)}",
    )


def raw(visit: Visit, name: str) -> Response:
    """The exact bytes of a key or value, as a file; with ``part=record`` the message as JSON."""
    tp, _ = partition_of(visit, name)
    offset = whole(visit.request.args.get("offset", ""), "offset")
    message = visit.site.browser.one(tp, offset)
    part = visit.request.args.get("part", "value")
    if part == "record" and message is not None:
        return record(message, tp)
    data = None if message is None else message.key if part == "key" else message.value
    if data is None:
        raise NotFound(f"There is nothing at offset {offset}.")
    response = Response(data, mimetype="application/octet-stream")
    file = f"{name}-{tp.partition}-{offset}.{'key' if part == 'key' else 'value'}"
    response.headers["Content-Disposition"] = f'attachment; filename="{file}"'
    return response
