"""The runs of a bulk load, as directories: ``ROOT/run=00000001`` with its data and its history.

A run is made below ``ROOT/_staging``, where readers do not look, and renamed when it is whole: the
data, the offsets it covers and its counts become visible in one step, or not at all. Of two runs
with one number, the second rename fails. The file system is whichever Hadoop knows by the URI.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark import SparkContext

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.spark.planner import Range

VERSION = 1
HISTORY = "_history.json"
STAGING = "_staging"
LOADED = "_loaded"
_RUN = re.compile(r"run=(\d+)")
_STAGED = re.compile(r"(\d+)-.*")


class RunConflictError(KafkaError):
    """Another run was faster. This run is not visible."""


class Run(NamedTuple):
    """``ranges`` cover every partition ever read; of those without news, start is end.

    ``counts``: messages by "topic-partition"; ``files``: names below the run's directory.
    """

    number: int
    time_ms: int
    format: str
    ranges: tuple[Range, ...]
    counts: Mapping[str, int]
    files: tuple[str, ...]

    @property
    def ends(self) -> dict[TopicPartition, int]:
        return {each.topic_partition: each.end for each in self.ranges}

    @property
    def directory(self) -> str:
        return f"run={self.number:08d}"


def encode(run: Run) -> bytes:
    document = {"version": VERSION, **run._asdict(), "ranges": [list(r) for r in run.ranges]}
    return json.dumps(document, indent=1).encode()


def decode(data: bytes, where: str) -> Run:
    """Raises KafkaError for a malformed history."""
    try:
        found = json.loads(data)
        if found.pop("version") != VERSION:
            raise ValueError("another version")
        ranges = tuple(Range(str(t), int(p), int(s), int(e)) for t, p, s, e in found["ranges"])
        return Run(**{**found, "ranges": ranges, "files": tuple(found["files"])})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KafkaError(f"The history {where} cannot be read: {error!r}") from None


class RunHistory:
    """The runs below ``root``. Raises what Hadoop does (Py4JJavaError) for a root it cannot use."""

    def __init__(self, sc: SparkContext, root: str) -> None:
        jvm: Any = sc._jvm
        self._make_path = jvm.org.apache.hadoop.fs.Path
        conf = sc._jsc.hadoopConfiguration()
        given = self._make_path(root)
        self._files = given.getFileSystem(conf)
        # Absolute, so that staging and root are of one file system in FileContext's eyes too.
        self.root = str(self._files.makeQualified(given).toString())
        self._context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._make_path(self.root).toUri(), conf
        )
        gateway: Any = sc._gateway
        options = getattr(jvm.org.apache.hadoop.fs, "Options$Rename")
        self._no_options = gateway.new_array(options, 0)
        self._read_all = jvm.org.apache.commons.io.IOUtils.toByteArray

    def path(self, *names: str) -> str:
        return "/".join([self.root, *names])

    def _names(self, *below: str) -> list[str]:
        path = self._make_path(self.path(*below))
        if not self._files.exists(path):
            return []
        return [each.getPath().getName() for each in self._files.listStatus(path)]

    # --- runs

    def numbers(self) -> list[int]:
        found = [_RUN.fullmatch(name) for name in self._names()]
        return sorted(int(match[1]) for match in found if match)

    def run(self, number: int) -> Run:
        """Raises KafkaError for a run without a history that makes sense."""
        path = self.path(f"run={number:08d}", HISTORY)
        stream = self._files.open(self._make_path(path))
        try:
            return decode(bytes(self._read_all(stream)), path)
        finally:
            stream.close()

    def last(self) -> Run | None:
        numbers = self.numbers()
        return self.run(numbers[-1]) if numbers else None

    # --- making one

    def stage(self, number: int) -> str:
        """The directory to make run ``number`` in. Leftovers of earlier runs are removed."""
        for name in self._names(STAGING):
            match = _STAGED.fullmatch(name)
            if match is None or int(match[1]) < number:
                self._files.delete(self._make_path(self.path(STAGING, name)), True)
        return self.path(STAGING, f"{number}-{uuid.uuid4().hex[:8]}")

    def staged_files(self, directory: str) -> list[str]:
        """The data files below a staging directory, by their names relative to it."""
        found = []
        start = len(self._files.makeQualified(self._make_path(directory)).toString()) + 1
        listing = self._files.listFiles(self._make_path(directory), True)
        while listing.hasNext():
            name = listing.next().getPath().toString()[start:]
            if not name.rpartition("/")[2].startswith(("_", ".")):
                found.append(str(name))
        return sorted(found)

    def commit(self, directory: str, run: Run) -> None:
        """Make a staged run visible. Raises RunConflictError when there is one of its number."""
        self._write(f"{directory}/{HISTORY}", encode(run))
        target = self._make_path(self.path(run.directory))
        try:
            self._context.rename(self._make_path(directory), target, self._no_options)
        except Exception as error:
            if run.number in self.numbers():
                self.drop(directory)
                raise RunConflictError(
                    f"Another bulk load has made run {run.number} of {self.root} meanwhile"
                ) from None
            raise KafkaError(f"{directory} was not renamed to {run.directory}: {error}") from error

    def drop(self, directory: str) -> None:
        self._files.delete(self._make_path(directory), True)

    def _write(self, path: str, data: bytes) -> None:
        stream = self._files.create(self._make_path(path), True)
        try:
            stream.write(data)
            stream.hsync()
        finally:
            stream.close()

    # --- which runs were loaded back, and where to

    def loaded(self, name: str) -> set[int]:
        return {int(each) for each in self._names(LOADED, name) if each.isdecimal()}

    def mark_loaded(self, name: str, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._write(self.path(LOADED, name, str(number)), b"")
