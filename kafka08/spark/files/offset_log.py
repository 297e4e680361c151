"""The ranges of each batch, written down before the batch runs.

A checkpoint is written after its batch. A driver that dies before that would plan the batch again
with other ends. One small file per batch, named by its time, lies beside the checkpoint. ``Files``
stores the files. Does not use Spark.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kafka08.errors import KafkaError
from kafka08.spark.planner import Range

logger = logging.getLogger("kafka08.spark.offset_log")

DIRECTORY = "kafka08-offsets"
KEPT = 1000
VERSION = 1


class Files(Protocol):
    """A directory. ``write`` is durable and all or nothing when it returns; OSError otherwise."""

    def names(self) -> list[str]: ...
    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


def replace_file(path: Path, data: bytes) -> None:
    """Replace the file atomically; it is durable on return. Raises OSError."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.unlink(missing_ok=True)  # never opened for writing: it may be another user's link
    with temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class LocalFiles:
    """A directory of a local file system, made on first use."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)

    def names(self) -> list[str]:
        try:
            return os.listdir(self._directory)
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        replace_file(self._directory / name, data)

    def remove(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)


class OffsetLog:
    """Batch time in ms -> ranges, the last ``kept`` batches."""

    def __init__(self, files: Files, kept: int = KEPT) -> None:
        self._files = files
        self._kept = kept
        self._batches: list[int] | None = None

    def write(self, batch_ms: int, ranges: Sequence[Range]) -> None:
        """Durable when it returns. Raises OSError, and then the batch is not to be run."""
        batches = self._known()
        document = {"version": VERSION, "batch": batch_ms, "ranges": [list(r) for r in ranges]}
        self._files.write(str(batch_ms), json.dumps(document).encode())
        if batch_ms not in batches:
            batches.append(batch_ms)
        while len(batches) > self._kept:
            self._remove(batches.pop(0))

    def _remove(self, batch_ms: int) -> None:
        try:
            self._files.remove(str(batch_ms))
        except OSError as error:
            logger.warning("An old file of the offset log stays: %s", error)

    def _known(self) -> list[int]:
        if self._batches is None:
            self._batches = sorted(int(n) for n in self._files.names() if n.isdecimal())
        return self._batches

    def reaches(self, batch_ms: int) -> bool:
        """Whether there are batches before this one."""
        return any(each < batch_ms for each in self._known()[:1])

    def read(self, batch_ms: int) -> list[Range] | None:
        """The ranges; None if none were logged. Raises KafkaError for a malformed file."""
        data = self._files.read(str(batch_ms))
        if data is None:
            return None
        try:
            document = json.loads(data)
            if document["version"] != VERSION:
                raise ValueError(f"version {document['version']}")
            return [Range(str(t), int(p), int(s), int(e)) for t, p, s, e in document["ranges"]]
        except (ValueError, KeyError, TypeError) as error:
            raise KafkaError(
                f"The offset log of batch {batch_ms} cannot be read: {error}"
            ) from None
