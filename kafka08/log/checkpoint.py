"""Offsets per partition in a small text file, written atomically (kafka.server.OffsetCheckpoint).

Lines, each ending in a newline: ``0`` (version), the number of entries, then
``<topic> <partition> <offset>`` per entry. An empty file holds no entries.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Mapping

from kafka08.common import TopicPartition
from kafka08.log.directory import MAX_PARTITION, make_way, sync_directory

VERSION = 0
MAX_OFFSET = (1 << 63) - 1
_ENTRY = re.compile(r"(\S+)\s+(\d{1,10})\s+(\d{1,19})", re.ASCII)

logger = logging.getLogger("kafka.server.OffsetCheckpoint")


class OffsetCheckpoint:
    """The checkpoint file at ``path``, created empty if missing, or with the first entries if it
    is ``rare``. Safe on any thread."""

    def __init__(self, path: str, *, rare: bool = False) -> None:
        self.path = path
        self._temporary = path + ".tmp"
        self._lock = threading.Lock()
        for each in (self.path, self._temporary):
            make_way(each)
        if os.path.exists(self._temporary):
            os.unlink(self._temporary)
        if not rare:
            with open(path, "a"):
                pass
        self._known: Mapping[TopicPartition, int] | None = None

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the content; it is on disk on return. Raises OSError."""
        lines = [str(VERSION), str(len(offsets))]
        lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
        with self._lock:
            with open(self._temporary, "w", encoding="utf-8", newline="\n") as file:
                file.write("\n".join(lines) + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._temporary, self.path)
            # Otherwise a power cut could restore old offsets, which may lie above a truncation.
            sync_directory(os.path.dirname(self.path) or ".")
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
