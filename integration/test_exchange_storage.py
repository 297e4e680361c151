"""What retention, truncation and cleaning leave, in several data directories, taken over by the
other broker; and DumpLogSegments of both kinds over the same files, line for line.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import Broker, Process, Tools, ZooKeeper
from integration.wire import Entry, Wire, entry, gzip_set, wait_until
from kafka08.common import TopicPartition
from kafka08.config import BrokerConfig
from kafka08.log.manager import LogManager
from kafka08.runtime import SystemClock

TOPICS = {
    "plain": {},
    "retained": {"retention.bytes": 30_000},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01},
}
PARTITIONS = 2
KEYS = 50
PROPS = {
    "log.segment.bytes": 10_000,
    "log.index.interval.bytes": 500,
    "log.index.size.max.bytes": 10_000,
    "log.cleaner.enable": "true",
    "log.cleaner.dedupe.buffer.size": 8 << 20,
    "log.cleaner.backoff.ms": 200,
    "log.retention.check.interval.ms": 1000,
    "log.segment.delete.delay.ms": 500,
}
original = pytest.mark.original
Contents = dict[tuple[str, int], list[Entry]]


def fill(wire: Wire, round_: int, compressed: bool) -> None:
    noise = random.Random(round_)
    for topic in TOPICS:
        for number in range(PARTITIONS):
            for i in range(150):
                records: list[tuple[bytes | None, bytes | None]] = [
                    (b"key-%d" % noise.randrange(KEYS), b"%d-%d-%d" % (round_, i, j) * 10)
                    for j in range(10)
                ]
                if compressed and i % 2:
                    wire.produce(topic, number, gzip_set(records))
                else:
                    data = b"".join(entry(key, value) for key, value in records)
                    wire.produce(topic, number, data)


def contents(wire: Wire) -> Contents:
    found = {}
    for topic in TOPICS:
        for number in range(PARTITIONS):
            start = wire.offset(topic, number, -2)
            found[topic, number] = wire.read_all(topic, number, start)
    return found


def tidy(broker: Broker) -> None:
    """Until retention and cleaning have done their work."""

    def done() -> bool:
        with broker.wire() as wire:
            for number in range(PARTITIONS):
                if not wire.offset("retained", number, -2):
                    return False
                keys = [e.key for e in wire.read_all("compacted", number)]
                if len(keys) > 800:
                    return False
        return True

    wait_until("retention and cleaning", 60, done)
    time.sleep(2)  # what is under way


def truncate(directories: list[Path]) -> None:
    """Cut a log at an entry of a sealed segment, as a follower does, between two runs."""
    config = BrokerConfig.from_properties(
        {
            "broker.id": "0",
            "zookeeper.connect": "unused:1",
            "log.dirs": ",".join(map(str, directories)),
            **{k: str(v) for k, v in PROPS.items() if k.startswith("log.index")},
        }
    )
    manager = LogManager(config, clock=SystemClock(), topic_configs={})
    manager.load()
    manager.truncate_to({TopicPartition("plain", 0): 700})
    assert manager.logs[TopicPartition("plain", 0)].log_end_offset == 700
    manager.close()


def dump(tools: Tools, directories: list[Path]) -> str:
    files = sorted(
        str(path)
        for directory in directories
        for suffix in ("log", "index")
        for path in directory.glob(f"*-[0-9]/*.{suffix}")
        if path.stat().st_size
    )
    done = tools.run(
        "kafka.tools.DumpLogSegments",
        "--deep-iteration", "--print-data-log", "--files", ",".join(files),
        timeout=300,
    )  # fmt: skip
    assert done.code == 0, done.err
    return done.out


@original
@pytest.mark.slow  # half a minute each: retention waits that long after a start
@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("first", ["ours", "original"])
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_what_chores_leave_is_taken_over(
    first: str,
    end: str,
    compressed: bool,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    second = "original" if first == "ours" else "ours"
    chroot = f"{zookeeper.connect}/chores-{first}-{end}-{compressed}"
    directories = [tmp_path / "data-1", tmp_path / "data-2"]
    dirs = {"log.dirs": ",".join(map(str, directories))}
    # The original's cleaner writes survivors of wrappers as plain entries, from one read buffer.
    props = {**PROPS, **dirs, "log.cleaner.io.buffer.size": 4 << 20}
    normalised = {"log.compressed.sets": "normalised"} if first == "ours" else {}
    one = Broker(first, tmp_path / "one", chroot, props={**props, **normalised})
    two = Broker(second, tmp_path / "two", chroot, props={**props, "log.cleaner.enable": "false"})
    launch(one)
    launch(two)
    one.start()
    for topic, config in TOPICS.items():
        one.create_topic(topic, PARTITIONS, config)
    with one.wire() as wire:
        fill(wire, 1, compressed)
    tidy(one)
    if first == "ours" and end == "stop":
        assert one.stop() == 143
        truncate(directories)
        one.start()
        one.wait_for_leader("plain", PARTITIONS)
    with one.wire() as wire:
        before = contents(wire)
    if end == "stop":
        assert one.stop() == 143
        tools = {kind: Tools(kind, tmp_path / kind) for kind in ("ours", "original")}
        dumps = {kind: dump(tool, directories).splitlines() for kind, tool in tools.items()}
        for ours, theirs in zip(dumps["ours"], dumps["original"], strict=False):
            assert ours == theirs
        assert len(dumps["ours"]) == len(dumps["original"])
    else:
        one.kill()
    assert all(list(directory.glob("*-[01]")) for directory in directories), (
        "one directory is unused"
    )

    two.start()
    for topic in TOPICS:
        two.wait_for_leader(topic, PARTITIONS)
    with two.wire() as wire:
        after = contents(wire)
        for key, entries in before.items():
            topic = key[0]
            # retention goes on meanwhile, and what the second one reads begins where it stands
            start = after[key][0].offset if topic == "retained" else entries[0].offset
            assert after[key] == [e for e in entries if e.offset >= start], key
        fill(wire, 2, False)
        later = contents(wire)
    for key, entries in later.items():
        kept = [e for e in after[key] if e.offset >= entries[0].offset]
        assert entries[: len(kept)] == kept, key
    assert two.stop() == 143
