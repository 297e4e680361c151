"""StateChangeLogMerger: the state change logs of several brokers as one, by time.

Mirrors kafka.tools.StateChangeLogMerger: of each line that has a date and names a partition, the
first of either counts. Lines of one file keep their order; of lines with the same date either
may come first. Reads one line per file at a time, so files may be of any size.
"""

from __future__ import annotations

import heapq
import os
import re
import sys
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from kafka08.errors import KafkaError
from kafka08.java_dates import ISO_8601, iso_millis
from kafka08.settings.settings import INT
from tools.options import Arguments, OptionParser, UsageError

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}")
_PARTITION = re.compile(r"\[([a-zA-Z0-9._-]+),( )*([0-9]+)\]")


class DateError(KafkaError):
    java_class = "java.text.ParseException"


class NoDirectoryError(KafkaError):
    java_class = "java.lang.NullPointerException"


class LineFilter(NamedTuple):
    """Which lines: ``topic`` None and ``partitions`` empty mean any; times in ms, inclusive."""

    topic: str | None
    partitions: frozenset[int]
    start: int
    end: int


PARSER = OptionParser(
    "Merge the state change logs of several brokers into one history, ordered by time.",
    f"""
--logs <file1,file2,...>  The state change logs to merge.
--logs-regex <for example: /tmp/state-change.log*>  A regular expression of the names of the logs to
    merge, after their directory.
--topic <topic>  Merge only the changes of this topic.
--partitions <0,1,2,...>  Merge only the changes of these partitions.
--start-time <start timestamp in the format {ISO_8601}>  Leave out what is older.
    (default: 0000-00-00 00:00:00,000)
--end-time <end timestamp in the format {ISO_8601}>  Leave out what is newer. (default: 9999-12-31
    23:59:59,999)
""",
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    if args.has("logs") == args.has("logs-regex"):
        PARSER.usage_and_exit(
            'Provide arguments to exactly one of the two options "[logs]" or "[logs-regex]"'
        )
    if args.has("partitions") and not args.has("topic"):
        PARSER.usage_and_exit(
            'The option "[topic]" needs to be provided an argument when specifying partition ids'
        )
    files = _files(args)
    selected = LineFilter(
        args.value("topic"),
        _partitions(args),
        millis(args.value("start-time").replace('"', " ").strip()),
        millis(args.value("end-time").replace('"', " ").strip()),
    )
    output = sys.stdout.buffer
    for line in merge(files, selected):
        output.write(line.encode("utf-8", "surrogateescape") + b"\n")
    output.flush()
    return 0


def _files(args: Arguments) -> list[str]:
    if args.has("logs"):
        return str(args.value("logs")).split(",")
    directory, slash, name = args.value("logs-regex").rpartition("/")
    if not slash:
        directory = "."
    pattern = re.compile(name)
    try:
        names = os.listdir(directory or "/")
    except OSError as error:
        raise NoDirectoryError(f"{directory} ({error.strerror})") from None
    return [f"{directory}/{each}" for each in sorted(names) if pattern.search(each)]


def _partitions(args: Arguments) -> frozenset[int]:
    if not args.has("partitions"):
        return frozenset()
    numbers = [INT.parse(text) for text in args.value("partitions").split(",")]
    repeated = sorted({str(number) for number in numbers if numbers.count(number) > 1})
    if repeated:
        raise UsageError(
            f"The list of partitions contains repeated entries: {','.join(repeated)}\n"
        )
    return frozenset(numbers)


def millis(text: str) -> int:
    """The date that ``text`` begins with, in ms. Raises DateError."""
    date = iso_millis(text)
    if date is None:
        raise DateError(f'Unparseable date: "{text}"')
    return date


def merge(files: Sequence[str], selected: LineFilter) -> Iterator[str]:
    """The selected lines of all files, by date. Raises OSError."""
    dated = heapq.merge(*(_lines(path, selected) for path in files), key=itemgetter(0))
    yield from map(itemgetter(1), dated)


def _lines(path: str, selected: LineFilter) -> Iterator[tuple[str, str]]:
    """Each with its date."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            date = _DATE.search(line)
            if date is not None and _is_selected(line, date[0], selected):
                yield date[0], line.removesuffix("\n")


def _is_selected(line: str, date: str, selected: LineFilter) -> bool:
    if not selected.start <= millis(date) <= selected.end:
        return False
    named = _PARTITION.search(line)
    if named is None or selected.topic not in (None, named[1]):
        return False
    return not selected.partitions or int(named[3]) in selected.partitions
