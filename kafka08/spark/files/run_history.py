"""The runs of a bulk load, as directories: ``ROOT/run=00000001`` with its data and its history.

A run is made below ``ROOT/_staging``, where readers do not look, and renamed when it is whole: the
data, the offsets it covers and its counts become visible in one step, or not at all. Of two runs
with one number, the second rename fails. The file system is whichever Hadoop knows by the URI.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.spark.files.hadoop import HadoopFiles, Java
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
    """The runs below ``root``. Raises what Hadoop does (Py4JJavaError) for a root it cannot use.

    Directories are named from the root.
    """

    def __init__(self, sc: SparkContext, root: str) -> None:
        self._files = HadoopFiles(sc, root)
        jvm: Java = sc._jvm
        self._context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._files.path().toUri(), sc._jsc.hadoopConfiguration()
        )
        gateway: Java = sc._gateway
        options = getattr(jvm.org.apache.hadoop.fs, "Options$Rename")
        self._no_options = gateway.new_array(options, 0)

    def path(self, directory: str) -> str:
        return str(self._files.path(directory).toString())

    # --- runs

    def numbers(self) -> list[int]:
        found = [_RUN.fullmatch(name) for name in self._files.names()]
        return sorted(int(match[1]) for match in found if match)

    def run(self, number: int) -> Run:
        """Raises KafkaError for a run without a history that makes sense."""
        name = f"run={number:08d}/{HISTORY}"
        return decode(self._files.read(name) or b"", self.path(name))

    def last(self) -> Run | None:
        numbers = self.numbers()
        return self.run(numbers[-1]) if numbers else None

    # --- making one

    def stage(self, number: int) -> str:
        """The directory to make run ``number`` in. Leftovers of earlier runs are removed."""
        for name in self._files.names(STAGING):
            match = _STAGED.fullmatch(name)
            if match is None or int(match[1]) < number:
                self.drop(f"{STAGING}/{name}")
        return f"{STAGING}/{number}-{uuid.uuid4().hex[:8]}"

    def staged_files(self, directory: str) -> list[str]:
        """The data files below a staging directory, by their names relative to it."""
        found = []
        start = len(self.path(directory)) + 1
        listing = self._files.system.listFiles(self._files.path(directory), True)
        while listing.hasNext():
            name = listing.next().getPath().toString()[start:]
            if not name.rpartition("/")[2].startswith(("_", ".")):
                found.append(str(name))
        return sorted(found)

    def commit(self, directory: str, run: Run) -> None:
        """Make a staged run visible. Raises RunConflictError when there is one of its number."""
        self._files.store(f"{directory}/{HISTORY}", encode(run))
        staged, target = self._files.path(directory), self._files.path(run.directory)
        try:
            self._context.rename(staged, target, self._no_options)
        except Py4JError as error:
            if run.number in self.numbers():
                self.drop(directory)
                raise RunConflictError(
                    f"Another bulk load has made run {run.number} of {self.path('')} meanwhile"
                ) from None
            raise KafkaError(
                f"{staged.toString()} was not renamed to {run.directory}: {error}"
            ) from error

    def drop(self, directory: str) -> None:
        self._files.remove(directory)

    # --- which runs were loaded back, and where to

    def loaded(self, name: str) -> set[int]:
        names = self._files.names(f"{LOADED}/{name}")
        return {int(each) for each in names if each.isdecimal()}

    def mark_loaded(self, name: str, number: int) -> None:
        self._files.store(f"{LOADED}/{name}/{number}", b"")
