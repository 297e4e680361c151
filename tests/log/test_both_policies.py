"""Logs that are compacted and also lose old segments (``cleanup.policy=compact,delete``)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.log.cleaning.cleaner import POLL_SECONDS
from kafka08.log.cleaning.cleaner_job import Job
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from tests.fakes.runtime import FakeClock
from tests.log.cleaning.support import (
    KEY,
    InlineProcess,
    broker_config,
    clean_once,
    drive,
    keys,
    no_bound,
    put_keys,
    up_to,
)

POLICIES = ["compact,delete", "delete,compact", " Compact , Delete "]
HOUR = 3_600_000


class LogUnderPolicy:
    """A broker's logs with one log of small segments; ``policy`` is its cleanup.policy."""

    def __init__(self, directory: Path, policy: str, **changes: str) -> None:
        self.clock = FakeClock()
        self.settings = {
            "cleanup.policy": policy,
            "segment.bytes": "170",
            "min.cleanable.dirty.ratio": "0",
            "retention.ms": str(HOUR),
            **{key.replace("_", "."): value for key, value in changes.items()},
        }
        self.manager = LogManager(
            broker_config(directory), clock=self.clock, topic_configs={"t": self.settings}
        )
        self.manager.load()
        assert self.manager.cleaner is not None
        self.cleaner = self.manager.cleaner
        self.cleaner._start = InlineProcess
        self.log: Log = self.manager.create_log(KEY, self.manager.config_for("t"))

    def set_policy(self, policy: str) -> None:
        self.settings["cleanup.policy"] = policy
        self.log.config = self.manager.config_for("t")

    def put(self, text: str) -> None:
        """Messages of now, in files of now."""
        first = self.log.segments[-1].base_offset
        put_keys(self.log, text)
        for segment in self.log.segments:
            if segment.base_offset >= first:
                os.utime(segment.path, ns=(self.clock.now_ms * 10**6,) * 2)

    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.log.segments]


@pytest.mark.parametrize("policy", POLICIES)
def test_old_segments_go_whether_cleaned_or_not(tmp_path: Path, policy: str) -> None:
    rig = LogUnderPolicy(tmp_path, policy)
    rig.put("abacx")
    assert clean_once(rig.cleaner) and keys(rig.log) == "bacx"
    rig.clock.now_ms += HOUR // 2
    rig.put("ydz")
    assert rig.manager.cleanup() == [] and keys(rig.log) == "bacxydz"
    rig.clock.now_ms += HOUR // 2 + 1
    assert rig.manager.cleanup() == []
    assert keys(rig.log) == "xydz" and rig.log.log_start_offset == 4
    rig.clock.now_ms += HOUR
    assert rig.manager.cleanup() == []
    assert keys(rig.log) == "" and rig.bases() == [8]  # the active one was closed and went too


def test_the_oldest_go_by_size(tmp_path: Path) -> None:
    rig = LogUnderPolicy(tmp_path, "compact,delete", retention_ms="-1", retention_bytes="170")
    rig.put("abcdefgx")
    assert clean_once(rig.cleaner)
    assert rig.log.size >= 170
    assert rig.manager.cleanup() == []
    assert 170 <= rig.log.size < 340 and keys(rig.log) == "efgx"


def test_deleted_records_go(tmp_path: Path) -> None:
    rig = LogUnderPolicy(tmp_path, "compact,delete")
    rig.put("abacx")
    rig.log.delete_records(4)
    assert rig.manager.cleanup() == [] and rig.bases() == [4]
    assert not clean_once(rig.cleaner)


def test_only_compaction_deletes_nothing(tmp_path: Path) -> None:
    rig = LogUnderPolicy(tmp_path, "compact", retention_bytes="0")
    rig.put("abacx")
    rig.clock.now_ms += 2 * HOUR
    assert rig.manager.cleanup() == []
    assert clean_once(rig.cleaner) and keys(rig.log) == "bacx"


def test_records_deleted_before_the_policy_changed_go_too(tmp_path: Path) -> None:
    rig = LogUnderPolicy(tmp_path, "delete")
    rig.put("abacx")
    rig.log.delete_records(2)
    rig.set_policy("compact")
    assert rig.manager.cleanup() == [] and rig.bases() == [2, 4]


def test_a_checkpoint_below_the_new_start(tmp_path: Path) -> None:
    """Cleaning goes on at the start, and the checkpoint names it."""
    rig = LogUnderPolicy(tmp_path, "compact,delete")
    rig.put("abacx")
    assert clean_once(rig.cleaner) and rig.cleaner.checkpoint(rig.log) == 4
    rig.put("efghijk")
    rig.clock.now_ms += HOUR + 1
    rig.put("llmmn")
    rig.manager.cleanup()
    start = rig.log.log_start_offset
    assert start > 4
    found = rig.cleaner.grab_filthiest_log(no_bound)
    assert found is not None and found.first_dirty_offset == start
    drive(rig.cleaner.clean(found))
    assert rig.cleaner.checkpoint(rig.log) == found.end_offset
    assert keys(rig.log).count("l") == keys(rig.log).count("m") == 1


class SlowCompaction(InlineProcess):
    """A compaction that says nothing at first; then as InlineProcess."""

    waits = 2

    def poll(self) -> list[dict[str, Any]]:
        if self.waits:
            self.waits -= 1
            return []
        return super().poll()


def test_segments_under_cleaning_stay_until_it_ends(tmp_path: Path) -> None:
    rig = LogUnderPolicy(tmp_path, "compact,delete")
    rig.put("abacx")
    other = TopicPartition("t", 1)
    put_keys(rig.manager.create_log(other, rig.manager.config_for("t")), "abc")
    jobs: list[Job] = []

    def start(job: Job) -> SlowCompaction:
        jobs.append(job)
        return SlowCompaction(job)

    rig.cleaner._start = start
    found = rig.cleaner.grab_filthiest_log(lambda key: up_to(sys.maxsize if key == KEY else 0))
    assert found is not None
    steps = rig.cleaner.clean(found)
    next(steps)()
    assert next(steps) == POLL_SECONDS
    rig.clock.now_ms = 1 << 50
    assert rig.manager.cleanup() == []
    assert rig.bases() == [0, 2, 4]
    assert rig.manager.logs[other].log_start_offset == 3  # others do not wait
    drive(steps)
    assert len(jobs) == 1 and rig.bases() == [5]
    assert rig.cleaner.checkpoint(rig.log) == 4 and not rig.cleaner.is_cleaning(KEY)
    assert not list(Path(rig.log.directory).glob("*.swap"))


@pytest.mark.parametrize("polls", range(8))
def test_retention_at_each_step_of_a_cleaning(tmp_path: Path, polls: int) -> None:
    """Between the two steps of a swap too."""
    rig = LogUnderPolicy(tmp_path, "compact,delete")
    rig.put("abacx")
    found = rig.cleaner.grab_filthiest_log(no_bound)
    assert found is not None
    rig.clock.now_ms = 1 << 50
    for number, wish in enumerate(rig.cleaner.clean(found)):
        if number == polls:
            rig.manager.cleanup()
        if callable(wish):
            wish()
    assert rig.bases() == [5] and rig.cleaner.checkpoint(rig.log) == 4


def test_policies_change_at_run_time(tmp_path: Path) -> None:
    rig = LogUnderPolicy(tmp_path, "compact")
    rig.put("abacx")
    assert clean_once(rig.cleaner) and keys(rig.log) == "bacx"
    rig.set_policy("delete")
    rig.put("xxy")
    assert not clean_once(rig.cleaner)
    rig.clock.now_ms += HOUR + 1
    rig.put("yyz")
    rig.manager.cleanup()
    assert "b" not in keys(rig.log) and keys(rig.log).count("y") == 3
    rig.set_policy("compact,delete")
    assert clean_once(rig.cleaner) and keys(rig.log).count("y") == 1
    rig.set_policy("compact")
    rig.clock.now_ms += 2 * HOUR
    before = keys(rig.log)
    rig.manager.cleanup()
    assert keys(rig.log) == before


def test_a_change_to_deletion_alone_ends_a_cleaning(tmp_path: Path) -> None:
    rig = LogUnderPolicy(tmp_path, "compact,delete")
    rig.put("abacx")
    rig.cleaner._start = SlowCompaction
    found = rig.cleaner.grab_filthiest_log(no_bound)
    assert found is not None
    steps = rig.cleaner.clean(found)
    next(steps)()
    next(steps)
    rig.set_policy("delete")
    drive(steps)
    assert keys(rig.log) == "abacx" and not rig.cleaner.is_cleaning(KEY)
    rig.clock.now_ms = 1 << 50
    rig.manager.cleanup()
    assert rig.bases() == [5]


def test_both_at_once_do_not_end_a_cleaning(tmp_path: Path) -> None:
    rig = LogUnderPolicy(tmp_path, "compact")
    rig.put("abacx")
    rig.cleaner._start = SlowCompaction
    found = rig.cleaner.grab_filthiest_log(no_bound)
    assert found is not None
    steps = rig.cleaner.clean(found)
    next(steps)()
    next(steps)
    rig.set_policy("compact,delete")
    drive(steps)
    assert keys(rig.log) == "bacx"
