from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator

import pytest

from tools.options import OptionParser, UsageError
from tools.perf.perf_options import (
    DATE_FORMAT,
    MEGABYTE,
    PERF_OPTIONS,
    consumed,
    date_format,
    decimal,
    perf_options,
    rate,
    run_threads,
)

WHEN = 1360939513.0456  # 2013-02-15 14:45:13 UTC


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(os.environ, "TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        (DATE_FORMAT, "2013-02-15 14:45:13:045"),
        ("yyyy.MM.dd 'at' HH:mm:ss z", "2013.02.15 at 14:45:13 UTC"),
        ("EEE, MMM d, ''yy", "Fri, Feb 15, '13"),
        ("EEEE MMMM D", "Friday February 46"),
        ("h:mm a K k", "2:45 PM 2 14"),
        ("yyMMddHHmmssZ", "130215144513+0000"),
        ("S SSSSS", "45 00045"),
        ("'it''s' H", "it's 14"),
    ],
)
def test_simple_date_format(pattern: str, shown: str) -> None:
    assert date_format(pattern)(WHEN) == shown


def test_milliseconds_are_cut() -> None:
    assert date_format("s.SSS")(5.9999) == "5.999"


def test_unknown_letter() -> None:
    parser = OptionParser(None, PERF_OPTIONS)
    with pytest.raises(UsageError, match="Illegal pattern character 'b'"):
        perf_options(parser, parser.parse(["--date-format", "b"]))


def test_numbers_as_java_prints_them() -> None:
    assert decimal(1234.56789) == "1234.5679"
    assert decimal(rate(1, 0)) == "Infinity"
    assert decimal(rate(0, 0)) == "NaN"
    assert decimal(-math.inf) == "-Infinity"
    assert rate(10, 4) == 2.5


def test_columns_of_what_was_read() -> None:
    read = 3 * MEGABYTE
    assert consumed(7, read, 10, 2.0) == ["7", "3.0000", "1.5000", "10", "5.0000"]
    since = consumed(7, read, 10, 2.0, before=(MEGABYTE, 4))
    assert since == ["7", "3.0000", "1.0000", "10", "3.0000"]


def test_defaults() -> None:
    parser = OptionParser(None, PERF_OPTIONS)
    options = perf_options(parser, parser.parse([]))
    assert (options.messages, options.reporting_interval) == (2**63 - 1, 5000)
    assert (options.message_size, options.batch_size, options.codec) == (100, 200, 0)
    assert not options.detailed and not options.hide_header


def test_no_progress_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert not sys.stderr.isatty()
    begin, end = run_threads([lambda: None], lambda: 1, 1, "t")
    assert begin <= end
    assert capsys.readouterr().err == ""
