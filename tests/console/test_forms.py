"""kafka08.console.forms."""

from __future__ import annotations

import datetime

import pytest
from werkzeug.exceptions import Conflict

from kafka08.console.forms import FieldError, Problem, content, time_ms, topic_settings, whole
from kafka08.errors import AdminOperationError, KafkaError
from zk.errors import NodeExistsError, ZkConnectionError

NOW = datetime.datetime(2026, 11, 25, 21, 14, 5, tzinfo=datetime.timezone.utc)
NOW_MS = int(NOW.timestamp()) * 1000


def moment(*fields: int, ms: int = 0) -> int:
    found = datetime.datetime(*fields, tzinfo=datetime.timezone.utc)  # type: ignore[misc, arg-type]
    return int(found.timestamp()) * 1000 + ms


def test_numbers() -> None:
    assert whole(" 12 ", "offset") == 12
    for text in ("", "x", "1.5", "-1", str(1 << 63)):
        with pytest.raises(FieldError, match="offset") as found:
            whole(text, "offset")
        assert found.value.field == "offset"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-22 17:40", moment(2026, 11, 22, 17, 40)),
        ("2026-11-22 17:40:05 UTC", moment(2026, 11, 22, 17, 40, 5)),  # as pages show it
        ("2026-11-22T17:40:05.120", moment(2026, 11, 22, 17, 40, 5, ms=120)),
        ("2026-11-22T17:40:05.12Z", moment(2026, 11, 22, 17, 40, 5, ms=120)),
        ("2026-11-22 17:40 +01:00", moment(2026, 11, 22, 16, 40)),
        ("2026-11-22", moment(2026, 11, 22)),
        ("21:14", moment(2026, 11, 25, 21, 14)),
        ("21:15", moment(2026, 11, 24, 21, 15)),  # the last one
        ("-15m", NOW_MS - 15 * 60_000),
        ("2 h", NOW_MS - 7_200_000),
        (" -1d ", NOW_MS - 86_400_000),
    ],
)
def test_times_as_people_write_them(text: str, expected: int) -> None:
    assert time_ms(text, "at", NOW_MS) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "2026-13-01 10:00", "2026-02-30", "UTC", "1x"]
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(FieldError, match="not a time like 2026-11-25 21:14, 21:14 or -15m"):
        time_ms(text, "at", NOW_MS)


def test_settings_are_refused_in_plain_words() -> None:
    assert topic_settings("a\n".replace("a", " retention.ms = 5 "), "settings") == {
        "retention.ms": "5"
    }
    for text, told in (
        ("retention.ms", "'retention.ms' is not name=value"),
        ("retention.ms=1h", "retention.ms: '1h' is not a number"),
        ("nope=1", "topics have no setting named 'nope'"),
    ):
        with pytest.raises(FieldError) as found:
            topic_settings(text, "settings")
        assert (found.value.field, found.value.text) == ("settings", told)


def test_the_bytes_of_a_field() -> None:
    assert content({"key": "a\r\nb"}, "key") == b"a\nb"
    assert content({"key": "00 ff", "key_as": "hex"}, "key") == b"\x00\xff"
    with pytest.raises(FieldError, match="hexadecimal"):
        content({"key": "x", "key_as": "hex"}, "key")


def test_what_went_wrong() -> None:
    cause = AdminOperationError("outer")
    cause.__cause__ = KafkaError("inner")
    for error, problem in (
        (FieldError("at", "wrong"), Problem("wrong", "at")),
        (Conflict("changed"), Problem("changed", status=409)),
        (ZkConnectionError(), Problem("ZooKeeper does not answer", is_known=False, status=503)),
        (TimeoutError("late"), Problem("late", is_known=False, status=503)),
        (NodeExistsError("x", after_loss=True), Problem("x", is_known=False, status=503)),
        (cause, Problem("inner")),
    ):
        assert Problem.of(error) == problem
