"""Damaged segments, repaired from a leader in memory."""

from __future__ import annotations

import functools
import os
import random
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.log.segments import integrity
from kafka08.log.segments.index import OffsetIndex
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages
from tests.tools.logs.scrubbing import (
    KEY,
    REPAIR,
    Leader,
    flip,
    run,
    sealed_segments,
    snapshot,
)
from tools.logs import log_repair, log_scrub


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
            (lambda leader: leader.leaders.update({KEY: -1}), "leader was not found"),
            (lambda leader: leader.down.add(9091), "was not found"),
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
            segment = log_scrub.sealed_segments(str(path))[0]
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
                        log_repair.Leaders(cluster, 0), segment, log_repair.SegmentLimits(0, 300)
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
