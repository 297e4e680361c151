"""Lines of syslog and of Python's logging for the example of log aggregation."""

from __future__ import annotations

import logging
import sys
from datetime import datetime, timezone

import pytest

from tests.docs.test_charts import example

log_lines = example("log_lines")
Line = log_lines.Line
NOW = datetime(2014, 7, 1, 12, tzinfo=timezone.utc)


def seconds(text: str) -> float:
    return datetime.fromisoformat(f"{text}+00:00").timestamp()


@pytest.mark.parametrize(
    ("datagram", "line"),
    [
        (  # examples of RFC 3164
            b"<34>Jun 30 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
            (
                seconds("2014-06-30T22:14:15"),
                "mymachine",
                "su",
                "crit",
                "'su root' failed for lonvick on /dev/pts/8",
            ),
        ),
        (
            b"<13>Feb  5 17:32:18 10.0.0.99 cron[77]: Use the BFG!\n",
            (seconds("2014-02-05T17:32:18"), "10.0.0.99", "cron", "notice", "Use the BFG!"),
        ),
        (  # of last year
            b"<6>Dec 31 23:59:59 h kernel: up",
            (seconds("2013-12-31T23:59:59"), "h", "kernel", "info", "up"),
        ),
        (  # examples of RFC 5424
            b"<34>1 2003-10-11T22:14:15.003Z my.example.com su - ID47 - \xef\xbb\xbf'su root'",
            (seconds("2003-10-11T22:14:15.003"), "my.example.com", "su", "crit", "'su root'"),
        ),
        (
            b"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time",
            (
                seconds("2003-08-24T12:14:15.000003"),
                "192.0.2.1",
                "myproc",
                "notice",
                "%% It's time",
            ),
        ),
        (
            b'<165>1 2003-10-11T22:14:15Z h app - ID47 [a@1 b="]\\"" c="x"][d@2] An event',
            (seconds("2003-10-11T22:14:15"), "h", "app", "notice", "An event"),
        ),
        (b"<0>1 - - app - - -", (NOW.timestamp(), "10.0.0.1", "app", "emerg", "")),
    ],
)
def test_lines_of_syslog(datagram: bytes, line: tuple[object, ...]) -> None:
    assert log_lines.of_syslog(datagram, "10.0.0.1", NOW) == line


@pytest.mark.parametrize(
    ("datagram", "level", "text"),
    [
        (b"<11>anything else", "err", "anything else"),
        (b"no priority", "notice", "no priority"),
        (b"<11>Feb 30 10:00:00 h app: x", "err", "Feb 30 10:00:00 h app: x"),
        (
            b"<11>1 2014-99-01T00:00:00Z h app - - - x",
            "err",
            "1 2014-99-01T00:00:00Z h app - - - x",
        ),
        (b"\xff", "notice", "\ufffd"),
        (b"", "notice", ""),
    ],
)
def test_a_datagram_of_no_known_form_is_kept(datagram: bytes, level: str, text: str) -> None:
    found = log_lines.of_syslog(datagram, "10.0.0.1", NOW)
    assert found == (NOW.timestamp(), "10.0.0.1", "-", level, text)


def test_records_of_pythons_logging() -> None:
    try:
        raise KeyError("sku")
    except KeyError:
        record = logging.LogRecord(
            "shop", logging.ERROR, __file__, 1, "no %s", ("stock",), sys.exc_info()
        )
    line = log_lines.decoded(log_lines.JsonFormatter("shop1").format(record).encode())
    assert line[:4] == (record.created, "shop1", "shop", "err")
    assert line.text.startswith("no stock\nTraceback")
    assert line.text.endswith("KeyError: 'sku'")


LINES = [
    Line(10, "web1", "nginx", "err", "POST /pay Timeout"),
    Line(20, "shop1", "orders", "warning", "payment timeout"),
    Line(30, "shop1", "orders", "info", "stored"),
]


@pytest.mark.parametrize(
    ("words", "since", "until", "times"),
    [
        ("timeout", 0, 99, [10, 20]),
        ("TIMEOUT pay err", 0, 99, [10]),
        ("shop1 orders", 0, 99, [20, 30]),
        ("", 0, 99, [10, 20, 30]),
        ("", 20, 30, [20]),
        ("timeout stored", 0, 99, []),
    ],
)
def test_a_search_by_words_and_time(
    words: str, since: float, until: float, times: list[float]
) -> None:
    assert [line.time for line in log_lines.matching(LINES, words, since, until)] == times
