"""Produces records by API v3: one, or one after the other in a body.

The body has a JSON object for each record; the answer has one for each, in that order, with the
place of the record or its error. The status of an answer about one record is that of the record.
Text that is not JSON ends the reading.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka08.common import validate_topic
from kafka08.errors import InvalidTopicError
from kafka08.rest.calls import Call, Fields, RestAnswer, Route, Row, allowed, parse_each
from kafka08.rest.config import RestConfig
from kafka08.rest.errors import RestError, bad_entity
from kafka08.rest.formats import encoded
from kafka08.rest.media import BINARY, JSON, PLAIN_JSON
from kafka08.rest.producing import Record, SharedProducer
from kafka08.rest.v3.admin import TOPIC, AdminV3, Links
from kafka08.security.users import OPERATOR

_FIELDS = ("partition_id", "headers", "key", "value", "timestamp")
_STORED = 200
_INTERNAL = 500
_FORMATS = {"BINARY": BINARY, "JSON": JSON}
_STRING = "STRING"
_TYPES = (*_FORMATS, _STRING)


class Asked(NamedTuple):
    """A record, and the types in which its key and value came; "" for null."""

    record: Record
    key_type: str
    value_type: str


class RecordsV3:
    """``topics``: the handlers that know the cluster's id."""

    def __init__(self, config: RestConfig, producer: SharedProducer, topics: AdminV3) -> None:
        self._only = config.produce_topics
        self._producer = producer
        self._route = topics.route

    def routes(self) -> list[Route]:
        rule = f"{TOPIC}/records"
        return [self._route("POST", rule, "records.produce", self._produce, OPERATOR)]

    def _produce(self, call: Call, links: Links) -> RestAnswer:
        topic: str = call.args["topic"]
        allowed(topic, self._only, "rest.produce.topics")
        try:
            validate_topic(topic)
        except InvalidTopicError as error:
            raise bad_entity(str(error)) from None
        asked = list(_asked(call.request.get_data()))
        if not asked:
            raise bad_entity("The request entity is required")
        written = iter(
            self._producer.write(topic, [each.record for each in asked if isinstance(each, Asked)])
        )
        place: Row = {"cluster_id": links.cluster_id, "topic_name": topic}
        rows = [
            _answer(each, next(written), place) if isinstance(each, Asked) else (each.body, each)
            for each in asked
        ]
        return _answers(rows)


_Answered = tuple[Row, "RestError | None"]


def _answers(rows: Sequence[_Answered]) -> RestAnswer:
    if len(rows) == 1:
        (row, error) = rows[0]
        return RestAnswer(row, error.status if error else _STORED)
    lines = [json.dumps(row, separators=(",", ":")) + "\n" for row, _ in rows]
    return RestAnswer("".join(lines).encode(), media=PLAIN_JSON)


def _asked(body: bytes) -> Iterator[Asked | RestError]:
    """The records of a body; an error in the place of one that cannot be written."""
    try:
        for value in parse_each(body):
            try:
                yield _read(Fields(value, _FIELDS))
            except RestError as error:
                yield error
    except RestError as error:
        yield error


def _read(fields: Fields) -> Asked:
    """Raises RestError 422."""
    key_type, key = _data(fields, "key")
    value_type, value = _data(fields, "value")
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if fields.value("headers") not in (None, []):
        headers = tuple(
            (each.needed_text("name"), encoded(BINARY, each.value("value"), each.path("value")))
            for each in fields.objects("headers", "name", "value")
        )
    partition, timestamp = fields.integer("partition_id"), _timestamp(fields)
    return Asked(Record(key, value, partition, timestamp, headers), key_type, value_type)


def _data(fields: Fields, name: str) -> tuple[str, bytes | None]:
    """The type of a key or value, and what is stored."""
    found = fields.value(name)
    if found is None:
        return "", None
    part = Fields(found, ("type", "data"), fields.path(name))
    kind, data = part.needed_text("type").upper(), part.value("data")
    if kind not in _TYPES:
        part.wrong("type", f"is not one of {', '.join(_TYPES)}: there is no registry of schemas")
    if data is None:
        return "", None
    if kind != _STRING:
        return kind, encoded(_FORMATS[kind], data, part.path("data"))
    if not isinstance(data, str):
        part.wrong("data", "is not a string")
    return kind, data.encode("utf-8", "surrogatepass")


def _timestamp(fields: Fields) -> int | None:
    """ms of the epoch, of a time such as 2026-11-29T09:30:00Z."""
    text = fields.text("timestamp")
    if text is None:
        return None
    try:
        found = datetime.datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
    except ValueError:
        fields.wrong("timestamp", "is not a time such as 2026-11-29T09:30:00Z")
    if found.tzinfo is None:
        fields.wrong("timestamp", "does not say its zone, as in 2026-11-29T09:30:00Z")
    return round(found.timestamp() * 1000)


def _answer(asked: Asked, row: Row, place: Row) -> _Answered:
    """``row``: what became of the record."""
    code, record = row["error_code"], asked.record
    if code is not None:
        assert isinstance(code, int)
        error = RestError(_INTERNAL, code, str(row["error"]))
        return error.body, error
    time = None
    if record.timestamp is not None:
        moment = datetime.datetime.fromtimestamp(record.timestamp / 1000, datetime.timezone.utc)
        time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    answer = {
        "error_code": _STORED,
        **place,
        "partition_id": row["partition"],
        "offset": row["offset"],
        "timestamp": time,
        "key": _size(asked.key_type, record.key),
        "value": _size(asked.value_type, record.value),
    }
    return answer, None


def _size(kind: str, data: bytes | None) -> Row | None:
    return None if data is None else {"type": kind, "size": len(data)}
