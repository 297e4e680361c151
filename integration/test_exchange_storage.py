"""Each kind of broker takes over the other's data directories after retention and cleaning.

DumpLogSegments of both kinds also prints the same lines for the same files.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import (
    HOME,
    KINDS,
    Broker,
    Process,
    Tools,
    ZooKeeper,
    environment,
    isr,
)
from integration.wire import Entry, Wire, entry, gzip_set, wait_until
from kafka08.common import TopicPartition
from kafka08.log.manager import LogManager
from kafka08.message.compression import compress, decompress
from kafka08.message.entry import encode_entry, key_and_value
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set
from kafka08.runtime import SystemClock
from kafka08.settings.broker import BrokerConfig
from tests.message.batches import batch, timed, timed_wrapper

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
    log = manager.logs[TopicPartition("plain", 0)]
    log.truncate_to(700)
    manager.checkpoint_recovery_points()
    assert log.log_end_offset == 700
    manager.close()


def dump(tools: Tools, directories: list[Path], topic: str) -> tuple[str, str]:
    """The output of DumpLogSegments, and the faults that it reports."""
    files = sorted(
        str(path)
        for directory in directories
        for suffix in ("log", "index")
        for path in directory.glob(f"{topic}-[0-9]/*.{suffix}")
        if path.stat().st_size
    )
    done = tools.run(
        "kafka.tools.DumpLogSegments",
        "--deep-iteration", "--print-data-log", "--files", ",".join(files),
        timeout=300,
    )  # fmt: skip
    assert done.code == 0, done.err
    return done.out, done.err


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
        for topic in TOPICS:
            ours, reported = dump(tools["ours"], directories, topic)
            theirs, expected = dump(tools["original"], directories, topic)
            for line, their_line in zip(ours.splitlines(), theirs.splitlines(), strict=False):
                assert line == their_line
            assert len(ours.splitlines()) == len(theirs.splitlines())
            # Both report the gaps in a compacted log. Nothing else may be wrong.
            assert reported == expected
            if topic == "compacted":
                assert "Mismatches" not in reported
            else:
                assert reported == ""
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


# Sets stored as sent, after kafka-log-convert

CONVERT = str(HOME / "bin" / "kafka-log-convert.sh")
LATER = -1
SET_TOPICS = {"gzip": 1, "snappy": 2, "lz4": 3, "mixed": None, "later": LATER}


def verbatim_set(noise: random.Random, codec: int | None, tiny: bool) -> bytes:
    """A set as some client or other writes it: inner offsets from 0 on, or all 0, or all -1."""
    if codec == LATER:
        return later_set(noise, tiny)
    if codec is None:
        return b"".join(verbatim_set(noise, noise.choice([0, 1, 2]), False) for _ in range(3))
    count = 3000 if tiny else noise.randrange(1, 30)
    records: list[tuple[bytes | None, bytes | None]] = [
        (None, b"v") if tiny else (noise.choice([None, b"k"]), noise.randbytes(30).hex().encode())
        for _ in range(count)
    ]
    if not codec:
        return encode_set(records)
    kind = noise.randrange(1 if tiny else 0, 3)
    if not kind:
        return encode_set(records, codec)
    inner = b"".join(encode_set([record]) for record in records)
    table = bytearray(inner)
    if kind == 2:
        for found in iter_entries(inner):
            table[found.position : found.position + 8] = b"\xff" * 8
    return encode_entry(None, compress(codec, table), 0, codec)


def later_set(noise: random.Random, tiny: bool) -> bytes:
    """A set of format 0, 1 or 2, plain or compressed; records of format 2 have headers."""
    count = 200 if tiny else noise.randrange(1, 30)
    values = [b"v" if tiny else noise.randbytes(30).hex().encode() for _ in range(count)]
    form, codec = noise.randrange(3), 1 if tiny else noise.randrange(4)
    if form == 0:
        return encode_set([(b"k", value) for value in values], codec)
    if form == 1:
        inner = timed([(b"k", value) for value in values])
        return timed_wrapper(inner, codec, count - 1) if codec else inner
    codec = 4 if codec == 3 and noise.randrange(2) else codec
    return batch([(b"k", value, 0, [(b"h", b"x")]) for value in values], 0, codec)


def served(wire: Wire, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """The messages, as read by a client that takes inner offsets as they come."""
    found: list[tuple[int, bytes | None, bytes | None]] = []
    position, end = wire.offset(topic, 0, -2), wire.offset(topic, 0)
    while position < end:
        _, data = wire.fetch(topic, 0, position, 4 << 20)
        last = position
        for outer in iter_entries(data):
            last = outer.offset
            entry_bytes = data[outer.position : outer.position + outer.size_total]
            leaves = entry_bytes
            if outer.codec:
                _, span = key_and_value(entry_bytes, 0, len(entry_bytes))
                assert span is not None
                leaves = decompress(outer.codec, entry_bytes[slice(*span)], 64 << 20)
            for leaf in iter_entries(leaves):
                key, value = (
                    None if part is None else leaves[slice(*part)]
                    for part in key_and_value(
                        leaves, leaf.position, leaf.position + leaf.size_total
                    )
                )
                if leaf.offset >= position:
                    found.append((leaf.offset, key, value))
        assert last >= position, f"{topic} stands still at {position}"
        position = last + 1
    return found


def convert(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CONVERT, "--log-dirs", str(directory), *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(directory.parent),
        check=False,
    )


@pytest.mark.scenario("modern-55")
@original
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_converted_for_the_original_and_back(
    end: str,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    chroot = f"{zookeeper.connect}/convert-{end}"
    props = {
        "log.segment.bytes": 60_000,
        "log.index.interval.bytes": 1000,
        "log.index.size.max.bytes": 10_000,
        "message.max.bytes": 5_000,
        "log.dirs": tmp_path / "data",
    }
    ours = Broker("ours", tmp_path / "ours", chroot, props=props)
    theirs = Broker("original", tmp_path / "original", chroot, props=props)
    launch(ours)
    launch(theirs)
    ours.start()
    noise = random.Random(end)
    for topic in SET_TOPICS:
        ours.create_topic(topic)
    with ours.wire() as wire:
        for topic, codec in SET_TOPICS.items():
            for number in range(120):
                wire.produce(topic, 0, verbatim_set(noise, codec, tiny=number in (50, 51)))
        before = {topic: served(wire, topic) for topic in SET_TOPICS}
    assert convert(tmp_path / "data").returncode == 1  # it is in use
    if end == "stop":
        assert ours.stop() == 143
    else:
        ours.kill()
        refused = convert(tmp_path / "data")
        assert refused.returncode == 1
        assert "start it once more and stop it, or let --force recover" in refused.stderr
    report_path = tmp_path / "report.json"
    words = ["--config", str(ours.config), "--report", str(report_path)]
    done = convert(tmp_path / "data", *words, *(["--force"] if end == "kill" else []))
    assert done.returncode == 0, done.stderr
    rows = {
        each["topic"]: each
        for each in json.loads(report_path.read_text())["log_dirs"][0]["partitions"]
        if each["topic"] in SET_TOPICS
    }
    later = rows["later"]
    assert later["later"] > 50 and later["headers"] > 300 and later["timestamps"] > 600
    assert all(row["wrappers"] > 5 and row["bytes_after"] > 0 for row in rows.values())
    assert all(row["later"] == 0 for row in rows.values() if row is not later)
    assert not list((tmp_path / "data").glob("*/*.crc32c"))
    names = {path.name for path in (tmp_path / "data").glob("*/*") if path.is_file()}
    assert all(name.endswith((".log", ".index")) for name in names)

    assert sum(row["made"] - row["wrappers"] for row in rows.values()) > 0  # some were split
    dumps = {
        dump(Tools(kind, tmp_path / f"{kind}-tools"), [tmp_path / "data"], "*") for kind in KINDS
    }
    assert {reported for _, reported in dumps} == {""}
    assert len(dumps) == 1
    made = {path: path.read_bytes() for path in indexes_of_sealed(tmp_path / "data")}

    # as it is; then after a crash, with everything to be recovered
    for after_crash in (False, True):
        theirs.start()
        for topic in SET_TOPICS:
            theirs.wait_for_leader(topic)
        with theirs.wire() as wire:
            for topic, expected in before.items():
                assert served(wire, topic) == expected, topic
        if not after_crash:
            theirs.kill()
            (tmp_path / "data" / "recovery-point-offset-checkpoint").unlink()
    with theirs.wire() as wire:
        for topic in SET_TOPICS:
            wire.produce(topic, 0, encode_set([(None, b"theirs")] * 3, 1))
        more = {topic: served(wire, topic) for topic in SET_TOPICS}
    assert theirs.stop() == 143
    # it has rebuilt the indexes as the tool had made them
    assert {path: path.read_bytes() for path in made} == made
    ours.start()
    for topic in SET_TOPICS:
        ours.wait_for_leader(topic)
    with ours.wire() as wire:
        for topic, expected in more.items():
            assert served(wire, topic) == expected
            assert expected[: len(before[topic])] == before[topic]
    assert ours.stop() == 143


def indexes_of_sealed(directory: Path) -> list[Path]:
    return [
        path
        for topic in SET_TOPICS
        for path in sorted((directory / f"{topic}-0").glob("*.index"))[:-1]
    ]


@pytest.mark.slow
@original
def test_handed_over_one_broker_at_a_time(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """docs/migrating.md: copies in different bytes replicate to and fro."""
    chroot = f"{zookeeper.connect}/rolling"
    topic = "rolling"
    noise = random.Random(9)

    def broker(kind: str, number: int, **props: str) -> Broker:
        made = Broker(
            kind,
            tmp_path / f"{kind}-{number}",
            chroot,
            broker_id=number,
            log_dir=tmp_path / f"data-{number}",
            # As docs/migrating.md says: the leader stays where it is.
            props={
                "log.segment.bytes": 60_000,
                "auto.leader.rebalance.enable": "false",
                **props,
            },
        )
        launch(made)
        return made.start()

    def produce(to: Broker) -> None:
        to.wait_for_leader(topic)
        with to.wire() as wire:
            for _ in range(40):
                wire.produce(topic, 0, verbatim_set(noise, None, tiny=False), acks=-1)

    def in_sync(*numbers: int) -> None:
        wait_until(f"isr {numbers}", 30, lambda: isr(chroot, topic) == list(numbers))

    def held(by: Broker) -> list[tuple[int, bytes | None, bytes | None]]:
        by.wait_for_leader(topic)
        with by.wire() as wire:
            return served(wire, topic)

    first, second = broker("ours", 0), broker("ours", 1)
    client = zookeeper.client("/rolling")
    assignment = b'{"version":1,"partitions":{"0":[0,1]}}'
    client.create(f"/brokers/topics/{topic}", assignment, makepath=True)
    client.stop()
    client.close()
    produce(first)
    in_sync(0, 1)
    for each in (first, second):  # step 1, all at once
        assert each.stop() == 143
    normalised = {"log.compressed.sets": "normalised"}
    second = broker("ours", 1, **normalised)
    produce(second)
    before = held(second)
    done = convert(tmp_path / "data-0")
    assert done.returncode == 0, done.stderr

    first = broker("original", 0)
    in_sync(0, 1)
    produce(second)
    more = held(second)
    assert more[: len(before)] == before
    assert second.stop() == 143
    assert held(first) == more
    produce(first)
    more = held(first)
    second = broker("ours", 1, **normalised)  # not converted
    in_sync(0, 1)
    assert first.stop() == 143
    assert held(second) == more
    assert second.stop() == 143
