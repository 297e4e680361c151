from __future__ import annotations

import math
import sys

import pytest

from tools.options import OptionParser, UsageError
from tools.perf.perf_options import (
    MEGABYTE,
    PERF_OPTIONS,
    consumed,
    decimal,
    perf_options,
    rate,
    run_threads,
)


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
