"""Data directories: names, the lock, the clean-shutdown marker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.log.directory import LogDirectory, parse_log_name, replace_file, unlink_if_there

HOLD_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
TRY_LOCK = """
import fcntl, sys
try:
    fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit(1)
"""


def locked_elsewhere(path: Path) -> bool:
    """Whether another process finds the file locked."""
    return subprocess.run([sys.executable, "-c", TRY_LOCK, path], check=False).returncode == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", TopicPartition("t", 0)),
        ("a-b-12", TopicPartition("a-b", 12)),
        ("__consumer_offsets-49", TopicPartition("__consumer_offsets", 49)),
        ("lost+found", None),
        ("t", None),
        ("t-", None),
        ("-1", None),
        ("t--1", TopicPartition("t-", 1)),
        ("t-01", None),
        ("t-x", None),
        ("t-\u0663", None),
        ("t t-1", None),
        ("..-1", None),
    ],
)
def test_parse_log_name(name: str, expected: TopicPartition | None) -> None:
    assert parse_log_name(name) == expected


def test_lock_keeps_this_process_out_until_unlocked(tmp_path: Path) -> None:
    directory = LogDirectory(str(tmp_path / "new" / "data"))
    with pytest.raises(KafkaError) as refused:
        LogDirectory(directory.path)
    assert str(refused.value) == (
        f"Failed to acquire lock on file .lock in {directory.path}. A Kafka instance in another "
        "process or thread is using this directory."
    )
    link = tmp_path / "link"
    link.symlink_to(directory.path)
    with pytest.raises(KafkaError):
        LogDirectory(str(link))
    assert locked_elsewhere(Path(directory.file(".lock")))
    directory.unlock()
    directory.unlock()
    assert not locked_elsewhere(Path(directory.file(".lock")))
    assert os.path.getsize(directory.file(".lock")) == 0
    LogDirectory(directory.path).unlock()


def test_lock_of_another_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, tmp_path / ".lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(KafkaError, match="Failed to acquire lock"):
            LogDirectory(str(tmp_path))
        holder.stdin.close()
    LogDirectory(str(tmp_path)).unlock()


def test_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KafkaError, match="is not a readable log directory"):
        LogDirectory(str(tmp_path / "file"))
    with pytest.raises(KafkaError, match="Failed to create data directory"):
        LogDirectory(str(tmp_path / "file" / "below"))


def test_marker(tmp_path: Path) -> None:
    directory = LogDirectory(str(tmp_path))
    directory.unmark_clean()
    assert not directory.was_shut_down_cleanly
    directory.mark_clean()
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b""
    assert directory.was_shut_down_cleanly
    directory.unmark_clean()
    assert not directory.was_shut_down_cleanly
    directory.unlock()


def test_partitions_and_what_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("t-1", "a-b-0", "lost+found", "t-02", "empty-0"):
        (tmp_path / name).mkdir()
    for name in ("t-1", "a-b-0"):
        (tmp_path / name / f"{0:020d}.log").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link-0").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "u-1").write_text("a plain file")
    directory = LogDirectory(str(tmp_path))
    assert directory.partitions() == {
        TopicPartition("a-b", 0): str(tmp_path / "a-b-0"),
        TopicPartition("link", 0): str(tmp_path / "link-0"),
        TopicPartition("t", 1): str(tmp_path / "t-1"),
    }
    directory.unlock()
    assert caplog.text.count("Skipping directory") == 3
    assert not (tmp_path / "empty-0").exists()


def test_a_file_is_replaced_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    replace_file(str(path), "one\n")
    replace_file(str(path), "two\n")
    assert path.read_text() == "two\n" and os.listdir(tmp_path) == ["file"]

    def fail(fd: int) -> None:
        raise OSError("as told")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="as told"):
        replace_file(str(path), "three\n")
    assert path.read_text() == "two\n"


def test_what_is_not_there_is_not_unlinked(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert [unlink_if_there(str(tmp_path / "file")) for _ in range(2)] == [True, False]
