"""kafka-log-scrub: damage found, segments sealed, and repaired from a leader in memory."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker, TopicPartition
from kafka08.config import BrokerConfig
from kafka08.errors import KafkaError
from kafka08.log import integrity
from kafka08.log.directory import LogDirectory
from kafka08.log.index import OffsetIndex
from kafka08.log.manager import LogManager
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages
from kafka08.message.wrappers import absolute_slice
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeClock
from tests.log.support import values
from tools.logs import log_repair, log_scrub
from tools.logs.log_repair import Segment
from tools.logs.log_scrub import main
from tools.options import UsageError

KEY = TopicPartition("t", 0)
REPAIR = ["--repair", "--bootstrap-server", "b1:9091", "--broker-id", "0"]


def make_log(path: Path, *, sealed: bool = True) -> None:
    """Plain and compressed sets by turns in a dozen segments, closed cleanly."""
    config = BrokerConfig.from_properties(
        {
            "broker.id": "0",
            "zookeeper.connect": "none",
            "log.dirs": str(path),
            "log.segment.bytes": "1500",
            "log.index.interval.bytes": "300",
            "log.cleaner.enable": "false",
        }
    )
    manager = LogManager(config, clock=FakeClock(), topic_configs={})
    manager.load()
    log = manager.create_log(KEY, manager.default_config)
    noise = random.Random(3)
    for number in range(30):
        texts = [noise.randbytes(20).hex() for _ in range(8)]
        log.append(memoryview(bytearray(encode_set(values(*texts), number % 2))))
    manager.close()
    for segment in sealed_segments(path) if sealed else ():
        made = integrity.write(str(segment), integrity.summed(str(segment)))
        os.replace(made, integrity.seal_path(str(segment)))


def sealed_segments(path: Path) -> list[Path]:
    return sorted((path / "t-0").glob("*.log"))[:-1]


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        (byte,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pristine") / "data"
    make_log(path)
    return path


@pytest.fixture
def data(pristine: Path, tmp_path: Path) -> Path:
    path = tmp_path / "data"
    shutil.copytree(pristine, path)
    return path


def snapshot(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def run(capsys: Any, data: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    status = main(["--log-dirs", str(data), "--json", *words])
    return status, json.loads(capsys.readouterr().out)


class TestCheck:
    def test_all_is_well(self, data: Path, capsys: Any) -> None:
        files = snapshot(data)
        assert main(["--log-dirs", str(data)]) == 0
        header, row = capsys.readouterr().out.splitlines()
        assert header.split() == [
            "PARTITION", "SEGMENTS", "INTACT", "UNSEALED", "SEALED", "REPAIRED", "DAMAGED",
        ]  # fmt: skip
        count = str(len(sealed_segments(data)))
        assert row.split() == ["[t,0]", count, count, "0", "0", "0", "0"]
        assert snapshot(data) == files

    def test_damage_is_told(self, data: Path, capsys: Any) -> None:
        path = sealed_segments(data)[2]
        flip(path, 8 * 300)
        assert main(["--log-dirs", str(data)]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[1].split()[-1] == "1"
        assert lines[2].startswith(f"{path} damaged: {path.stat().st_size} bytes with crc-32c ")
        assert "; first at position " in lines[2]
        assert lines[2].endswith(": wrong crc")

    def test_a_thousand_flipped_bits(self, data: Path) -> None:
        """Each of them, wherever it is: in offsets and sizes too, which no message's crc covers."""
        segments = log_scrub._sealed_segments(str(data))
        noise = random.Random(11)
        for _ in range(1000):
            segment = noise.choice(segments)
            path = Path(segment.log_path)
            bit = noise.randrange(path.stat().st_size * 8)
            flip(path, bit)
            assert verdict_of(segment).state == log_scrub.DAMAGED
            flip(path, bit)
        assert {verdict_of(segment).state for segment in segments} == {log_scrub.INTACT}

    def test_a_broker_may_run(self, data: Path, capsys: Any) -> None:
        directory = LogDirectory(str(data))
        (data / ".kafka_cleanshutdown").unlink()
        status, found = run(capsys, data)
        assert status == 0
        assert {each["state"] for each in found} == {"intact"}
        for words in (["--seal"], REPAIR):
            with pytest.raises(KafkaError, match="using this directory"):
                run(capsys, data, *words)
        directory.unlock()
        with pytest.raises(KafkaError, match="did not stop cleanly"):
            run(capsys, data, "--seal")

    @pytest.mark.parametrize("what", ["cut", "deleted", "replaced"])
    def test_what_a_broker_changes_meanwhile_is_no_damage(
        self, data: Path, monkeypatch: pytest.MonkeyPatch, what: str
    ) -> None:
        segment = log_scrub._sealed_segments(str(data))[1]
        path = Path(segment.log_path)
        sum_up = integrity.sum_up

        def racing(log_path: str) -> Iterator[int]:
            monkeypatch.setattr(integrity, "sum_up", sum_up)
            integrity.remove(log_path)
            if what == "deleted":
                path.unlink()
            elif what == "cut":
                os.truncate(path, 10)
            else:
                path.write_bytes(b"other bytes")
                os.replace(
                    integrity.write(log_path, integrity.summed(log_path)),
                    integrity.seal_path(log_path),
                )
            if what == "deleted":
                raise FileNotFoundError
            return (yield from sum_up(log_path))

        monkeypatch.setattr(integrity, "sum_up", racing)
        expected = {"deleted": log_scrub.GONE, "cut": log_scrub.UNSEALED}
        assert verdict_of(segment).state == expected.get(what, log_scrub.INTACT)

    def test_what_cannot_be_read(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(path: str) -> Iterator[int]:
            raise OSError(5, "Input/output error")
            yield

        monkeypatch.setattr(integrity, "sum_up", failing)
        verdict = verdict_of(log_scrub._sealed_segments(str(data))[0])
        assert (verdict.state, verdict.damage) == ("damaged", "cannot be read: Input/output error")


def verdict_of(segment: Segment) -> log_scrub.Verdict:
    work = log_scrub.check(segment)
    while True:
        try:
            next(work)
        except StopIteration as end:
            verdict: log_scrub.Verdict = end.value
            return verdict


class TestSeal:
    def test_what_has_no_side_file(self, tmp_path: Path, capsys: Any) -> None:
        make_log(tmp_path, sealed=False)
        damaged = sealed_segments(tmp_path)[1]
        flip(damaged, 8 * 100)
        status, found = run(capsys, tmp_path)
        assert (status, {each["state"] for each in found}) == (0, {"unsealed"})
        status, found = run(capsys, tmp_path, "--seal")
        assert status == 1
        states = [each["state"] for each in found]
        assert states.count("sealed") == len(states) - 1
        assert states[1] == "damaged"
        assert found[1]["remark"] == "not sealed"
        for path in sealed_segments(tmp_path):
            assert integrity.is_intact(str(path)) == (path != damaged)
        assert not list((tmp_path / "t-0").glob("*.tmp"))


class Leader(FakeCluster):
    """Broker 1 leads with what was stored; wrappers are rebuilt for consumers."""

    def __init__(self, path: Path) -> None:
        super().__init__([Broker(1, "b1", 9091)])
        self.create("t", 1, leader=1)
        self.asked: list[tuple[int, int]] = []
        for log in sorted((path / "t-0").glob("*.log")):
            content = log.read_bytes()
            for entry in iter_entries(content):
                piece = content[entry.position : entry.position + entry.size_total]
                self.logs[KEY].append((entry.offset, piece))

    def _FetchRequest(self, port: int, request: Any) -> Any:
        response = super()._FetchRequest(port, request)
        (topic,) = response.topics
        (answer,) = topic.partitions
        self.asked.append((request.replica_id, request.topics[0].partitions[0].offset))
        if request.replica_id < 0:
            data = absolute_slice(bytes(answer.message_set), max_bytes=1 << 30)
            answer = answer._replace(message_set=memoryview(data))
        return schemas.FetchResponse([schemas.FetchTopicResponse("t", [answer])])


@pytest.fixture
def leader(data: Path, monkeypatch: pytest.MonkeyPatch) -> Leader:
    leader = Leader(data)
    monkeypatch.setattr(
        log_scrub, "ClusterClient", functools.partial(ClusterClient, channel=leader.channel)
    )
    return leader


class TestRepair:
    def test_every_segment_becomes_what_it_was(
        self, data: Path, leader: Leader, capsys: Any
    ) -> None:
        files = snapshot(data)
        times = [path.stat().st_mtime_ns for path in sealed_segments(data)]
        noise = random.Random(5)
        for path in sealed_segments(data):
            flip(path, noise.randrange(path.stat().st_size * 8))
            os.utime(path, ns=(times[0], times[0]))
        status, found = run(capsys, data, *REPAIR)
        assert status == 0
        assert {each["state"] for each in found} == {"repaired"}
        assert {each["remark"] for each in found} == {"as it was sealed"}
        assert snapshot(data) == files
        assert {path.stat().st_mtime_ns for path in sealed_segments(data)} == {times[0]}
        assert run(capsys, data)[0] == 0

    def test_the_leader_is_never_told_of_an_end_at_or_above_its_high_watermark(
        self, data: Path, leader: Leader, capsys: Any
    ) -> None:
        for path in sealed_segments(data):
            flip(path, 1000)
        run(capsys, data, *REPAIR)
        own = [offset for replica, offset in leader.asked if replica == 0]
        assert own
        assert max(own) < leader.end(KEY)
        assert {replica for replica, _ in leader.asked} == {0, -2}

    def test_plain_sets_leave_no_trace(self, data: Path, leader: Leader, capsys: Any) -> None:
        leader.logs[KEY] = [
            (offset, piece) for offset, piece in leader.logs[KEY] if piece[17] & 7 == 0
        ]
        flip(sealed_segments(data)[0], 77)
        status, found = run(capsys, data, *REPAIR)
        assert (status, found[0]["remark"]) == (0, "the leader's messages, in other bytes")
        assert {replica for replica, _ in leader.asked} == {-2}

    def test_other_bytes_with_the_same_messages(
        self, data: Path, leader: Leader, capsys: Any
    ) -> None:
        """The leader has been cleaned further."""
        path = sealed_segments(data)[3]
        bases = [int(p.stem) for p in sorted((data / "t-0").glob("*.log"))]
        base, end = next((a, b) for a, b in pairwise(bases) if a == int(path.stem))
        inside = [offset for offset, _ in leader.logs[KEY] if base <= offset < end]
        leader.logs[KEY] = [row for row in leader.logs[KEY] if row[0] != inside[0]]
        wanted = b"".join(piece for offset, piece in leader.logs[KEY] if base <= offset < end)
        flip(path, 1234)
        status, found = run(capsys, data, *REPAIR)
        assert status == 0
        assert found[3]["remark"] == "the leader's messages, in other bytes"
        assert path.read_bytes() == wanted
        assert integrity.is_intact(str(path))
        index = OffsetIndex(str(path.with_suffix(".index")), base)
        assert index.problem(len(wanted), thorough=True) is None
        for slot in range(index.entries):
            offset, position = index.entry(slot)
            assert next(iter_messages(wanted[position:])).offset == offset
        index.close()
        assert not list(path.parent.glob("*.repaired"))

    @pytest.mark.parametrize("number", [0, 1])
    def test_sets_that_straddle_our_segments_are_no_repair(
        self, data: Path, leader: Leader, capsys: Any, number: int
    ) -> None:
        path = sealed_segments(data)[number]
        bound = int(sealed_segments(data)[1].stem)
        content = b"".join(piece for _, piece in leader.logs[KEY])
        messages = [m for m in iter_messages(content) if bound - 3 <= m.offset < bound + 3]
        around = encode_set([(m.key, m.value) for m in messages], 1, base_offset=bound - 3)
        rows = [
            (offset, piece)
            for offset, piece in leader.logs[KEY]
            if not bound - 3 <= offset < bound + 3
        ]
        leader.logs[KEY] = sorted([*rows, (bound + 2, around)])
        flip(path, 321)
        status, found = run(capsys, data, *REPAIR)
        assert status == 1
        assert found[number]["remark"].endswith("straddles segments")

    @pytest.mark.parametrize(
        ("spoil", "text"),
        [
            (lambda leader: leader.starts.update({KEY: 50}), "has no offset 0: OffsetOutOfRange"),
            (lambda leader: leader.logs[KEY].clear(), "has committed only up to 0"),
            (lambda leader: leader.logs.update({KEY: leader.logs[KEY][:1]}), "only up to 1"),
            (lambda leader: leader.leaders.update({KEY: -1}), "leader is not to be found"),
            (lambda leader: leader.down.add(9091), "not to be found"),
            (
                lambda leader: leader.logs[KEY].insert(
                    0, (0, leader.logs[KEY][0][1][:-1] + b"\xfe")
                ),
                "leader's copy is damaged at offset 0",
            ),
        ],
    )
    def test_what_the_leader_cannot_give(
        self, data: Path, leader: Leader, capsys: Any, spoil: Any, text: str
    ) -> None:
        flip(sealed_segments(data)[0], 321)
        files = snapshot(data)
        spoil(leader)
        status, found = run(capsys, data, *REPAIR)
        assert status == 1
        assert found[0]["state"] == "damaged"
        assert found[0]["remark"].startswith("left as it is: ")
        assert text in found[0]["remark"]
        assert snapshot(data) == files

    def test_a_leader_s_logs_are_not_repaired(
        self, data: Path, leader: Leader, capsys: Any
    ) -> None:
        flip(sealed_segments(data)[0], 321)
        _, found = run(capsys, data, *REPAIR[:-1], "1")
        assert found[0]["remark"] == "left as it is: this broker leads the partition"

    @pytest.mark.parametrize("same", [True, False])
    def test_a_crash_at_any_step_leaves_a_log_that_opens(
        self,
        pristine: Path,
        tmp_path: Path,
        leader: Leader,
        monkeypatch: pytest.MonkeyPatch,
        same: bool,
    ) -> None:
        if not same:
            del leader.logs[KEY][1]
        for steps in range(30):
            path = tmp_path / str(steps)
            shutil.copytree(pristine, path)
            segment = log_scrub._sealed_segments(str(path))[0]
            flip(Path(segment.log_path), 321)
            left = [steps]

            def counted(call: Any, left: list[int] = left) -> Any:
                def wrapper(*words: Any, **options: Any) -> Any:
                    if not left[0]:
                        raise ZeroDivisionError
                    left[0] -= 1
                    return call(*words, **options)

                return wrapper

            cluster = ClusterClient([("b1", 9091)], channel=leader.channel)
            with monkeypatch.context() as patch:
                for name in ("replace", "unlink", "fsync", "utime"):
                    patch.setattr(os, name, counted(getattr(os, name)))
                try:
                    for _ in log_repair.repair(
                        log_repair.Leaders(cluster, 0), segment, log_repair.Limits(0, 300)
                    ):
                        pass
                    finished = True
                except ZeroDivisionError:
                    finished = False
            index = OffsetIndex(segment.log_path.removesuffix(".log") + ".index", 0)
            size = os.stat(segment.log_path).st_size
            assert index.problem(size, thorough=True) is None
            with open(segment.log_path, "rb") as file:
                positions = {entry.position for entry in iter_entries(file.read())}
            assert all(index.entry(slot)[1] in positions for slot in range(index.entries))
            index.close()
            seal = integrity.read(segment.log_path)
            repaired = integrity.find_damage(segment.log_path) is None
            if repaired and seal is not None:
                assert integrity.is_intact(segment.log_path)
            assert repaired or not finished
            if finished:
                assert steps > 5
                return
        raise AssertionError("never finished")


def test_refusals(data: Path) -> None:
    with pytest.raises(UsageError, match="Look for damage"):
        main([])
    with pytest.raises(UsageError, match=r"Provide \"\[config\]\""):
        main(["--seal"])
    with pytest.raises(UsageError, match=r"\[bootstrap-server\]"):
        main(["--log-dirs", str(data), "--repair"])
    with pytest.raises(UsageError, match=r"\[broker-id\]"):
        main(["--log-dirs", str(data), *REPAIR[:3]])
    with pytest.raises(UsageError, match="host1:9091"):
        main(["--log-dirs", str(data), "--repair", "--broker-list", "b1", "--broker-id", "0"])
