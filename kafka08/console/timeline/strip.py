"""The events below a graph: a strip of marks over the same time as SVG, and the same as text.

A mark is a link to the page of its events, so that the strip works with a keyboard and without
scripts. Events that are close together share one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from markupsafe import Markup

from kafka08.console.history import Point
from kafka08.console.shown import graph, moment, number
from kafka08.console.timeline.happenings import EVERYWHERE, GAP, Happening

MARKS = 80
_WIDTH, _HEIGHT = 640, 24
_LISTED = 20


def graph_with_events(
    points: Sequence[Point], label: str, events: Sequence[Happening], root: str = ""
) -> Markup:
    """``events``: the newest first. Those outside of the graph's time are left out. ``root``: where
    the pages of the cluster are mounted."""
    gaps = [(each.since_ms, each.time_ms) for each in events if each.kind == GAP]
    drawn = graph(points, label, gaps)
    if len(points) < 2:
        return drawn
    first, last = points[0].time_ms, max(points[-1].time_ms, points[0].time_ms + 1)
    within = [each for each in events if each.time_ms >= first and _start(each) <= last]
    return drawn + _strip(within, first, last, root) + _text(within, first, last, root)


def concerning(*names: str) -> Callable[[Happening], bool]:
    """Whether an event is about one of these, or about all. One with more names than it keeps may
    be."""
    wanted = frozenset(names)
    return lambda each: (
        each.kind in EVERYWHERE or each.more > 0 or not wanted.isdisjoint(each.names)
    )


def _start(event: Happening) -> int:
    """A gap is a span, and all else happened when it was seen."""
    return event.since_ms if event.kind == GAP else event.time_ms


def _strip(events: Sequence[Happening], first: int, last: int, root: str) -> Markup:
    span = last - first
    marks: dict[int, list[Happening]] = defaultdict(list)
    parts = []
    for each in events:
        if each.kind == GAP:
            parts.append(_gap(each, first, last, root))
        else:
            marks[min((each.time_ms - first) * MARKS // span, MARKS - 1)].append(each)
    step = _WIDTH // MARKS
    parts += [_mark(found, place * step, step, root) for place, found in sorted(marks.items())]
    return Markup(
        '<figure class="strip"><svg viewBox="0 0 {} {}" role="group" aria-label="Events"'
        ' preserveAspectRatio="none">{}</svg></figure>'
    ).format(_WIDTH, _HEIGHT, Markup("").join(parts))


def _gap(event: Happening, first: int, last: int, root: str) -> Markup:
    begin, end = max(event.since_ms, first), min(event.time_ms, last)
    x = (begin - first) / (last - first) * _WIDTH
    width = (end - begin) / (last - first) * _WIDTH
    rect = Markup('<rect class="gap" x="{}" y="0" width="{}" height="{}"/>').format(
        f"{x:.1f}", f"{max(width, 1.0):.1f}", _HEIGHT
    )
    return _linked([event], rect, root)


def _mark(events: Sequence[Happening], x: int, width: int, root: str) -> Markup:
    kind = events[0].kind if len({each.kind for each in events}) == 1 else "several"
    rect = Markup('<rect class="{}" x="{}" y="2" width="{}" height="{}"/>').format(
        kind, x + 1, width - 2, _HEIGHT - 4
    )
    return _linked(events, rect, root)


def _linked(events: Sequence[Happening], drawn: Markup, root: str) -> Markup:
    """``events``: the newest first."""
    since, until = min(each.time_ms for each in events), events[0].time_ms
    said = f"{moment(until)}: {events[0].text}"
    if len(events) > 1:
        said = f"{number(len(events))} events until {said}"
    return Markup('<a href="{}" aria-label="{}"><title>{}</title>{}</a>').format(
        root + _link(since, until), said, said, drawn
    )


def _link(since_ms: int, until_ms: int) -> str:
    return f"/events?{urlencode({'from': since_ms, 'to': until_ms})}"


def _text(events: Sequence[Happening], first: int, last: int, root: str) -> Markup:
    if not events:
        return Markup('<p class="quiet">Nothing happened in this time that the console saw.</p>')
    lines = Markup("").join(
        Markup("<li>{} {}</li>").format(moment(each.time_ms), each.text)
        for each in events[:_LISTED]
    )
    count = "1 event" if len(events) == 1 else f"{number(len(events))} events"
    return Markup(
        "<details><summary>{} in this time</summary><ul>{}</ul>"
        '<p><a href="{}">All events of this time</a></p></details>'
    ).format(count, lines, root + _link(first, last))
