"""Shared by the tools that work on data directories: the directories, segments, tables.

Does not know what the tools do with the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager

from kafka08.log.directory import LogDirectory
from kafka08.log.segments.names import LOG_SUFFIX
from kafka08.settings.broker import BrokerConfig
from tools.options import Arguments, OptionParser, ToolError

OPTIONS = """
--config <file>  The broker's server.properties.
--log-dirs <dir1,dir2>  Data directories, instead of those in the file.
"""
_SEGMENT = re.compile(rf"[0-9]{{20}}{re.escape(LOG_SUFFIX)}")
_NOT_ASKED = {"broker.id": "0", "zookeeper.connect": "none"}


def broker_config(parser: OptionParser, args: Arguments) -> BrokerConfig:
    """The settings the options name, the cleaner off. Raises UsageError, KafkaError, OSError."""
    if not args.has("config") and not args.has("log-dirs"):
        parser.usage_and_exit('Provide "[config]" or "[log-dirs]"')
    given = args.properties("config") if args.has("config") else _NOT_ASKED
    given = {**given, "log.cleaner.enable": "false"}
    if args.has("log-dirs"):
        given["log.dirs"] = args.value("log-dirs")
    config = BrokerConfig.from_properties(given)
    for path in config.log_dirs:
        if not os.path.isdir(path):
            raise ToolError(f"There is no directory {path}")
    return config


@contextmanager
def locked(paths: Sequence[str]) -> Generator[list[LogDirectory], None, None]:
    """The directories, kept from brokers. Raises KafkaError if one is in use."""
    with ExitStack() as stack:
        directories = []
        for path in paths:
            directory = LogDirectory(path)
            stack.callback(directory.unlock)
            directories.append(directory)
        yield directories


def check_stopped_cleanly(directories: Iterable[LogDirectory], other_way: str = "") -> None:
    """Raises ToolError for one whose last broker crashed: its logs await recovery."""
    for directory in directories:
        if directory.partitions() and not directory.was_shut_down_cleanly:
            raise ToolError(
                f"The broker of {directory.path} did not stop cleanly: start it once more and "
                f"stop it{other_way}"
            )


def segment_paths(directory: str) -> list[str]:
    """The log files of a partition's directory, oldest first."""
    names = filter(_SEGMENT.fullmatch, os.listdir(directory))
    return [os.path.join(directory, name) for name in sorted(names)]


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """The first column to the left, numbers to the right; as wide as need be."""
    table = [list(map(str, row)) for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
