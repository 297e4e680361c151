"""kafka-log-scrub: damage found and segments sealed."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import KafkaError
from kafka08.log.directory import LogDirectory
from kafka08.log.segments import integrity
from tests.fakes.terminal import Terminal
from tests.tools.logs.scrubbing import (
    REPAIR,
    flip,
    make_log,
    run,
    sealed_segments,
    snapshot,
)
from tools.logs import log_scrub
from tools.logs.log_repair import Segment
from tools.logs.log_scrub import main
from tools.options import UsageError


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
        segments = log_scrub.sealed_segments(str(data))
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
        segment = log_scrub.sealed_segments(str(data))[1]
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
        verdict = verdict_of(log_scrub.sealed_segments(str(data))[0])
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


class TestProgress:
    def test_segments_that_are_only_counted_move_the_bar(
        self, data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        for path in data.rglob(f"*{integrity.SEAL_SUFFIX}"):
            path.unlink()
        assert main(["--log-dirs", str(data)]) == 0
        assert "Scrubbing: 100%" in terminal.getvalue()
        assert terminal.getvalue().endswith("\n")

    def test_an_error_begins_a_new_line(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(segment: Segment) -> Any:
            raise RuntimeError

        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(log_scrub, "check", failing)
        with pytest.raises(RuntimeError):
            main(["--log-dirs", str(data)])
        assert "Scrubbing:   0%" in terminal.getvalue()
        assert terminal.getvalue().endswith("\n")


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
