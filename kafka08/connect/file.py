"""Connectors that copy lines of a file to a topic, and messages to lines of a file.

Mirrors org.apache.kafka.connect.file. The source follows a file that is rotated or truncated, by
its inode; only whole lines are sent. Beside its file the sink stores the file's length at the last
commit of offsets, and truncates the file to it when it starts. So each message is written exactly
once, even if the worker is killed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kafka08.common import TopicPartition
from kafka08.connect.interface import (
    ConnectError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from kafka08.settings.settings import Settings, dotted
from kafka08.spark.files.offset_log import replace_file

logger = logging.getLogger("org.apache.kafka.connect.file.FileStreamSourceTask")

READ_BYTES = 1 << 20
# The writer may hold the old file open for a moment after a rename: wait this many empty polls.
PATIENCE = 4


class FileSourceConfig(Settings):
    file: str = dotted(doc="the file to follow; it may be created later")
    topic: str = dotted(doc="the topic to which lines are sent")
    batch_size: int = dotted(2000, low=1, doc="most lines of one poll")


class FileStreamSourceTask(SourceTask):
    """Offsets are {"position": bytes read, "inode": the file's inode}."""

    def start(self, properties: Mapping[str, str]) -> None:
        self._config = FileSourceConfig.from_properties(properties)
        self._path = Path(self._config.file)
        self._source = {"filename": self._config.file}
        self._file: BinaryIO | None = None
        self._inode = 0
        self._position = 0  # after the last whole line handed over
        self._rest = b""
        self._patience = PATIENCE

    def poll(self) -> Sequence[SourceRecord]:
        """Raises ConnectError for a file that cannot be read."""
        try:
            if self._file is None and not self._open():
                return []
            lines = self._lines()
        except OSError as error:
            raise ConnectError(f"file has value {self._config.file}: {error}") from error
        return [self._record(line) for line in lines]

    def _record(self, line: bytes) -> SourceRecord:
        self._position += len(line)
        text = line.removesuffix(b"\n").removesuffix(b"\r").decode(errors="surrogateescape")
        offset = {"position": self._position, "inode": self._inode}
        return SourceRecord(self._source, offset, self._config.topic, text)

    # --- which file

    def _open(self) -> bool:
        """Continue where the last run ended, even if that file has been renamed since."""
        place = self.context.offset(self._source)
        if self._inode or place is None:
            return self._use(self._path, 0)
        position, inode = int(place.get("position", 0)), place.get("inode")
        try:
            current = self._path.stat().st_ino
        except FileNotFoundError:
            current = None
        if inode is None or current == inode:
            return self._use(self._path, position)
        rotated = self._named_otherwise(inode)
        if rotated is not None:
            return self._use(rotated, position)
        if current is not None:
            logger.warning("%s is now a different file, and the old one was removed", self._path)
        return self._use(self._path, 0)

    def _named_otherwise(self, inode: int) -> Path | None:
        with os.scandir(self._path.parent) as found:
            for entry in found:
                if entry.is_file() and entry.inode() == inode:
                    return Path(entry.path)
        return None

    def _use(self, path: Path, position: int) -> bool:
        try:
            self._file = path.open("rb", buffering=0)
        except FileNotFoundError:
            return False
        status = os.fstat(self._file.fileno())
        if status.st_size < position:
            logger.warning("%s was truncated: reading it from its start", path)
            position = 0
        self._inode = status.st_ino
        self._position = position
        self._rest = b""
        self._patience = PATIENCE
        self._file.seek(position)
        return True

    # --- lines

    def _lines(self) -> list[bytes]:
        """The next whole lines, with their ends."""
        lines = self._cut()
        if lines:
            return lines
        assert self._file is not None
        data = self._file.read(READ_BYTES)
        if data:
            self._patience = PATIENCE
            self._rest += data
            return self._cut()
        self._at_end()
        return []

    def _cut(self) -> list[bytes]:
        *lines, self._rest = self._rest.split(b"\n", self._config.batch_size)
        return [line + b"\n" for line in lines]

    def _at_end(self) -> None:
        assert self._file is not None
        status = os.fstat(self._file.fileno())
        if status.st_size < self._position + len(self._rest):
            logger.warning("%s was truncated: reading it from its start", self._path)
            self._file.seek(0)
            self._position, self._rest = 0, b""
            return
        try:
            rotated = self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            rotated = False
        if not rotated:
            return
        self._patience -= 1
        if self._patience == 0:
            if self._rest:
                logger.warning(
                    "The last line of the rotated %s does not end with a newline", self._path
                )
            self._file.close()
            self._file = None
            self._use(self._path, 0)

    def stop(self) -> None:
        if self._file is not None:
            self._file.close()


class FileStreamSource(SourceConnector):
    settings = FileSourceConfig
    task_class = FileStreamSourceTask


class FileSinkConfig(Settings):
    file: str = dotted("", doc="the file to write; without it, standard output")


class FileStreamSinkTask(SinkTask):
    """``FILE.offsets`` holds the length of the file and the offsets written up to there."""

    def start(self, properties: Mapping[str, str]) -> None:
        """Raises ConnectError for a file that cannot be written."""
        config = FileSinkConfig.from_properties(properties)
        self._name = config.file or "standard output"
        self._offsets: dict[TopicPartition, int] = {}
        self._notes: Path | None = None
        self._file: BinaryIO = sys.stdout.buffer
        if not config.file:
            return
        path = Path(config.file)
        with self._named_errors():
            self._file = path.open("ab")
            if path.is_file():
                self._notes = path.with_name(f"{path.name}.offsets")
                self._recover()

    def _recover(self) -> None:
        """Truncate the file to its length at the last flush."""
        assert self._notes is not None
        size = 0
        if self._notes.exists():
            notes = json.loads(self._notes.read_bytes())
            size = int(notes["size"])
            self._offsets = {TopicPartition(t, int(p)): int(o) for t, p, o in notes["offsets"]}
        else:
            size = os.fstat(self._file.fileno()).st_size
            self._note(size)
        if os.fstat(self._file.fileno()).st_size > size:
            os.truncate(self._file.fileno(), size)

    def _note(self, size: int) -> None:
        assert self._notes is not None
        offsets = [[*tp, offset] for tp, offset in sorted(self._offsets.items())]
        replace_file(self._notes, json.dumps({"size": size, "offsets": offsets}).encode())

    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {tp: self._offsets[tp] for tp in partitions if tp in self._offsets}

    def put(self, records: Sequence[SinkRecord]) -> None:
        with self._named_errors():
            self._file.write(b"".join(_line(record.value) for record in records))

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._named_errors():
            self._file.flush()
            if self._notes is not None:
                os.fsync(self._file.fileno())
                self._offsets.update(offsets)
                self._note(os.fstat(self._file.fileno()).st_size)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConnectError(f"file has value {self._name}: {error}") from error

    def stop(self) -> None:
        if self._file is not sys.stdout.buffer:
            with suppress(OSError):  # on a full disk; flushed lines are safe
                self._file.close()


def _line(value: object) -> bytes:
    if isinstance(value, bytes):
        return value + b"\n"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode(errors="surrogateescape") + b"\n"


class FileStreamSink(SinkConnector):
    """One task whatever tasks.max says: only one task can append to a file."""

    settings = FileSinkConfig
    task_class = FileStreamSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self.properties)]
