"""Shared by the performance tools: options, times, rates, lines (kafka.tools.PerfConfig).

Knows no client.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kafka08.java_dates import date_format
from kafka08.progress import Progress
from tools.options import Arguments, OptionParser
from tools.shutdown import at_end

MEGABYTE = 1024 * 1024
CONSUMED_HEADER = "start.time, end.time, fetch.size, data.consumed.in.MB, MB.sec, "
CONSUMED_HEADER += "data.consumed.in.nMsg, nMsg.sec"
DETAILED_HEADER = "time, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
LONG_MAX = 2**63 - 1
DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"
CODECS = "NoCompressionCodec as 0, GZIPCompressionCodec as 1, SnappyCompressionCodec as 2, "
CODECS += "LZ4CompressionCodec as 3"

# Of the shared options, for a tool to add its own.
PERF_OPTIONS = f"""
--messages <Long: count>  How many messages to send or read. (default: {LONG_MAX})
--reporting-interval <Integer: size>  How many messages lie between two reports. (default: 5000)
--date-format <date format>  How times are shown, as a java.text.SimpleDateFormat.
    (default: {DATE_FORMAT})
--show-detailed-stats  Report at every reporting-interval.
--hide-header  Leave out the header line.
--message-size <Integer: size>  Bytes of a message. (default: 100)
--batch-size <Integer: size>  Messages of a batch. (default: 200)
--compression-codec <Integer: supported codec: {CODECS}>  Compress messages. (default: 0)
--help  Print usage.
"""


def decimal(value: float, digits: int = 4) -> str:
    """``%.4f`` as Java prints it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{digits}f}"


def rate(amount: float, seconds: float) -> float:
    """``amount`` a second, as Java divides."""
    if seconds:
        return amount / seconds
    return math.inf if amount else math.nan


def percentiles(values: Iterable[int], *shares: float) -> list[int]:
    """0 for no values."""
    ranked = sorted(values) or [0]
    return [ranked[int(share * len(ranked))] for share in shares]


def consumed(
    fetch_size: int, size: int, messages: int, seconds: float, *, before: tuple[int, int] = (0, 0)
) -> list[str]:
    """The columns of what was read. ``before``: bytes and messages that the rates leave out."""
    return [
        str(fetch_size),
        decimal(size / MEGABYTE),
        decimal(rate((size - before[0]) / MEGABYTE, seconds)),
        str(messages),
        decimal(rate(messages - before[1], seconds)),
    ]


class PerfOptions(NamedTuple):
    """The values of the shared options."""

    messages: int
    reporting_interval: int
    show_time: Callable[[float], str]
    detailed: bool
    hide_header: bool
    message_size: int
    batch_size: int
    codec: int


def perf_options(parser: OptionParser, args: Arguments) -> PerfOptions:
    """Ends in the usage for a date format that is none."""
    try:
        show_time = date_format(args.value("date-format"))
    except ValueError as error:
        parser.usage_and_exit(str(error))
    return PerfOptions(
        args.value("messages"),
        max(1, args.value("reporting-interval")),
        show_time,
        args.has("show-detailed-stats"),
        args.has("hide-header"),
        args.value("message-size"),
        args.value("batch-size"),
        args.value("compression-codec"),
    )


class Consumption:
    """Counts the messages that one thread reads, and prints lines of detailed reports, which begin
    with the time and ``columns``."""

    def __init__(self, options: PerfOptions, fetch_size: int, *columns: str) -> None:
        self.messages = 0
        self.bytes = 0
        self._options = options
        self._fetch_size = fetch_size
        self._columns = columns

    def report(self, last_messages: int, last_bytes: int, since: float) -> None:
        """Print the line of what was read after the last one, printed at ``since``."""
        now = time.time()
        before = (last_bytes, last_messages)
        read = consumed(self._fetch_size, self.bytes, self.messages, now - since, before=before)
        print(", ".join([self._options.show_time(now), *self._columns, *read]), flush=True)


def print_header(options: PerfOptions) -> None:
    """Of the lines about what was read, unless it is to be left out."""
    if not options.hide_header:
        print(DETAILED_HEADER if options.detailed else CONSUMED_HEADER, flush=True)


def print_total(
    readers: Sequence[Consumption],
    options: PerfOptions,
    fetch_size: int,
    times: tuple[float, float],
    seconds: float,
) -> None:
    """The line about what all have read, unless there were detailed reports. ``times``: when they
    began and ended; ``seconds``: what the rates divide by."""
    if not options.detailed:
        size, messages = sum(each.bytes for each in readers), sum(each.messages for each in readers)
        columns = [*map(options.show_time, times), *consumed(fetch_size, size, messages, seconds)]
        print(", ".join(columns), flush=True)


def follow(
    total: int | None, text: str, done: Callable[[], int], threads: list[threading.Thread]
) -> None:
    """Show a bar on a terminal, and nothing elsewhere, until the threads have ended."""
    # Lines would mix with those of the reports.
    known = total if total is None or total < LONG_MAX else None
    progress = Progress(known, text, unit="msg", lines=False)
    with at_end(progress.close):
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)
                progress.show(done())


def run_threads(
    works: list[Callable[[], None]], done: Callable[[], int], total: int | None, text: str
) -> tuple[float, float]:
    """Run each in a thread of its own; when it began and ended, in seconds since the epoch."""
    # Daemons: Ctrl-C must not wait for them.
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    begin = time.time()
    for thread in threads:
        thread.start()
    follow(total, text, done, threads)
    return begin, time.time()
