"""All logs of a broker: directories, start, stop, crash, chores."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.log import checkpoint, leader_epochs
from kafka08.log import manager as manager_module
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.recovery import recovery
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeClock
from tests.log.cleaning.support import put_keys
from tests.log.dead_disk import Dead
from tests.log.support import append, everything, fill, no_room_for_files, no_space, writable
from tests.message.batches import batch, simple

T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))
MARKER = ".kafka_cleanshutdown"
POINTS = "recovery-point-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
STARTS = "log-start-offset-checkpoint"
USED = ".kafka_log_dirs"


class Brokers:
    """Starts managers over directories below one root; stops what still runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.running: list[LogManager] = []

    def start(
        self,
        *names: str,
        topics: dict[str, dict[str, str]] | None = None,
        **properties: Any,
    ) -> LogManager:
        dirs = ",".join(str(self.root / name) for name in names or ("a",))
        config = BrokerConfig.from_properties(
            {
                "broker.id": "0",
                "zookeeper.connect": "none:1",
                "log.dirs": dirs,
                "log.index.size.max.bytes": "1024",
                **{key.replace("_", "."): str(value) for key, value in properties.items()},
            }
        )
        manager = LogManager(config, clock=self.clock, topic_configs=topics or {})
        manager.load()
        self.running.append(manager)
        return manager

    def crash(self, manager: LogManager, *, to: str) -> None:
        """Copy what is on disk as if the process had died, then stop the original."""
        for path in manager.log_dirs:
            shutil.copytree(path, self.root / to)
        self.stop(manager)

    def stop(self, manager: LogManager) -> None:
        self.running.remove(manager)
        manager.close()


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    starter = Brokers(tmp_path)
    yield starter
    for manager in list(starter.running):
        starter.stop(manager)


def create(manager: LogManager, topic_partition: TopicPartition = T0) -> Log:
    return manager.create_log(topic_partition, manager.config_for(topic_partition.topic))


def test_life_of_a_directory(brokers: Brokers, tmp_path: Path) -> None:
    manager = brokers.start()
    assert sorted(os.listdir(tmp_path / "a")) == [".lock", POINTS]
    log = create(manager)
    assert create(manager) is log is manager.get_log(T0)
    assert manager.get_log(T1) is None
    append(log, "x", "y")
    brokers.stop(manager)
    assert sorted(os.listdir(tmp_path / "a")) == [MARKER, ".lock", POINTS, "t-0"]
    assert (tmp_path / "a" / POINTS).read_text() == "0\n1\nt 0 2\n"
    assert {path.name: path.stat().st_size for path in (tmp_path / "a" / "t-0").iterdir()} == {
        f"{0:020d}.log": 54,
        f"{0:020d}.index": 0,
    }
    manager = brokers.start()
    assert not (tmp_path / "a" / MARKER).exists()
    assert everything(manager.logs[T0]) == [(0, "x"), (1, "y")]
    assert manager.logs[T0].recovery_point == 2


def crash_with_half_flushed(brokers: Brokers) -> None:
    """In b: 8 messages of t-0, two to a segment; the recovery point is 4."""
    manager = brokers.start(log_segment_bytes=200)
    log = create(manager)
    fill(log, 8)  # two to a segment
    log.flush(up_to=4)
    manager.checkpoint_recovery_points()
    brokers.crash(manager, to="b")


def test_crash_is_recovered_from_the_recovery_point(brokers: Brokers, tmp_path: Path) -> None:
    crash_with_half_flushed(brokers)
    for number in (0, 6):
        path = tmp_path / "b" / "t-0" / f"{number:020d}.log"
        content = bytearray(path.read_bytes())
        content[30] ^= 1
        path.write_bytes(content)
    recovered = brokers.start("b").logs[T0]
    assert recovered.log_end_offset == 6
    assert recovered.segments[0].size == 152  # damaged, but below the recovery point
    assert recovered.recovery_point == 4


@pytest.mark.parametrize(("interval", "point"), [(1, 8), (4, 8), (5, 4)])
def test_what_a_crash_left_is_synced_as_after_an_append(
    brokers: Brokers, interval: int, point: int
) -> None:
    """Leaders, and consumers, count it as stored."""
    crash_with_half_flushed(brokers)
    recovered = brokers.start("b", log_flush_interval_messages=interval).logs[T0]
    assert (recovered.log_end_offset, recovered.recovery_point) == (8, point)


def test_stale_marker_does_not_outlive_the_start(brokers: Brokers, tmp_path: Path) -> None:
    brokers.stop(brokers.start())
    manager = brokers.start()
    append(create(manager), "x")
    brokers.crash(manager, to="b")
    assert not (tmp_path / "b" / MARKER).exists()


def test_new_partitions_go_where_the_fewest_are(brokers: Brokers) -> None:
    manager = brokers.start("a", "b")
    parents = [
        os.path.basename(os.path.dirname(create(manager, TopicPartition("t", n)).directory))
        for n in range(4)
    ]
    assert parents == ["a", "b", "a", "b"]
    manager.delete_log(T0)
    manager.delete_log(T2)
    assert os.path.dirname(create(manager, T2).directory).endswith("a")


def test_each_directory_has_its_own_files(brokers: Brokers, tmp_path: Path) -> None:
    manager = brokers.start("a", "b")
    append(create(manager, T0), "x")
    append(create(manager, T1), "y", "z")
    brokers.stop(manager)
    assert (tmp_path / "a" / POINTS).read_text() == "0\n1\nt 0 1\n"
    assert (tmp_path / "b" / POINTS).read_text() == "0\n1\nt 1 2\n"
    assert (tmp_path / "a" / MARKER).exists() and (tmp_path / "b" / MARKER).exists()
    (tmp_path / "a" / MARKER).unlink()
    manager = brokers.start("a", "b", num_recovery_threads_per_data_dir=3)
    assert sorted(manager.logs) == [T0, T1]


def begin(directory: Path) -> None:
    """A log without messages."""
    directory.mkdir(parents=True)
    (directory / f"{0:020d}.log").touch()


def test_a_partition_in_two_directories_refuses_to_start(brokers: Brokers, tmp_path: Path) -> None:
    for name in ("a", "b"):
        begin(tmp_path / name / "t-0")
    with pytest.raises(KafkaError, match="Duplicate log directories found"):
        brokers.start("a", "b")
    brokers.start("a")  # the locks were given up


def test_directory_named_twice(brokers: Brokers, tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="Duplicate log directory"):
        brokers.start("a", "a")


def test_second_broker_is_refused_and_harms_nothing(brokers: Brokers) -> None:
    manager = brokers.start("b")
    with pytest.raises(KafkaError, match="Failed to acquire lock"):
        brokers.start("a", "b")
    with pytest.raises(KafkaError, match="Failed to acquire lock"):
        brokers.start("b")
    brokers.start("a")
    append(create(manager), "x")


def test_strays_do_not_keep_the_broker_from_starting(brokers: Brokers, tmp_path: Path) -> None:
    (tmp_path / "a" / "lost+found").mkdir(parents=True)
    (tmp_path / "a" / "t-0").mkdir()
    (tmp_path / "a" / "t-0" / "stray.log").write_text("x")
    (tmp_path / "a" / POINTS).write_text("garbage")
    (tmp_path / "a" / "stray").write_text("x")
    assert list(brokers.start().logs) == [T0]


def test_topic_configs_apply_and_bad_ones_do_not(brokers: Brokers, tmp_path: Path) -> None:
    for name in ("t-0", "u-0", "v-0"):
        begin(tmp_path / "a" / name)
    topics = {"t": {"segment.bytes": "77"}, "u": {"segment.bytes": "many"}}
    logs = brokers.start(topics=topics, log_segment_bytes=1000).logs
    assert {tp.topic: log.config.segment_bytes for tp, log in logs.items()} == {
        "t": 77,
        "u": 1000,
        "v": 1000,
    }


def test_a_failed_flush_leaves_no_marker(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = brokers.start("a", "b")
    append(create(manager, T0), "x")
    create(manager, T1)

    def broken(log: Log) -> None:
        if log.topic_partition == T0:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(manager_module, "_flush_and_close", broken)
    with pytest.raises(OSError, match="Input/output"):
        brokers.stop(manager)
    monkeypatch.undo()
    assert not (tmp_path / "a" / MARKER).exists()
    assert (tmp_path / "b" / MARKER).exists()
    brokers.start("a", "b")  # unlocked all the same


def test_without_room_for_its_leader_epochs_a_log_leaves_no_marker(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = brokers.start()
    log = create(manager)
    log.rules = log.rules._replace(leader_epoch=3)
    log.append(writable(batch(simple(b"v"))))
    monkeypatch.setattr(leader_epochs, "write_lines", no_space)
    with pytest.raises(OSError, match="No room for the leader epochs of t-0"):
        brokers.stop(manager)
    assert not (tmp_path / "a" / MARKER).exists()
    monkeypatch.undo()
    assert brokers.start().logs[T0].epochs.epoch_at(0) == 3


def test_truncations_are_checkpointed(brokers: Brokers, tmp_path: Path) -> None:
    manager = brokers.start()
    log = create(manager)
    fill(log, 5)
    log.flush()
    manager.checkpoint_recovery_points()
    log.truncate_to(3)
    manager.checkpoint_recovery_points()
    assert (tmp_path / "a" / POINTS).read_text() == "0\n1\nt 0 3\n"
    log.truncate_fully_and_start_at(1)
    manager.checkpoint_recovery_points()
    assert (tmp_path / "a" / POINTS).read_text() == "0\n1\nt 0 1\n"


def test_a_recreated_log_does_not_inherit_a_recovery_point(
    brokers: Brokers, tmp_path: Path
) -> None:
    manager = brokers.start()
    fill(create(manager), 5)
    manager.logs[T0].flush()
    manager.checkpoint_recovery_points()
    manager.delete_log(T0)
    assert not (tmp_path / "a" / "t-0").exists()
    manager.delete_log(T0)
    create(manager)
    assert (tmp_path / "a" / POINTS).read_text() == "0\n0\n"


def test_cleanup_and_delayed_deletion(brokers: Brokers) -> None:
    manager = brokers.start(
        topics={"c": {"cleanup.policy": "compact"}}, log_segment_bytes=100, log_retention_bytes=100
    )
    compacted = TopicPartition("c", 0)
    fill(create(manager), 4)
    put_keys(create(manager, compacted), "abcd")
    assert manager.cleanup() == []
    assert [segment.base_offset for segment in manager.logs[T0].segments] == [2, 3]
    assert len(manager.logs[compacted].segments) == 4
    directory = Path(manager.logs[T0].directory)
    brokers.clock.now_ms += 59_999
    manager.delete_due_files()
    assert len(list(directory.glob("*.deleted"))) == 4
    brokers.clock.now_ms += 1
    assert manager.delete_due_files() == []
    assert list(directory.glob("*.deleted")) == []


def test_flush_dirty(brokers: Brokers) -> None:
    manager = brokers.start(topics={"t": {"flush.ms": "1000"}})
    log, lazy = create(manager), create(manager, TopicPartition("u", 0))
    for written in (log, lazy):
        append(written, "x")
    brokers.clock.now_ms += 999
    manager.flush_dirty()
    assert log.recovery_point == 0
    brokers.clock.now_ms += 1
    manager.flush_dirty()
    assert (log.recovery_point, lazy.recovery_point) == (1, 0)


def test_recovery_points_that_nothing_backs_are_lowered_at_the_start(brokers: Brokers) -> None:
    manager = brokers.start()
    fill(create(manager, T0), 3)
    brokers.stop(manager)
    path = brokers.root / "a" / POINTS
    path.write_text("0\n2\nt 0 9\nt 1 5\n")  # beyond the log's end; of a deleted log
    brokers.start()
    assert path.read_text() == "0\n1\nt 0 3\n"


def io_error(*_: object, **__: object) -> Any:
    raise OSError(errno.EIO, "Input/output error")


class TestFailedDirectories:
    """Two directories: partition 0 lies in a, 1 in b."""

    @pytest.fixture
    def manager(self, brokers: Brokers) -> LogManager:
        manager = brokers.start("a", "b")
        for key in (T0, T1):
            fill(create(manager, key), 3)
        assert [Path(manager.logs[key].directory).parent.name for key in (T0, T1)] == ["a", "b"]
        return manager

    def test_taken_offline(self, manager: LogManager, brokers: Brokers, tmp_path: Path) -> None:
        a = str(tmp_path / "a")
        assert manager.take_offline(a) == [T0]
        assert list(manager.logs) == [T1]
        assert manager.log_dirs == [str(tmp_path / "b")]
        with pytest.raises(KafkaError, match=r"data directory of \[t,0\] has failed"):
            create(manager, T0)
        assert Path(create(manager, T2).directory).parent.name == "b"
        assert manager.checkpoint_recovery_points() == []
        with pytest.raises(KafkaError, match="another"):
            brokers.start("a")  # it stays locked
        brokers.stop(manager)
        assert not (tmp_path / "a" / MARKER).exists()
        assert (tmp_path / "b" / MARKER).exists()
        assert set(brokers.start("a", "b").logs) == {T0, T1, T2}

    def test_chores_tell_and_go_on(
        self, manager: LogManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a = str(tmp_path / "a")
        real = Log.flush

        def flush(log: Log, up_to: int | None = None) -> None:
            if log.topic_partition == T0:
                io_error()
            real(log, up_to)

        manager.default_config = manager.default_config.override({"flush.ms": "0"})
        for log in manager.logs.values():
            log.config = manager.default_config
        monkeypatch.setattr(Log, "flush", flush)
        ((directory, error),) = manager.flush_dirty()
        assert (directory, error.errno) == (a, errno.EIO)
        assert manager.logs[T1].recovery_point == 3
        monkeypatch.setattr(manager._recovery_points[a], "write", io_error)
        assert [failure.directory for failure in manager.checkpoint_recovery_points()] == [a]
        assert (tmp_path / "b" / POINTS).read_text() == "0\n1\nt 1 3\n"

    @pytest.mark.parametrize("what", ["open", "list", "log", "point", "marker"])
    def test_lost_at_the_start(
        self,
        manager: LogManager,
        brokers: Brokers,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        what: str,
    ) -> None:
        brokers.stop(manager)
        a = str(tmp_path / "a")
        directory = manager_module.LogDirectory

        def failing(real: Any) -> Any:
            def call(subject: Any, *args: Any, **kwargs: Any) -> Any:
                if a in str(getattr(subject, "path", subject)):
                    io_error()
                return real(subject, *args, **kwargs)

            return call

        if what == "open":
            shutil.rmtree(a)
            Path(a).write_text("no directory")
        elif what == "list":
            monkeypatch.setattr(directory, "partitions", failing(directory.partitions))
        elif what == "log":
            monkeypatch.setattr(manager_module, "Log", failing(Log))
        elif what == "point":
            lower = LogManager._correct_checkpoints
            monkeypatch.setattr(
                LogManager,
                "_correct_checkpoints",
                lambda self, path: failing(lambda path: lower(self, path))(path),
            )
        else:
            monkeypatch.setattr(directory, "unmark_clean", failing(directory.unmark_clean))
        found = brokers.start("a", "b")
        assert f"Continuing without the data directory {a}" in caplog.text
        assert list(found.logs) == [T1]
        assert found.lost_at_start
        assert found.log_dirs == [str(tmp_path / "b")]

    def test_the_last_one_is_not_done_without(
        self, manager: LogManager, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        brokers.stop(manager)
        monkeypatch.setattr(manager_module, "Log", io_error)
        with pytest.raises(OSError, match="Input/output error"):
            brokers.start("a")
        with pytest.raises(OSError, match="Input/output error"):
            brokers.start("a", "b")

    def test_too_many_open_files_are_no_failing_disk(
        self, manager: LogManager, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        brokers.stop(manager)

        def refuse(*_: object, **__: object) -> Any:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(manager_module, "Log", refuse)
        with pytest.raises(OSError, match="Too many"):
            brokers.start("a", "b")


def test_a_disk_that_dies_at_any_call_of_a_start(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = brokers.start("a", "b", topics={"t": {"cleanup.policy": "compact"}})
    for key in (T0, T1):
        put_keys(create(manager, key), "aab")
        manager.logs[key].roll()
        put_keys(manager.logs[key], "c")
    for path in list(manager.log_dirs):
        shutil.copytree(path, Path(path).with_suffix(".crashed"))
    brokers.stop(manager)
    calls = 0
    while True:
        for name in "ab":
            shutil.rmtree(tmp_path / name)
            shutil.copytree(tmp_path / f"{name}.crashed", tmp_path / name)
        with monkeypatch.context() as patch:
            dead = Dead(patch, str(tmp_path / "a"))
            dead.die(after=calls)
            manager = brokers.start("a", "b")
            refused = dead.met
        assert T1 in manager.logs
        brokers.stop(manager)
        if not refused:
            break
        assert manager.log_dirs == [str(tmp_path / "b")], calls
        assert manager.lost_at_start
        calls += 1
    assert calls > 20


class TestNotMounted:
    """Two directories, of which the disk of one is not there at the next start."""

    @pytest.fixture(autouse=True)
    def used(self, brokers: Brokers) -> None:
        manager = brokers.start("a", "b")
        for key in (T0, T1):
            fill(create(manager, key), 3)
        brokers.stop(manager)

    @pytest.mark.parametrize("mount_point", [False, True])
    def test_it_is_done_without_until_it_is_back(
        self, brokers: Brokers, tmp_path: Path, mount_point: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "a").rename(tmp_path / "away")
        if mount_point:
            (tmp_path / "a").mkdir()
        for _ in range(2):
            manager = brokers.start("a", "b")
            assert f"{tmp_path / 'a'} was in use and is empty now" in caplog.text
            assert list(manager.logs) == [T1] and manager.lost_at_start
            brokers.stop(manager)
        assert not list(tmp_path.glob("a/*"))
        if mount_point:
            (tmp_path / "a").rmdir()
        (tmp_path / "away").rename(tmp_path / "a")
        manager = brokers.start("a", "b")
        assert set(manager.logs) == {T0, T1} and not manager.lost_at_start

    def test_a_disk_that_was_replaced(self, brokers: Brokers, tmp_path: Path) -> None:
        shutil.rmtree(tmp_path / "a")
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / POINTS).touch()
        manager = brokers.start("a", "b")
        assert list(manager.logs) == [T1] and not manager.lost_at_start
        assert Path(create(manager).directory).parent.name == "a"

    def test_one_that_was_taken_out_is_forgotten(self, brokers: Brokers, tmp_path: Path) -> None:
        shutil.rmtree(tmp_path / "a")
        brokers.stop(brokers.start("b"))
        manager = brokers.start("a", "b")
        assert len(manager.log_dirs) == 2 and not manager.lost_at_start

    def test_new_ones_are_welcome(self, brokers: Brokers, tmp_path: Path) -> None:
        brokers.stop(brokers.start("a", "b", "c"))
        assert {(tmp_path / name / USED).read_text() for name in "abc"} == {
            "".join(f"{tmp_path / name}\n" for name in "abc")
        }

    def test_one_that_could_never_be_used_is_not_missed_later(
        self, brokers: Brokers, tmp_path: Path
    ) -> None:
        (tmp_path / "c").write_text("no directory")
        manager = brokers.start("a", "b", "c")
        assert manager.lost_at_start
        brokers.stop(manager)
        (tmp_path / "c").unlink()
        assert len(brokers.start("a", "b", "c").log_dirs) == 3

    @pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b"/nowhere\n"])
    def test_a_list_that_says_nothing(
        self, brokers: Brokers, tmp_path: Path, content: bytes
    ) -> None:
        (tmp_path / "b" / USED).write_bytes(content)
        shutil.rmtree(tmp_path / "a")
        assert len(brokers.start("a", "b").log_dirs) == 2

    def test_no_room_for_the_list(
        self, brokers: Brokers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(manager_module, "write_log_dirs", no_space)
        assert set(brokers.start("a", "b", "c").logs) == {T0, T1}
        assert "is not up to date" in caplog.text


class TestNoRoom:
    """A log cannot be made where a disk is full: nothing of it stays there."""

    @pytest.fixture
    def full(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        names: set[str] = set()

        def log(path: str, *args: Any, **kwargs: Any) -> Log:
            made = Log(path, *args, **kwargs)
            if Path(path).parent.name in names:
                raise OSError(errno.ENOSPC, "No space left on device")
            return made

        monkeypatch.setattr(manager_module, "Log", log)
        return names

    def test_the_next_directory_takes_it(
        self, brokers: Brokers, tmp_path: Path, full: set[str]
    ) -> None:
        manager = brokers.start("a", "b", "c")
        full.update("ab")
        assert Path(create(manager).directory).parent.name == "c"
        assert not (tmp_path / "a" / "t-0").exists() and not (tmp_path / "b" / "t-0").exists()
        brokers.stop(manager)
        assert list(brokers.start("a", "b", "c").logs) == [T0]

    def test_a_log_without_a_segment_begins_later(self, brokers: Brokers, tmp_path: Path) -> None:
        brokers.stop(brokers.start())
        (tmp_path / "a" / "t-0").mkdir()
        with no_room_for_files():
            manager = brokers.start()
        assert manager.logs == {} and not (tmp_path / "a" / "t-0").exists()
        append(create(manager), "x")

    @pytest.mark.parametrize("closes", [True, False])
    def test_a_segment_without_an_index_goes_on_without(
        self, brokers: Brokers, tmp_path: Path, closes: bool
    ) -> None:
        """A power cut may have taken the name of the file."""
        manager = brokers.start()
        append(create(manager), "x", "y")
        brokers.crash(manager, to="b")
        index = tmp_path / "b" / "t-0" / f"{0:020d}.index"
        index.unlink()
        with no_room_for_files():
            manager = brokers.start("b")
            log = manager.logs[T0]
            assert everything(log) == [(0, "x"), (1, "y")]
            with pytest.raises(OSError, match="No space left"):
                append(log, "z")
            if closes:
                brokers.stop(manager)
        if closes:
            log = brokers.start("b").logs[T0]
        append(log, "z")
        assert everything(log) == [(0, "x"), (1, "y"), (2, "z")]
        assert [each.index.is_full for each in log.segments] == (
            [False] if closes else [True, False]
        )

    def test_an_empty_segment_without_an_index_takes_one_set(
        self, brokers: Brokers, tmp_path: Path
    ) -> None:
        manager = brokers.start()
        create(manager)
        brokers.crash(manager, to="b")
        (tmp_path / "b" / "t-0" / f"{0:020d}.index").unlink()
        with no_room_for_files():
            log = brokers.start("b").logs[T0]
            append(log, "x")
            with pytest.raises(OSError, match="No space left"):
                append(log, "y")
        append(log, "y")
        assert everything(log) == [(0, "x"), (1, "y")]

    @pytest.mark.parametrize("name", [POINTS, STARTS, CLEANED])
    def test_a_start_leaves_entries_of_deleted_logs(
        self,
        brokers: Brokers,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        name: str,
    ) -> None:
        manager = brokers.start(topics={"t": {"cleanup.policy": "compact"}})
        put_keys(create(manager), "aab")
        brokers.stop(manager)
        file = OffsetCheckpoint(str(tmp_path / "a" / name))
        file.write({T1: 2})

        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "replace_file", no_space)
            manager = brokers.start()
            assert len(everything(manager.logs[T0])) == 3
            assert name == CLEANED or "are not up to date" in caplog.text
            assert file.read() == ({} if name == POINTS else {T1: 2})
            with pytest.raises(OSError, match="No space left"):
                create(manager, T1)
            assert not (tmp_path / "a" / "t-1").exists()
        create(manager, T1)
        assert T1 not in file.read()

    def test_a_start_does_not_hide_what_may_come(
        self, brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With a start beyond the log's end that cannot be removed."""
        manager = brokers.start()
        append(create(manager), "x")
        brokers.stop(manager)
        OffsetCheckpoint(str(tmp_path / "a" / STARTS)).write({T0: 2})
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "replace_file", no_space)
            with pytest.raises(OSError, match="No space left"):
                brokers.start()
        assert brokers.start().logs[T0].first_offset == 0

    def test_nowhere_is_room(self, brokers: Brokers, tmp_path: Path, full: set[str]) -> None:
        manager = brokers.start("a", "b")
        full.update("ab")
        with pytest.raises(OSError, match="No space left"):
            create(manager)
        assert manager.logs == {} and manager.offline == set()
        assert not list(tmp_path.glob("*/t-0"))
        full.clear()
        append(create(manager), "x")

    def test_what_was_there_before_stays(
        self, brokers: Brokers, tmp_path: Path, full: set[str]
    ) -> None:
        manager = brokers.start("a")
        (tmp_path / "a" / "t-0").mkdir()
        (tmp_path / "a" / "t-0" / "mine").write_text("mine")
        full.update("a")
        with pytest.raises(OSError, match="No space left"):
            create(manager)
        assert (tmp_path / "a" / "t-0" / "mine").exists()


def test_tells_how_far_loading_is(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    manager = brokers.start(num_recovery_threads_per_data_dir=1)
    for partition in range(4):
        create(manager, TopicPartition("t", partition))
    brokers.stop(manager)

    def slow(*args: Any, **kwargs: Any) -> Log:
        brokers.clock.now_ms += 25_000
        return Log(*args, **kwargs)

    monkeypatch.setattr(manager_module, "Log", slow)
    with caplog.at_level("INFO", "kafka.log.LogManager"):
        brokers.start()
    told = [r.getMessage() for r in caplog.records if "logs in" in r.getMessage()]
    assert [line.split(" in ")[0] for line in told] == ["Loaded 3 of 4 logs"]


def test_tells_how_many_bytes_are_recovered(
    brokers: Brokers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Of the segments from the recovery point on, and of no others."""
    crash_with_half_flushed(brokers)
    segments = [(path.name, path.stat().st_size) for path in (tmp_path / "b").rglob("*.log")]
    assert len(segments) == 4
    size = sum(size for name, size in segments if int(name[:20]) >= 4)

    def recover(*args: Any, **kwargs: Any) -> int:
        brokers.clock.now_ms += 60_000
        return recover_segment(*args, **kwargs)

    recover_segment = recovery.recover
    monkeypatch.setattr(recovery, "recover", recover)
    with caplog.at_level("INFO", "kafka.log.LogManager"):
        brokers.start("b", log_segment_bytes=200)
    told = [each for each in caplog.messages if "logs in" in each]
    assert told == [
        f"Loaded 0 of 1 logs in {tmp_path}/b, {size // 2} B of {size} B (50 %) recovered",
        f"Loaded 0 of 1 logs in {tmp_path}/b, {size} B of {size} B (100 %) recovered",
    ]


# Deleted records


def delete_records(manager: LogManager, until: int, partition: TopicPartition = T0) -> None:
    log = manager.logs[partition]
    log.delete_records(until)
    assert manager.store_deletions([log]) == []


def test_deletions_of_records_survive_a_crash(brokers: Brokers, tmp_path: Path) -> None:
    manager = brokers.start()
    append(create(manager), *"abcd")
    append(create(manager, T1), *"abcd")
    assert not (tmp_path / "a" / STARTS).exists()
    delete_records(manager, 3)
    assert (tmp_path / "a" / STARTS).read_bytes() == b"0\n1\nt 0 3\n"
    assert manager.logs[T0].recovery_point == 4  # a power cut leaves what is below the start too
    brokers.crash(manager, to="b")
    manager = brokers.start("b")
    assert [manager.logs[each].first_offset for each in (T0, T1)] == [3, 0]
    delete_records(manager, 2, T1)
    brokers.stop(manager)
    manager = brokers.start("b")
    assert [manager.logs[each].first_offset for each in (T0, T1)] == [3, 2]


@pytest.mark.parametrize(
    "content", [None, b"", b"0\n1\nt 0", b"0\n2\nt 0 3\n", b"\0" * 12, b"0\n1\nt 0 5\n"]
)
def test_a_start_file_that_is_torn_missing_or_wrong(
    brokers: Brokers, tmp_path: Path, content: bytes | None
) -> None:
    """Then the log begins with its first segment. The next deletion writes the file again."""
    manager = brokers.start()
    append(create(manager), *"abcd")
    delete_records(manager, 3)
    brokers.crash(manager, to="b")
    path = tmp_path / "b" / STARTS
    path.unlink() if content is None else path.write_bytes(content)
    path.with_suffix(".tmp").write_bytes(b"0\n1\nt 0 4")
    manager = brokers.start("b")
    assert manager.logs[T0].first_offset == 0
    delete_records(manager, 1)
    assert path.read_bytes() == b"0\n1\nt 0 1\n"


def test_a_log_of_the_same_name_does_not_begin_where_the_deleted_one_did(
    brokers: Brokers, tmp_path: Path
) -> None:
    manager = brokers.start()
    append(create(manager), *"abcd")
    delete_records(manager, 3)
    manager.delete_log(T0)
    brokers.crash(manager, to="b")  # before anything was written
    manager = brokers.start("b")
    assert (tmp_path / "b" / STARTS).read_bytes() == b"0\n0\n"
    append(create(manager), *"efgh")
    brokers.crash(manager, to="c")
    assert brokers.start("c").logs[T0].first_offset == 0


def test_a_log_that_is_deleted_and_made_again_at_once(brokers: Brokers) -> None:
    manager = brokers.start()
    append(create(manager), *"abcd")
    delete_records(manager, 3)
    manager.delete_log(T0)
    append(create(manager), *"efgh")
    brokers.crash(manager, to="b")
    assert brokers.start("b").logs[T0].first_offset == 0


def test_a_truncation_lowers_the_stored_start(brokers: Brokers) -> None:
    """Otherwise a crash would hide what is appended after it."""
    manager = brokers.start()
    append(create(manager), *"abcd")
    delete_records(manager, 4)
    manager.logs[T0].truncate_to(2)
    manager.checkpoint_recovery_points()
    append(manager.logs[T0], *"efgh")
    brokers.crash(manager, to="b")
    log = brokers.start("b").logs[T0]
    assert (log.first_offset, log.log_end_offset) == (2, 6)


def test_a_directory_that_cannot_take_the_start_is_reported(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = brokers.start("a", "b")
    for partition in (T0, T1):
        append(create(manager, partition), *"ab")
        manager.logs[partition].delete_records(1)
    failing = os.path.dirname(manager.logs[T0].directory)
    real = os.replace

    def replace(old: str, new: str) -> None:
        if os.path.dirname(new) == failing:
            raise OSError(errno.EIO, "dead")
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    failures = manager.store_deletions(list(manager.logs.values()))
    assert [failure.directory for failure in failures] == [failing]
