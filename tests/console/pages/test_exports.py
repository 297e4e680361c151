"""kafka08.console.pages.exports."""

from __future__ import annotations

import csv
import io
import json

import pytest

from kafka08.common import TopicPartition
from kafka08.console.pages.exports import FORMS, downloaded
from kafka08.message.entry import APPEND_TIME, AnyMessage, Message, TimedMessage

TP = TopicPartition("t", 3)
PLAIN = Message(5, None, b"=1+1", 0, 0, 0, 0)
TIMED = TimedMessage(
    6,
    "schlüssel".encode(),
    b"\xff\x00",
    codec=0,
    crc=0,
    magic=2,
    attributes=0,
    timestamp=1700,
    timestamp_type=APPEND_TIME,
    headers=(("trace", b"a,b"), ("raw", b"\xfe"), ("none", None)),
)


def text_of(form: str, *messages: AnyMessage) -> str:
    answer = downloaded(messages, TP, form)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="t-3.{form}"'
    return answer.get_data(as_text=True)


def test_every_field_is_there() -> None:
    plain, timed = json.loads(text_of("json", PLAIN, TIMED))
    place = {"topic": "t", "partition": 3}
    assert plain == {
        **place, "offset": 5, "timestamp": None, "key": None, "value": "=1+1", "headers": []
    }  # fmt: skip
    assert timed == {
        **place,
        "offset": 6,
        "timestamp": 1700,
        "key": "schlüssel",
        "value_base64": "/wA=",
        "headers": [
            {"name": "trace", "value": "a,b"},
            {"name": "raw", "value_base64": "/g=="},
            {"name": "none", "value": None},
        ],
    }


def test_lines_are_the_same() -> None:
    lines = text_of("ndjson", PLAIN, TIMED).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(text_of("json", PLAIN, TIMED))


def test_a_table_that_a_spreadsheet_does_not_compute() -> None:
    head, plain, timed = csv.reader(io.StringIO(text_of("csv", PLAIN, TIMED)))
    assert head == ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    assert plain == ["t", "3", "5", "", "", "'=1+1", ""]
    assert timed[:6] == ["t", "3", "6", "1700", "schlüssel", "/wA="]
    assert json.loads(timed[6])[0] == {"name": "trace", "value": "a,b"}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_a_file_as_well(form: str) -> None:
    text_of(form)


def test_an_unknown_form() -> None:
    with pytest.raises(ValueError, match="not one of json, ndjson, csv"):
        downloaded([], TP, "exe")
