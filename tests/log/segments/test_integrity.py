"""Side files: their content, when they are not valid, and their use in recovery."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from kafka08.log.log import Log
from kafka08.log.recovery import recovery
from kafka08.log.segments import integrity
from kafka08.log.segments.integrity import Damage, Seal
from tests.log.support import append, crash_copy, everything, fill, open_log, segment_paths


@pytest.fixture
def log_path(tmp_path: Path) -> str:
    path = tmp_path / f"{7:020d}.log"
    path.write_bytes(bytes(range(256)) * 40)
    return str(path)


class TestFile:
    def test_is_what_was_written(self, log_path: str) -> None:
        seal = integrity.summed(log_path)
        assert seal == Seal(10_240, crc32c(bytes(range(256)) * 40))
        made = integrity.write(log_path, seal)
        assert integrity.read(log_path) is None
        os.replace(made, integrity.seal_path(log_path))
        assert integrity.read(log_path) == seal
        assert integrity.is_intact(log_path)
        integrity.remove(log_path)
        integrity.remove(log_path)
        assert integrity.read(log_path) is None
        assert not integrity.is_intact(log_path)

    @pytest.mark.parametrize("piece", [1, 1000, 10_240, 10_241])
    def test_the_sum_is_the_same_in_pieces_of_any_size(self, log_path: str, piece: int) -> None:
        pieces = integrity.sum_up(log_path, piece)
        counts = []
        while True:
            try:
                counts.append(next(pieces))
            except StopIteration as end:
                assert end.value == integrity.summed(log_path)
                break
        assert sum(counts) == 10_240
        assert max(counts) <= piece

    @pytest.mark.parametrize(
        "garbage",
        [
            b"",
            b"0",
            b"0\n",
            b"0\n12",
            b"0\nx y\n",
            b"1\n10240 00000000\n",
            b"\xff" * 200,
            b"9" * 99,
        ],
    )
    def test_garbage_vouches_for_nothing(self, log_path: str, garbage: bytes) -> None:
        Path(integrity.seal_path(log_path)).write_bytes(garbage)
        assert integrity.read(log_path) is None
        assert not integrity.is_intact(log_path)

    def test_a_directory_of_that_name_vouches_for_nothing(self, log_path: str) -> None:
        os.mkdir(integrity.seal_path(log_path))
        assert integrity.read(log_path) is None

    @pytest.mark.parametrize("change", [b"", b"x"])
    def test_another_size_is_seen_without_reading(
        self, log_path: str, change: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        os.replace(
            integrity.write(log_path, integrity.summed(log_path)), integrity.seal_path(log_path)
        )
        content = Path(log_path).read_bytes()
        Path(log_path).write_bytes(content + change if change else content[:-1])
        monkeypatch.setattr(integrity, "summed", None)
        assert not integrity.is_intact(log_path)

    def test_works_where_the_file_system_cannot_say_what_is_cached(
        self, log_path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = integrity.summed(log_path)
        monkeypatch.setattr(integrity, "_NOWAIT", 0)
        assert integrity.summed(log_path) == expected


class TestFindDamage:
    """Three entries at 0, 37 and 74, of offsets 0 to 2."""

    def damaged(self, tmp_path: Path, at: int, data: bytes) -> Damage | None:
        log = open_log(tmp_path)
        for _ in range(3):
            append(log, "x" * 11)
        (path,) = segment_paths(log.directory)
        content = bytearray(path.read_bytes())
        assert len(content) == 3 * 37
        content[at : at + len(data)] = data
        path.write_bytes(content)
        return integrity.find_damage(str(path))

    @pytest.mark.parametrize(
        ("at", "data", "expected"),
        [
            (0, b"", None),
            (37 + 30, b"?", Damage(37, 1, "wrong crc")),
            (37 + 7, b"\0", Damage(37, 1, "offset 0 does not rise")),
            (74 + 10, b"\xff", Damage(74, 2, "size 65305 goes past the end")),
            (74 + 8, b"\0\0\0\x0d", Damage(74, 2, "size 13 is too small for a message")),
            (74 + 8, b"\xff", Damage(74, 2, "size -16777191 is too small for a message")),
            (111, b"\0" * 5, Damage(111, 3, "cut short")),
        ],
    )
    def test_tells_the_first(
        self, tmp_path: Path, at: int, data: bytes, expected: Damage | None
    ) -> None:
        assert self.damaged(tmp_path, at, data) == expected


def sealed_log(tmp_path: Path, **changes: Any) -> Log:
    """Offsets 0-1, 2-3, 4-5, 6; the first three segments sealed, none known to be flushed."""
    log = open_log(tmp_path, segment_bytes=200, **changes)
    fill(log, 7)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6]
    for segment in log.segments[:-1]:
        assert log.seal(segment, integrity.summed(segment.path), log.truncations)
    return log


def seals(log: Log) -> list[str]:
    return sorted(name[18:] for name in os.listdir(log.directory) if ".crc32c" in name)


class TestRecovery:
    @pytest.fixture
    def recovered(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Base offsets of the segments that were decoded."""
        bases: list[int] = []
        real = recovery.recover

        def recover(segment: Any, *args: Any) -> Any:
            bases.append(segment.base_offset)
            return real(segment, *args)

        monkeypatch.setattr(recovery, "recover", recover)
        return bases

    def test_decodes_no_segment_that_is_as_sealed(
        self, tmp_path: Path, recovered: list[int]
    ) -> None:
        log = sealed_log(tmp_path)
        found = open_log(crash_copy(log, tmp_path / "copy").parent)
        assert recovered == [6]
        assert everything(found) == everything(log)
        assert seals(found) == ["00.crc32c", "02.crc32c", "04.crc32c"]

    def test_decodes_one_that_is_not(self, tmp_path: Path, recovered: list[int]) -> None:
        log = sealed_log(tmp_path)
        path = segment_paths(log.directory)[1]
        path.write_bytes(path.read_bytes()[:-1])
        found = open_log(crash_copy(log, tmp_path / "copy").parent)
        assert recovered == [2]
        assert found.log_end_offset == 3
        assert seals(found) == ["00.crc32c"]

    def test_the_last_segment_is_never_taken_on_trust(
        self, tmp_path: Path, recovered: list[int]
    ) -> None:
        log = sealed_log(tmp_path)
        copy = crash_copy(log, tmp_path / "copy")
        segment_paths(str(copy))[-1].unlink()
        found = open_log(copy.parent)
        assert recovered == [4]
        assert seals(found) == ["00.crc32c", "02.crc32c"]

    def test_side_files_without_a_log_go(self, tmp_path: Path) -> None:
        log = sealed_log(tmp_path)
        Path(integrity.seal_path(f"{log.directory}/{99:020d}.log")).write_text("0\n1 2\n")
        log.close()
        assert seals(open_log(tmp_path)) == ["00.crc32c", "02.crc32c", "04.crc32c"]


class TestLog:
    def test_truncation_removes_them_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = sealed_log(tmp_path)
        seen: list[list[str]] = []
        real = os.ftruncate
        monkeypatch.setattr(os, "ftruncate", lambda *a: (seen.append(seals(log)), real(*a))[1])
        log.truncate_to(3)
        assert seen[0] == ["00.crc32c"]

    def test_truncation_to_a_segment_s_end_leaves_it_open_for_appends(self, tmp_path: Path) -> None:
        log = sealed_log(tmp_path)
        log.truncate_to(4)
        log.truncate_to(4)
        assert seals(log) == ["00.crc32c", "02.crc32c"]
        assert log.segments[-1].base_offset == 4

    def test_deleted_segments_lose_theirs(self, tmp_path: Path) -> None:
        log = sealed_log(tmp_path, retention_bytes=300)
        assert log.delete_old_segments()
        assert len(seals(log)) == len(log.segments) - 1

    @pytest.mark.parametrize("unsealed", ["truncation", "active", "deleted"])
    def test_nothing_is_sealed_that_changed_meanwhile(self, tmp_path: Path, unsealed: str) -> None:
        log = open_log(tmp_path, segment_bytes=200)
        fill(log, 7)
        segment, truncations = log.segments[1], log.truncations
        if unsealed == "truncation":
            log.truncate_to(6)
        elif unsealed == "active":
            segment = log.segments[-1]
        else:
            log.config = log.config.override({"retention.bytes": "100"})
            log.delete_old_segments()
        assert not log.seal(segment, Seal(1, 2), truncations)
        assert seals(log) == []
