"""kafka-log-convert over data directories that our log manager left."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import KafkaError
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    GroupRecord,
    encode_group,
    encode_group_key,
    encode_key,
    encode_value,
)
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.directory import LogDirectory
from kafka08.log.manager import LogManager
from kafka08.log.segments import integrity
from kafka08.message.markers import ABORT, COMMIT
from kafka08.message.sets import encode_set, iter_messages
from kafka08.settings.broker import BrokerConfig
from tests.fakes import transactional_log
from tests.fakes.runtime import FakeClock
from tests.log.support import everything, values
from tests.message.batches import batch, simple
from tools.logs import log_convert
from tools.options import UsageError


def main(argv: list[str]) -> int:
    """In this process unless the test says otherwise: another one takes time to begin."""
    return log_convert.main(
        argv if "--processes" in argv or not argv else [*argv, "--processes", "1"]
    )


WRAPPED, PLAIN = TopicPartition("wrapped", 0), TopicPartition("plain", 1)
Contents = dict[TopicPartition, list[tuple[int, str]]]


def open_logs(path: Path) -> LogManager:
    config = BrokerConfig.from_properties(
        {
            "broker.id": "0",
            "zookeeper.connect": "none",
            "log.dirs": str(path),
            "log.segment.bytes": "2000",
            "log.index.interval.bytes": "200",
            "log.cleaner.enable": "false",
        }
    )
    manager = LogManager(config, clock=FakeClock(), topic_configs={})
    manager.load()
    for tp in (WRAPPED, PLAIN):
        manager.create_log(tp, manager.default_config)
    return manager


def contents(manager: LogManager) -> Contents:
    return {tp: everything(log) for tp, log in manager.logs.items()}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with several segments in each of two partitions, cleanly closed."""
    path = tmp_path / "data"
    manager = open_logs(path)
    for number in range(40):
        texts = [f"{number}-{i}" * 5 for i in range(10)]
        manager.logs[WRAPPED].append(memoryview(bytearray(encode_set(values(*texts), 1))))
        manager.logs[PLAIN].append(memoryview(bytearray(encode_set(values(*texts)))))
    for segment in manager.logs[WRAPPED].segments[:-1]:
        made = integrity.write(segment.path, integrity.summed(segment.path))
        os.replace(made, integrity.seal_path(segment.path))
    manager.close()
    return path


def snapshot(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }


def test_convert_and_open_again(data: Path, capsys: Any) -> None:
    manager = open_logs(data)
    before = contents(manager)
    manager.close()
    files = snapshot(data)
    assert main(["--log-dirs", str(data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(data)
    assert lines[1].split()[:5] == ["PARTITION", "SEGMENTS", "CONVERTED", "ADDED", "WRAPPERS"]
    plain, wrapped = (line.split() for line in lines[2:])
    assert plain[0] == "[plain,1]"
    assert plain[2:6] == ["0", "0", "0", "0"]
    assert wrapped[0] == "[wrapped,0]"
    assert wrapped[4:6] == ["39", "39"]  # the first is right by luck
    after = snapshot(data)
    assert {name for name in files if not name.endswith(".crc32c")} == set(after)
    assert any(name.endswith(".crc32c") for name in files)
    for name in files:
        if name.startswith("plain") or "/" not in name:
            assert after[name] == files[name]
    manager = open_logs(data)
    assert contents(manager) == before
    manager.close()


def test_a_dry_run_writes_nothing(data: Path, tmp_path: Path, capsys: Any) -> None:
    files = snapshot(data)
    reports = {}
    for words in (["--dry-run"], []):
        if not words:
            assert snapshot(data) == files
        report = tmp_path / "report"
        assert main(["--log-dirs", str(data), "--report", str(report), *words]) == 0
        reports[bool(words)] = json.loads(report.read_text())
    assert f"{data}: nothing is written" in capsys.readouterr().out
    assert reports[True]["dry_run"]
    assert reports[True]["log_dirs"] == reports[False]["log_dirs"]
    plain, wrapped = reports[False]["log_dirs"][0]["partitions"]
    assert (plain["topic"], plain["partition"], plain["converted"]) == ("plain", 1, 0)
    assert wrapped["wrappers"] == wrapped["made"] == 39
    assert wrapped["side_files"] == wrapped["segments"] - 1
    assert wrapped["bytes_after"] > wrapped["bytes_before"]
    assert wrapped["problems"] == []


def test_a_second_run_finds_nothing_to_do(data: Path, tmp_path: Path) -> None:
    assert main(["--log-dirs", str(data)]) == 0
    files = snapshot(data)
    report = tmp_path / "report"
    assert main(["--log-dirs", str(data), "--report", str(report)]) == 0
    assert snapshot(data) == files
    assert all(
        p["converted"] == 0 for p in json.loads(report.read_text())["log_dirs"][0]["partitions"]
    )


def test_settings_come_from_the_broker_s_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=0\nzookeeper.connect=z:1\nlog.dirs={data}\nmessage.max.bytes=150\n")
    report = tmp_path / "report"
    assert main(["--config", str(file), "--report", str(report), "--dry-run"]) == 0
    _, wrapped = json.loads(report.read_text())["log_dirs"][0]["partitions"]
    assert wrapped["made"] > wrapped["wrappers"]


def test_directories_in_use_are_refused(data: Path) -> None:
    directory = LogDirectory(str(data))
    with pytest.raises(KafkaError, match="using this directory"):
        main(["--log-dirs", str(data)])
    directory.unlock()
    assert main(["--log-dirs", str(data)]) == 0


def test_without_a_clean_shutdown_it_takes_force(data: Path, capsys: Any) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    files = snapshot(data)
    with pytest.raises(KafkaError, match="start it once more and stop it, or let --force"):
        main(["--log-dirs", str(data)])
    assert snapshot(data) == files
    assert main(["--log-dirs", str(data), "--force"]) == 0
    assert (data / ".kafka_cleanshutdown").exists()
    manager = open_logs(data)
    assert len(contents(manager)[WRAPPED]) == 400
    manager.close()


def test_gzip_at_another_level(data: Path) -> None:
    manager = open_logs(data)
    before = contents(manager)
    manager.close()
    assert main(["--log-dirs", str(data), "--gzip-level", "1"]) == 0
    manager = open_logs(data)
    assert contents(manager) == before
    manager.close()


def test_partitions_side_by_side(data: Path, tmp_path: Path) -> None:
    reports = []
    for words in (["--dry-run", "--processes", "1"], ["--processes", "2"]):
        report = tmp_path / "report"
        assert main(["--log-dirs", str(data), "--report", str(report), *words]) == 0
        reports.append(json.loads(report.read_text())["log_dirs"])
    assert reports[0] == reports[1]


def test_missing_indexes_are_rebuilt(data: Path, tmp_path: Path) -> None:
    for path in data.glob("*/*.index"):
        path.unlink()
    assert main(["--log-dirs", str(data)]) == 0
    assert len(list(data.glob("*/*.index"))) == len(list(data.glob("*/*.log")))


def test_damage_is_told(data: Path, capsys: Any) -> None:
    log = min((data / "wrapped-0").glob("*.log"))
    content = bytearray(log.read_bytes())
    content[50] ^= 4
    log.write_bytes(content)
    assert main(["--log-dirs", str(data)]) == 1
    assert capsys.readouterr().err == (
        f"[wrapped,0] left as it is: {log.name}: position 0, offset 9: wrong crc\n"
    )


def test_the_cleaner_s_points_become_bases(data: Path) -> None:
    checkpoint = OffsetCheckpoint(str(data / "cleaner-offset-checkpoint"))
    bases = sorted(int(path.stem) for path in (data / "plain-1").glob("*.log"))
    gone = TopicPartition("gone", 0)
    checkpoint.write({PLAIN: bases[1] + 1, WRAPPED: 0, gone: 5})
    assert main(["--log-dirs", str(data)]) == 0
    assert checkpoint.read() == {PLAIN: bases[1], WRAPPED: 0, gone: 5}


@pytest.mark.scenario("modern-55")
def test_later_formats_and_groups(data: Path, tmp_path: Path, capsys: Any) -> None:
    manager = open_logs(data)
    offsets = TopicPartition(OFFSETS_TOPIC, 3)
    log = manager.create_log(offsets, manager.default_config)
    commit = (encode_key(GroupPartition("g", "t", 0)), encode_value(Committed(5, "", 1)))
    group = (encode_group_key("g"), encode_group(GroupRecord("consumer", 1, None, None, [])))
    for record in (commit, group, commit, group):
        log.append(memoryview(bytearray(encode_set([record]))))
    manager.logs[PLAIN].append(memoryview(bytearray(batch(simple(b"a", b"b"), codec=4))))
    end = manager.logs[PLAIN].log_end_offset
    manager.close()
    for name in ("leader-epoch-checkpoint", "cleaning-times", f"{0:020d}.timeindex"):
        (data / "plain-1" / name).touch()
    report = tmp_path / "report.json"
    assert main(["--log-dirs", str(data), "--report", str(report)]) == 0
    rows = {
        each["topic"]: each for each in json.loads(report.read_text())["log_dirs"][0]["partitions"]
    }
    lost = ("later", "headers", "timestamps", "groups", "fillers")
    assert [rows["plain"][name] for name in lost] == [1, 2, 2, 0, 0]
    assert [rows[OFFSETS_TOPIC][name] for name in lost] == [2, 0, 0, 2, 1]
    assert sorted({path.suffix for path in (data / "plain-1").iterdir()}) == [".index", ".log"]
    manager = open_logs(data)
    assert manager.logs[PLAIN].log_end_offset == end
    assert manager.logs[PLAIN].later_formats.until(manager.logs[PLAIN].segments) == 0
    stored = manager.logs[offsets].read(0, 1 << 20).read()
    found = [message[:3] for message in iter_messages(stored)]
    assert found[:2] == [(0, *commit), (2, *commit)] and found[2][0] == 3
    manager.close()


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Rewrite compressed sets"):
        main([])
    with pytest.raises(UsageError, match=r"Provide \"\[config\]\" or"):
        main(["--dry-run"])
    with pytest.raises(UsageError, match="can't be used with"):
        main(["--log-dirs", str(tmp_path), "--dry-run", "--force"])
    with pytest.raises(KafkaError, match="There is no directory"):
        main(["--log-dirs", str(tmp_path / "nowhere")])
    with pytest.raises(UsageError, match="10 is not a level of gzip"):
        main(["--log-dirs", str(tmp_path), "--gzip-level", "10"])
    assert main(["--log-dirs", str(tmp_path)]) == 0


TRANSACTIONAL = TopicPartition("transactional", 0)


def stored(path: Path, tp: TopicPartition = TRANSACTIONAL) -> list[tuple[int, bytes | None]]:
    """Offset and value of each message, as any reader sees them."""
    return [
        (message.offset, message.value)
        for log in sorted((path / f"{tp.topic}-{tp.partition}").glob("*.log"))
        for message in iter_messages(log.read_bytes())
    ]


@pytest.fixture
def transactional(data: Path) -> Path:
    """Also a partition with transactions, of which one is open, in segments of an entry each."""
    path = data / "transactional-0"
    path.mkdir()
    for entry in transactional_log.STORED:
        base = int.from_bytes(entry[:8], "big")
        (path / f"{base:020d}.log").write_bytes(entry)
        (path / f"{base:020d}.txnindex").touch()
    return data


def test_open_transactions_are_not_decided_by_chance(transactional: Path, capsys: Any) -> None:
    before = snapshot(transactional / "transactional-0")
    assert main(["--log-dirs", str(transactional)]) == 1
    assert snapshot(transactional / "transactional-0") == before
    told = capsys.readouterr()
    assert "[transactional,0] left as it is: a transaction that began at offset 10" in told.err
    assert not (transactional / "plain-1" / f"{0:020d}.timeindex").exists(), "others are converted"
    with pytest.raises(UsageError, match="abort is not one of drop, keep"):
        main(["--log-dirs", str(transactional), "--open-transactions", "abort"])


@pytest.mark.parametrize("open_as", ["drop", "keep"])
def test_aborted_messages_are_left_out(transactional: Path, tmp_path: Path, open_as: str) -> None:
    report = tmp_path / "report.json"
    argv = ["--log-dirs", str(transactional), "--open-transactions", open_as]
    assert main([*argv, "--report", str(report)]) == 0
    expected: list[tuple[int, bytes | None]] = [*transactional_log.COMMITTED]
    expected += [(10, b"open")] if open_as == "keep" else []
    assert stored(transactional) == [*expected, (11, b"new")]
    assert not list((transactional / "transactional-0").glob("*.txnindex"))
    rows = json.loads(report.read_text())["log_dirs"][0]["partitions"]
    (row,) = [each for each in rows if each["topic"] == "transactional"]
    lost = 2 if open_as == "keep" else 3
    assert (row["aborted"], row["control"], row["fillers"]) == (lost, 4, 0)
    assert main(["--log-dirs", str(transactional)]) == 0
    assert stored(transactional) == [*expected, (11, b"new")]


def test_an_interrupted_conversion_leaves_out_the_same(
    transactional: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The markers of what was not reached are still there."""
    committed: list[str] = []
    commit = log_convert.conversion.commit

    def interrupted(log_path: str) -> None:
        """A run gets one segment further."""
        if committed:
            raise KeyboardInterrupt
        committed.append(log_path)
        commit(log_path)

    monkeypatch.setattr(log_convert.conversion, "commit", interrupted)
    argv = ["--log-dirs", str(transactional), "--open-transactions", "drop"]
    runs = 0
    while runs < 100:
        runs += 1
        committed.clear()
        with contextlib.suppress(KeyboardInterrupt):
            assert main(argv) == 0
            break
    assert 5 < runs < 100
    assert stored(transactional) == [*transactional_log.COMMITTED, (11, b"new")]


def test_a_log_that_ends_in_an_aborted_transaction_keeps_its_end(transactional: Path) -> None:
    (transactional / "transactional-0" / f"{11:020d}.log").unlink()
    assert main(["--log-dirs", str(transactional), "--open-transactions", "drop"]) == 0
    assert stored(transactional) == [*transactional_log.COMMITTED, (10, b"")]


def test_aborted_commits_of_offsets_are_left_out(data: Path) -> None:
    path = data / f"{OFFSETS_TOPIC}-3"
    path.mkdir()
    key = encode_key(GroupPartition("g", "t", 0))

    def commit(producer: int, base: int) -> bytes:
        value = encode_value(Committed(base, "", 1))
        fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
        return batch([(key, value, 0, [])], base, attributes=0x10, **fields)

    log = [commit(7, 0), commit(8, 1), transactional_log.marker(8, 2, COMMIT)]
    log += [transactional_log.marker(7, 3, ABORT)]
    (path / f"{0:020d}.log").write_bytes(b"".join(log))
    assert main(["--log-dirs", str(data)]) == 0
    found = stored(data, TopicPartition(OFFSETS_TOPIC, 3))
    assert [offset for offset, _ in found] == [1, 3]  # the last keeps the end
    assert found[0][1] == encode_value(Committed(1, "", 1))
