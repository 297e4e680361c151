from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from kafka08.java_dates import ISO_8601, date_format, iso_millis

WHEN = 1360939513.0456  # 2013-02-15 14:45:13 UTC


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(os.environ, "TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (ISO_8601, "2013-02-15 14:45:13,045"),
        ("yyyy-MM-dd HH:mm:ss:SSS", "2013-02-15 14:45:13:045"),
        ("yyyy.MM.dd 'at' HH:mm:ss z", "2013.02.15 at 14:45:13 UTC"),
        ("EEE, MMM d, ''yy", "Fri, Feb 15, '13"),
        ("EEEE MMMM D", "Friday February 46"),
        ("h:mm a K k", "2:45 PM 2 14"),
        ("yyMMddHHmmssZ", "130215144513+0000"),
        ("S SSSSS", "45 00045"),
        ("'it''s' H", "it's 14"),
        ("'.'yyyy-MM-dd-HH", ".2013-02-15-14"),
        ("ss%d %H", "13%15 %14"),
    ],
)
def test_simple_date_format(pattern: str, text: str) -> None:
    assert date_format(pattern)(WHEN) == text


def test_milliseconds_are_cut() -> None:
    assert date_format("s.SSS")(5.9999) == "5.999"


@pytest.mark.parametrize("letter", "bYw")
def test_a_letter_without_a_meaning(letter: str) -> None:
    with pytest.raises(ValueError, match=f"Illegal pattern character '{letter}'"):
        date_format(f"yyyy{letter}")


def test_dates_rise_with_time() -> None:
    assert iso_millis("2013-02-15 14:45:13,045 and more") == (
        (iso_millis("2013-02-15 14:45:13,000") or 0) + 45
    )
    assert iso_millis("2013-13-01 00:00:00,000") == iso_millis("2014-01-01 00:00:00,000")
    assert iso_millis("yesterday") is None
