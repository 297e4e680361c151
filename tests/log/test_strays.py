"""Foreign files in a data directory are logged, left alone or moved aside, and do no harm."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.log import checkpoint as checkpoint_module
from kafka08.log.directory import parse_log_name
from kafka08.log.manager import LogManager
from tests.fakes.runtime import FakeClock
from tests.log.cleaning.support import InlineProcess, broker_config, clean_once, put_keys
from tests.log.support import append, everything, fill

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CLEANED = "cleaner-offset-checkpoint"
CHECKPOINTS = [
    "recovery-point-offset-checkpoint",
    CLEANED,
    "recovery-point-offset-checkpoint.tmp",
    "cleaner-offset-checkpoint.tmp",
]
GARBAGE = [
    random.Random(8).randbytes(300),
    b"\0" * 4096,
    b"0\n1\nt 0 99999999999999999999\n",
    b"0\n1\nt 99999999999 5\n",
    b"0\n1\nt 0 -5\n",
    b"0\n1\nt -1 5\n",
    b"0\n-1\n",
    b"0\n2\nt 0 5\nt 0 6\n",
    b"0\n1\nt 0 5\nt 0 6\n",
    b"0\n9999999999999999999\nt 0 5\n",
    b"0\n1\nt 0 1_0\n",
    b"0\n1\nt 0 5.0\n",
    b"0\n\n1\nt 0 5\n",
    b"9" * 5000,
]

Start = Callable[..., LogManager]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[LogManager] = []

    def begin(*names: str, **properties: Any) -> LogManager:
        while running:
            running.pop().close()
        dirs = ",".join(str(tmp_path / name) for name in names or ("a",))
        config = broker_config(dirs, log_index_size_max_bytes=1024, **properties)
        manager = LogManager(
            config, clock=FakeClock(), topic_configs={"c": {"cleanup.policy": "compact"}}
        )
        manager.load()
        running.append(manager)
        if manager.cleaner is not None:
            manager.cleaner._start = InlineProcess
        return manager

    yield begin
    for manager in running:
        manager.close()


def create(manager: LogManager, key: TopicPartition = T0) -> Any:
    return manager.create_log(key, manager.config_for(key.topic))


def crash(manager: LogManager, tmp_path: Path) -> None:
    """The next start finds no marker."""
    manager.close()
    (tmp_path / "a" / ".kafka_cleanshutdown").unlink()


@pytest.mark.parametrize("name", CHECKPOINTS[:2])
@pytest.mark.parametrize("content", GARBAGE)
def test_garbage_in_checkpoints(
    start: Start, tmp_path: Path, name: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    manager = start()
    append(create(manager), "x", "y")
    crash(manager, tmp_path)
    (tmp_path / "a" / name).write_bytes(content)
    manager = start()
    assert f"Ignoring checkpoint file {tmp_path / 'a' / name}" in caplog.text
    assert everything(manager.logs[T0]) == [(0, "x"), (1, "y")]
    manager.checkpoint_recovery_points()
    point = 0 if name == CHECKPOINTS[0] else 2
    assert (tmp_path / "a" / CHECKPOINTS[0]).read_text() == f"0\n1\nt 0 {point}\n"


def test_a_recovery_point_too_large_to_be_one_vouches_for_nothing(
    start: Start, tmp_path: Path
) -> None:
    manager = start(log_segment_bytes=200)
    fill(create(manager), 8)  # two to a segment
    crash(manager, tmp_path)
    path = tmp_path / "a" / "t-0" / f"{2:020d}.log"
    path.write_bytes(path.read_bytes()[:-1])
    (tmp_path / "a" / CHECKPOINTS[0]).write_text(f"0\n1\nt 0 {1 << 63}\n")
    assert start().logs[T0].log_end_offset == 3


@pytest.mark.parametrize("name", [*CHECKPOINTS, ".kafka_cleanshutdown", ".lock"])
def test_a_directory_where_a_file_of_the_data_directory_belongs(
    start: Start, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    manager = start()
    append(create(manager), "x")
    crash(manager, tmp_path)
    path = tmp_path / "a" / name
    path.unlink(missing_ok=True)
    (path / "below").mkdir(parents=True)
    manager = start()
    assert f"{path} is not of the expected kind" in caplog.text
    assert (tmp_path / "a" / f"{name}.aside" / "below").is_dir()
    assert everything(manager.logs[T0]) == [(0, "x")]
    assert manager.checkpoint_recovery_points() == []
    manager.close()
    assert (tmp_path / "a" / ".kafka_cleanshutdown").is_file()
    assert everything(start().logs[T0]) == [(0, "x")]


def test_what_was_put_aside_before_stays(start: Start, tmp_path: Path) -> None:
    for suffix in (".aside", ".aside1", ""):
        (tmp_path / "a" / (CLEANED + suffix)).mkdir(parents=True)
    start()
    assert (tmp_path / "a" / f"{CLEANED}.aside2").is_dir()
    assert not (tmp_path / "a" / CLEANED).exists()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        f"{0:020d}.index",
        f"{0:020d}.crc32c",
        f"{0:020d}.crc32c.tmp",
        f"{2:020d}.log",
        f"{2:020d}.index",
        f"{0:020d}.log.swap",
        f"{0:020d}.index.swap",
        f"{0:020d}.log.cleaned",
        "x.deleted",
        "notes.log",
    ],
)
def test_a_directory_where_a_file_of_a_log_belongs(
    start: Start, tmp_path: Path, name: str, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    manager = start()
    append(create(manager), "x", "y")
    if clean:
        manager.close()
    else:
        crash(manager, tmp_path)
    path = tmp_path / "a" / "t-0" / name
    path.unlink(missing_ok=True)
    (path / "below").mkdir(parents=True)
    log = start().logs[T0]
    assert f"{path} is not of the expected kind" in caplog.text
    assert everything(log) == [(0, "x"), (1, "y")]
    assert log.roll()  # into the files with base 2
    append(log, "z")
    log.flush()
    assert everything(log) == [(0, "x"), (1, "y"), (2, "z")]


def test_a_directory_in_place_of_the_first_segment(start: Start, tmp_path: Path) -> None:
    (tmp_path / "a" / "t-0" / f"{0:020d}.log").mkdir(parents=True)
    log = start().logs[T0]
    append(log, "x")
    assert everything(log) == [(0, "x")]


def test_a_file_where_a_partition_belongs(start: Start, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t-0").write_text("mine")
    manager = start()
    assert T0 not in manager.logs
    append(create(manager), "x")
    assert (tmp_path / "a" / "t-0.aside").read_text() == "mine"
    assert everything(start().logs[T0]) == [(0, "x")]


@pytest.mark.parametrize(
    "name", ["t-2147483648", f"t-{10**40}", "lost+found", "t-00", "-1", "t-", "tmp", ".Trash-0 1"]
)
def test_directories_that_are_no_partitions(
    start: Start, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "a" / name / f"{0:020d}.log").write_bytes(b"x" * 100)
    assert start().logs == {}
    assert f"Skipping directory {tmp_path / 'a' / name}" in caplog.text


def test_the_largest_partition() -> None:
    assert parse_log_name("t-2147483647") == TopicPartition("t", 2147483647)


@pytest.mark.parametrize(
    "name",
    [
        "0.log",
        "x.log",
        ".log",
        f"-{1:019d}.log",
        f"{1 << 63:020d}.log",
        f"{0:021d}.log",
        "\u0661" * 20 + ".log",
        "0000000000000000000x.log",
    ],
)
def test_log_files_that_are_no_segments(
    start: Start, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    manager = start()
    append(create(manager), "x")
    crash(manager, tmp_path)
    path = tmp_path / "a" / "t-0" / name
    path.write_bytes(bytes(range(250)))
    assert everything(start().logs[T0]) == [(0, "x")]
    assert f"Skipping {path}" in caplog.text
    assert path.stat().st_size == 250


class TestStaleCleanerCheckpoint:
    """A log that is gone must not have its successor of the same name taken for clean."""

    KEY = TopicPartition("c", 0)

    def cleaned(self, start: Start) -> LogManager:
        manager = start(log_segment_bytes=170, log_cleaner_min_cleanable_ratio=0.01)
        put_keys(create(manager, self.KEY), "abacx")
        assert manager.cleaner is not None and clean_once(manager.cleaner)
        return manager

    def recorded(self, tmp_path: Path) -> str:
        return (tmp_path / "a" / CLEANED).read_text()

    def test_of_a_log_that_is_not_there_goes_at_the_start(
        self, start: Start, tmp_path: Path
    ) -> None:
        self.cleaned(start).close()
        assert self.recorded(tmp_path) == "0\n1\nc 0 4\n"
        (tmp_path / "a" / "c-0").rename(tmp_path / "elsewhere")
        manager = start()
        assert self.recorded(tmp_path) == "0\n0\n"
        assert manager.cleaner is not None
        assert manager.cleaner.checkpoint(create(manager, self.KEY)) is None

    def test_of_a_log_in_another_directory_goes(self, start: Start, tmp_path: Path) -> None:
        self.cleaned(start).close()
        (tmp_path / "b").mkdir()
        (tmp_path / "a" / "c-0").rename(tmp_path / "b" / "c-0")
        start("a", "b")
        assert self.recorded(tmp_path) == "0\n0\n"

    def test_that_could_not_be_written_at_a_deletion(
        self, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        manager = self.cleaned(start)

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(checkpoint_module.OffsetCheckpoint, "write", full)
        manager.delete_log(self.KEY)
        assert self.recorded(tmp_path) == "0\n1\nc 0 4\n"
        with pytest.raises(OSError, match="No space"):
            create(manager, self.KEY)
        [*_, failure] = manager.checkpoint_recovery_points()
        assert failure.directory == str(tmp_path / "a")
        monkeypatch.undo()
        create(manager, self.KEY)
        assert self.recorded(tmp_path) == "0\n0\n"

    def test_a_failed_directory_is_not_written_to(self, start: Start, tmp_path: Path) -> None:
        start("a", "b").close()
        manager = self.cleaned(lambda **more: start("a", "b", **more))
        assert manager.cleaner is not None
        manager.delete_log(self.KEY)
        manager.cleaner._unwritten.add(str(tmp_path / "a"))
        manager.take_offline(str(tmp_path / "a"))
        before = os.stat(tmp_path / "a" / CLEANED).st_ino
        assert manager.checkpoint_recovery_points() == []
        assert os.stat(tmp_path / "a" / CLEANED).st_ino == before
