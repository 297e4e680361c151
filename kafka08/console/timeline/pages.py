"""The page of events: what happened to the cluster, the newest first."""

from __future__ import annotations

from urllib.parse import urlencode

from werkzeug.wrappers import Response

from kafka08.console import shown
from kafka08.console.forms import FieldError, whole
from kafka08.console.site import Visit
from kafka08.console.timeline.happenings import KINDS, Happening
from kafka08.console.timeline.journal import MOST

PAGE = 200


def events(visit: Visit) -> Response:
    """``?kind=``, as often as wanted; ``?name=``: a part of a text or a name; ``?from=`` and
    ``?to=``: ms since the epoch, both included; ``?skip=``: as many newer ones are left out."""
    arguments, now_ms = visit.request.args, visit.site.clock.millis()
    kinds, name = arguments.getlist("kind"), arguments.get("name", "").strip()
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise FieldError("kind", f"{unknown[0]!r} is not one of {', '.join(KINDS)}")
    since, until, skip = (_number(visit, field) for field in ("from", "to", "skip"))
    found = [
        each
        for each in visit.site.observer.timeline.events(now_ms)
        if (not kinds or each.kind in kinds)
        and (not name or each.has(name))
        and (since is None or each.time_ms >= since)
        and (until is None or each.time_ms <= until)
    ]
    rows = found[skip or 0 :][:PAGE]
    next_one = (skip or 0) + len(rows)
    older = urlencode(
        [
            *(("kind", kind) for kind in kinds),
            *((field, arguments[field]) for field in ("name", "from", "to") if field in arguments),
            ("skip", next_one),
        ]
    )
    more = len(found) - next_one if rows else 0
    return visit.answer(
        "events.html",
        {"events": [_data(each) for each in rows], "more_events": more},
        is_filtered=bool(kinds or name or since is not None or until is not None),
        kinds=[(kind, said, kind in kinds) for kind, said in KINDS.items()],
        most=MOST,
        name=name,
        older=older if more else "",
        refresh=0 if skip or until is not None else visit.refresh,
        rows=rows,
        span=(since, until),
    )


def _number(visit: Visit, field: str) -> int | None:
    """Raises FieldError."""
    text = visit.request.args.get(field, "")
    return whole(text, field) if text else None


def _data(event: Happening) -> dict[str, object]:
    return {
        "time": shown.iso(event.time_ms),
        "since": shown.iso(event.since_ms),
        "kind": event.kind,
        "text": event.text,
        "names": event.names,
        "more_names": event.more,
    }
