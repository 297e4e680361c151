"""The file in which sources store their offsets.

One JSON document: ``["connector", source] -> offset``, both as JSON texts. It is replaced as a
whole, so that a kill leaves the old or the new one. The callers define the keys.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from kafka08.connect.interface import Place
from kafka08.errors import ConfigError
from kafka08.runtime import Lock
from kafka08.spark.files.offset_log import replace_file

OPTION = "offset.storage.file.filename"


def key_of(name: str, source: Place) -> str:
    return json.dumps([name, dict(source)], sort_keys=True)


class OffsetFile:
    """Safe for concurrent use by the tasks of one worker. A second worker cannot open the file.

    Raises ConfigError for a file that cannot be used.
    """

    def __init__(self, path: str, lock: Lock) -> None:
        self._path = Path(path)
        self._lock = lock
        self._offsets: dict[str, Place] = {}
        self._guard = -1
        try:
            self._open()
        except (OSError, ValueError) as error:
            self.close()
            raise ConfigError(
                f"{OPTION} has value {path}, a file that cannot be used: {error}"
            ) from None

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        guard = self._path.with_name(f"{self._path.name}.lock")
        _refuse_foreign(self._path, guard)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._guard = os.open(guard, flags, 0o644)
        try:
            fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError("another worker uses it") from None
        if self._path.exists():
            found = json.loads(self._path.read_bytes() or b"{}")
            if not isinstance(found, dict):
                raise ValueError("it does not hold offsets")
            self._offsets = found

    def read(self, name: str, source: Place) -> Place | None:
        return self._offsets.get(key_of(name, source))

    def write(self, name: str, offsets: Mapping[str, Place]) -> None:
        """Store offsets by the JSON of their sources: all of them, or none if it raises OSError."""
        with self._lock:
            updated = dict(self._offsets)
            for source, offset in offsets.items():
                updated[key_of(name, json.loads(source))] = dict(offset)
            replace_file(self._path, json.dumps(updated, indent=1, sort_keys=True).encode())
            self._offsets = updated

    def close(self) -> None:
        if self._guard >= 0:
            os.close(self._guard)
            self._guard = -1


def _refuse_foreign(*paths: Path) -> None:
    """Raise OSError for another user's file in a directory that everybody may write to."""
    for path in paths:
        if not path.parent.stat().st_mode & stat.S_IWOTH or not os.path.lexists(path):
            continue
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
            raise OSError(
                f"{path} is a link or belongs to another user, and everybody may write "
                f"to {path.parent}"
            )
