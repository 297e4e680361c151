"""Offsets per partition in a small text file, written atomically (kafka.server.OffsetCheckpoint).

Lines, each ending in a newline: ``0`` (version), the number of entries, then
``<topic> <partition> <offset>`` per entry. An empty file holds no entries. Other files of numbers
have the same form (``write_lines``, ``read_lines``).
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Mapping, Sequence

from kafka08.common import TopicPartition
from kafka08.log.directory import (
    MAX_PARTITION,
    make_way,
    replace_file,
    sync_directory,
    unlink_if_there,
)

VERSION = 0
MAX_OFFSET = (1 << 63) - 1
_ENTRY = re.compile(r"(\S+)\s+(\d{1,10})\s+(\d{1,19})", re.ASCII)

logger = logging.getLogger("kafka.server.OffsetCheckpoint")


class OffsetCheckpoint:
    """The checkpoint file at ``path``, which comes with the first ``write``: a broker starts
    without room for a new file. Safe on any thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        for each in (path, path + ".tmp"):
            make_way(each)
        unlink_if_there(path + ".tmp")
        self._known: Mapping[TopicPartition, int] | None = None

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the content; it is on disk on return. Raises OSError."""
        lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
        with self._lock:
            write_lines(self.path, lines)
            self._known = dict(offsets)

    def update(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write, unless the file is known to hold just these offsets; they are on disk on return.
        Raises OSError."""
        if self._known is None:
            self._known = self.read()
            # A process that was killed may have left a new file whose name is not yet on disk.
            sync_directory(os.path.dirname(self.path) or ".")
        if offsets != self._known:
            self.write(offsets)

    def clear(self) -> None:
        """Remove all entries, durably; this takes no space. Raises OSError."""
        if os.path.exists(self.path):
            with self._lock, open(self.path, "w") as file:
                os.fsync(file.fileno())
                self._known = {}

    def read(self) -> dict[TopicPartition, int]:
        """The entries. A malformed file counts as empty, with a warning (0.8.2.2 refuses to start):
        the offsets are lower bounds, and 0 is always a valid one."""
        with self._lock:
            try:
                with open(self.path, encoding="utf-8") as file:
                    return _parse(file.read())
            except FileNotFoundError:
                return {}
            except ValueError as error:
                logger.warning("Ignoring checkpoint file %s: %s", self.path, error)
                return {}


def write_lines(path: str, entries: Sequence[str]) -> None:
    """Replace the content of the file by these entries; it is on disk on return, so that a power
    cut does not bring the old ones back. Raises OSError."""
    replace_file(path, "\n".join([str(VERSION), str(len(entries)), *entries]) + "\n")


def read_lines(path: str) -> list[str]:
    """The entries that ``write_lines`` has written. Raises OSError, and ValueError if the file is
    not whole."""
    with open(path, encoding="ascii") as file:
        lines = file.read().splitlines()
    if lines[:1] != [str(VERSION)] or len(lines) < 2 or len(lines) - 2 != int(lines[1]):
        raise ValueError("it is not whole")
    return lines[2:]


def _parse(text: str) -> dict[TopicPartition, int]:
    """Raises ValueError for text that ``write`` does not produce."""
    lines = text.splitlines()
    if not lines:
        return {}
    if int(lines[0]) != VERSION:
        raise ValueError(f"Unrecognized version: {lines[0]}")
    expected = int(lines[1]) if len(lines) > 1 else 0
    if len(lines[2:]) != expected:
        raise ValueError(f"Expected {expected} entries but found {len(lines[2:])}")
    offsets: dict[TopicPartition, int] = {}
    for line in lines[2:]:
        entry = _ENTRY.fullmatch(line.strip())
        if entry is None:
            raise ValueError(f"Malformed line: {line!r}")
        key, offset = TopicPartition(entry[1], int(entry[2])), int(entry[3])
        if key.partition > MAX_PARTITION or offset > MAX_OFFSET:
            raise ValueError(f"A number is too large: {line!r}")
        if key in offsets:
            raise ValueError(f"A second line for {key}: {line!r}")
        offsets[key] = offset
    return offsets
