"""The page of changes: the entries of the audit file, the newest first."""

from __future__ import annotations

from urllib.parse import urlencode

from werkzeug.wrappers import Response

from kafka08.console.forms import whole
from kafka08.console.site import Visit
from kafka08.console.timeline.audit_file import Piece, read_back


def audit_log(visit: Visit) -> Response:
    """``?has=``: words that are all in user, action or target. ``?before=``: an offset of the
    file. Where there are several clusters, those of this one: they may have one file."""
    arguments, path = visit.request.args, visit.site.config.audit_file
    has, before = arguments.get("has", "").strip(), arguments.get("before", "")
    end = whole(before, "before") if before else None
    piece, error = Piece([], 0, False, 0, 0), ""
    if path:
        try:
            piece = read_back(path, end, has.lower().split(), visit.site.name)
        except OSError as failure:
            error = str(failure.strerror)
    older = urlencode({"has": has, "before": piece.next}) if piece.next else ""
    return visit.answer(
        "audit.html",
        {
            "file": path or None,
            "error": error,
            "entries": [each.fields for each in piece.entries],
            "before": piece.next or None,
            "unreadable_lines": piece.unreadable,
        },
        has=has,
        is_newest=end is None,
        older=older,
        piece=piece,
    )
