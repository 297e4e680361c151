"""The messages of a page as a file: JSON, JSON lines or CSV."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence

from werkzeug.wrappers import Response

from kafka08.common import TopicPartition
from kafka08.console.browser import headers_of
from kafka08.message.batch import NO_TIMESTAMP
from kafka08.message.entry import AnyMessage

_BASE64 = "_base64"
_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
# The first characters of what spreadsheets take for a formula.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def downloaded(messages: Sequence[AnyMessage], tp: TopicPartition, form: str) -> Response:
    """``form`` is one of FORMS. Raises ValueError for another one."""
    if form not in FORMS:
        raise ValueError(f"{form}: not one of {', '.join(FORMS)}")
    write, content_type = FORMS[form]
    response = Response(write([_fields(each, tp) for each in messages]), content_type=content_type)
    name = f"{tp.topic}-{tp.partition}.{form}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def record(message: AnyMessage, tp: TopicPartition) -> Response:
    """One message as an object of JSON, such as ``_json`` lists."""
    text = json.dumps(_fields(message, tp), ensure_ascii=False, indent=1)
    return Response(text, mimetype="application/json")


def _fields(message: AnyMessage, tp: TopicPartition) -> dict[str, object]:
    """Bytes that are not UTF-8 have a name that ends with ``_base64``."""
    found: dict[str, object] = {
        "topic": tp.topic,
        "partition": tp.partition,
        "offset": message.offset,
        "timestamp": None if message.timestamp == NO_TIMESTAMP else message.timestamp,
        **_cell("key", message.key),
        **_cell("value", message.value),
    }
    found["headers"] = [
        {"name": name, **_cell("value", value)} for name, value in headers_of(message)
    ]
    return found


def _cell(name: str, data: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {name + _BASE64: base64.b64encode(data or b"").decode()}


def _json(rows: Sequence[dict[str, object]]) -> str:
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


def _lines(rows: Sequence[dict[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _csv(rows: Sequence[dict[str, object]]) -> str:
    """Null and an empty text are the same here. A text that a spreadsheet would compute begins with
    an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_COLUMNS)
    for row in rows:
        headers = json.dumps(row["headers"], ensure_ascii=False) if row["headers"] else ""
        cells = [row.get(each, row.get(each + _BASE64)) for each in _COLUMNS[:-1]]
        writer.writerow([_harmless(each) for each in (*cells, headers)])
    return out.getvalue()


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


FORMS = {
    "json": (_json, "application/json"),
    "ndjson": (_lines, "application/x-ndjson"),
    "csv": (_csv, "text/csv; charset=utf-8"),
}
"""Form to what writes it, and its type."""
