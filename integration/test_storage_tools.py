"""The tools around data directories and ZooKeeper's offsets, beside the original's."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.harness import HOME, Broker, Process, Result, Tools, ZooKeeper, environment, isr
from integration.wire import wait_until
from kafka08.log.log import Log
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages
from kafka08.runtime import SystemClock
from kafka08.settings.topic import LogConfig

DUMP = "kafka.tools.DumpLogSegments"
original = pytest.mark.original
Records = list[tuple[bytes | None, bytes | None]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tools]:
    return {
        kind: Tools(kind, tmp_path_factory.mktemp(f"both-{kind}")) for kind in ("ours", "original")
    }


def compare(both: dict[str, Tools], class_name: str, *words: str, err: bool = True) -> Result:
    """Run both with the same words: same output, same exit status. Ours is returned."""
    theirs = both["original"].run(class_name, *words)
    ours = both["ours"].run(class_name, *words)
    assert ours.lines == theirs.lines
    assert ours.raw == theirs.raw
    assert ours.code == theirs.code
    if err:
        assert ours.err == theirs.err
    return ours


# DumpLogSegments


def fill(log: Log, sets: int = 60, codecs: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    noise = random.Random(4)
    for number in range(sets):
        records: Records = [
            (
                [None, b"", b"key-%d" % i][noise.randrange(3)],
                [None, b"", b"value-%d-%d" % (number, i) * 5][min(noise.randrange(9), 2)],
            )
            for i in range(noise.randrange(1, 12))
        ]
        log.append(memoryview(bytearray(encode_set(records, codecs[number % len(codecs)]))))


@pytest.fixture(scope="module")
def segments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed partition of several segments, with sets as 0.8.2.2 stores them."""
    directory = tmp_path_factory.mktemp("dump") / "t-0"
    config = LogConfig(
        segment_bytes=9000,
        index_interval_bytes=300,
        segment_index_bytes=10_000,
        compressed_sets="normalised",
    )
    log = Log(str(directory), config, clock=SystemClock())
    fill(log)
    log.close()
    return directory


def files_of(directory: Path) -> str:
    return ",".join(str(path) for path in sorted(directory.glob("0*")))


@original
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--deep-iteration"],
        ["--print-data-log"],
        ["--deep-iteration", "--print-data-log"],
        ["--verify-index-only"],
        ["--max-message-size", "100000"],
        ["--key-decoder-class", "kafka.serializer.StringDecoder", "--print-data-log"],
        ["--value-decoder-class", "--print-data-log"],
    ],
    ids=" ".join,
)
def test_dump(both: dict[str, Tools], segments: Path, words: list[str]) -> None:
    done = compare(both, DUMP, "--files", files_of(segments), *words)
    assert done.code == 0
    assert len(done.lines) > (10 if "--verify-index-only" in words else 60)


@original
def test_dump_of_many_files_with_gaps(both: dict[str, Tools], tmp_path: Path) -> None:
    files = []
    for base in range(0, 300, 20):
        path = tmp_path / f"{base:020d}.log"
        message = encode_set([(b"k", b"v")])
        path.write_bytes(
            b"".join(offset.to_bytes(8, "big") + message[8:] for offset in (base, base + 2))
        )
        files.append(str(path))
    done = compare(both, DUMP, "--files", ",".join(files))
    assert len(done.err.splitlines()) == 2 * len(files)


def damaged(segments: Path, tmp_path: Path, spoil: Callable[[Path], None]) -> str:
    directory = tmp_path / "t-0"
    shutil.copytree(segments, directory)
    spoil(directory)
    return files_of(directory)


def first(directory: Path, suffix: str) -> Path:
    return min(directory.glob(f"*{suffix}"))


def wrong_index_offset(directory: Path) -> None:
    path = first(directory, ".index")
    data = bytearray(path.read_bytes())
    assert len(data) >= 24
    data[11] ^= 3
    data[19] ^= 1
    path.write_bytes(data)


def untrimmed_index(directory: Path) -> None:
    path = first(directory, ".index")
    path.write_bytes(path.read_bytes() + bytes(80))


def cut_log(directory: Path) -> None:
    path = max(directory.glob("*.log"))
    os.truncate(path, path.stat().st_size - 5)


def zeros_at_the_end(directory: Path) -> None:
    path = max(directory.glob("*.log"))
    path.write_bytes(path.read_bytes() + bytes(100))


def wrong_crc(directory: Path) -> None:
    path = first(directory, ".log")
    data = bytearray(path.read_bytes())
    plain = [entry for entry in iter_entries(bytes(data)) if not entry.codec]
    data[plain[2].position + plain[2].size_total - 1] ^= 1
    path.write_bytes(data)


def jump(directory: Path) -> None:
    path = first(directory, ".log")
    data = bytearray(path.read_bytes())
    plain = [entry for entry in iter_entries(bytes(data)) if not entry.codec]
    data[plain[3].position + 7] ^= 0x40
    path.write_bytes(data)


@original
@pytest.mark.parametrize("deep", [[], ["--deep-iteration"]], ids=["shallow", "deep"])
@pytest.mark.parametrize(
    "spoil",
    [wrong_index_offset, untrimmed_index, cut_log, zeros_at_the_end, wrong_crc, jump],
    ids=lambda spoil: spoil.__name__,
)
def test_dump_of_damage(
    both: dict[str, Tools],
    segments: Path,
    tmp_path: Path,
    spoil: Callable[[Path], None],
    deep: list[str],
) -> None:
    files = damaged(segments, tmp_path, spoil)
    compare(both, DUMP, "--files", files, "--print-data-log", *deep)


def failure(done: Result) -> str:
    """The exception's class, when that is what a tool ends with."""
    found = re.search(r'^Exception in thread "main" ([\w.$]+)', done.err, re.MULTILINE)
    return found[1] if found else ""


@original
@pytest.mark.parametrize(
    "words",
    [
        ["--files", "/nowhere/00000000000000000000.log"],
        ["--files", "{first}", "--max-message-size", "10"],
        ["--files", "{first}", "--max-message-size", "x"],
        ["--files", "{first}", "--files", "{first}"],
        ["--files", "{first}", "--key-decoder-class", "no.such.Decoder"],
        ["--files", "{first}", "--no-such-option"],
        ["--files"],
    ],
    ids=lambda words: " ".join(words).replace("/", "-"),
)
def test_dump_fails_alike(both: dict[str, Tools], segments: Path, words: list[str]) -> None:
    words = [word.format(first=first(segments, ".log")) for word in words]
    theirs, ours = (both[kind].run(DUMP, *words) for kind in ("original", "ours"))
    assert ours.lines == theirs.lines
    assert ours.code == theirs.code == 1
    assert failure(ours) == failure(theirs)
    assert failure(theirs)


@original
@pytest.mark.parametrize(
    ("class_name", "words"),
    [
        (DUMP, []),
        (DUMP, ["--print-data-log"]),
        ("kafka.tools.ExportZkOffsets", []),
        ("kafka.tools.ExportZkOffsets", ["--group", "g"]),
        ("kafka.tools.ExportZkOffsets", ["--help"]),
        ("kafka.tools.ImportZkOffsets", []),
        ("kafka.tools.ImportZkOffsets", ["--zkconnect", "localhost:1"]),
        ("kafka.tools.ImportZkOffsets", ["--help"]),
        ("kafka.tools.UpdateOffsetsInZK", []),
        ("kafka.tools.UpdateOffsetsInZK", ["latest", "consumer.properties"]),
        ("kafka.tools.StateChangeLogMerger", []),
        ("kafka.tools.StateChangeLogMerger", ["--topic", "t"]),
        ("kafka.tools.StateChangeLogMerger", ["--logs", "a", "--logs-regex", "b"]),
        ("kafka.tools.StateChangeLogMerger", ["--logs", "a", "--partitions", "0"]),
        ("kafka.tools.TestLogCleaning", []),
        ("kafka.tools.TestLogCleaning", ["--broker", "b:1"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "_".join(value),
)
def test_usage(both: dict[str, Tools], class_name: str, words: list[str]) -> None:
    """The same options in the same order, on the same stream; descriptions are our own words."""

    def options(text: str) -> list[str]:
        return re.findall(r"^--[\w-]+", text, re.MULTILINE)

    theirs, ours = (both[kind].run(class_name, *words) for kind in ("original", "ours"))
    assert ours.code == theirs.code
    for mine, its in ((ours.out, theirs.out), (ours.err, theirs.err)):
        assert set(options(its)) <= set(options(mine))
        assert set(options(mine)) - set(options(its)) <= {
            "--verify-integrity",
            "--zk-tls-config-file",
        }
        assert bool(mine) == bool(its)
    if words and "Missing required" in theirs.err:
        assert ours.err.splitlines()[0] == theirs.err.splitlines()[0]


# Offsets in ZooKeeper

GROUPS = {
    "/consumers/g1/offsets/t/0": "42",
    "/consumers/g1/offsets/t/1": "0",
    "/consumers/g1/offsets/u/7": "9223372036854775807",
    "/consumers/g2/offsets/t/0": "-1",
    "/consumers/g2/offsets/t/1": "not a number",
}


def put(zookeeper: ZooKeeper, chroot: str, nodes: dict[str, str]) -> str:
    client = zookeeper.client()
    for path, data in nodes.items():
        client.create(f"/{chroot}{path}", data.encode(), makepath=True)
    client.stop()
    client.close()
    return f"{zookeeper.connect}/{chroot}"


def nodes(zookeeper: ZooKeeper, chroot: str, paths: Any) -> dict[str, str]:
    client = zookeeper.client(f"/{chroot}")
    found = {path: client.get(path)[0].decode() for path in paths if client.exists(path)}
    client.stop()
    client.close()
    return found


@original
@pytest.mark.parametrize("groups", [[], ["g1"], ["g2", "g1"]], ids=",".join)
def test_export_and_import_either_way(
    both: dict[str, Tools], zookeeper: ZooKeeper, tmp_path: Path, groups: list[str]
) -> None:
    connect = put(zookeeper, tmp_path.name, GROUPS)
    words = [word for group in groups for word in ("--group", group)]
    files = {}
    for kind, tools in both.items():
        path = tmp_path / kind
        done = tools.run(
            "kafka.tools.ExportZkOffsets",
            "--zkconnect", connect, "--output-file", str(path), *words,
        )  # fmt: skip
        assert (done.code, done.out, done.err) == (0, "", "")
        files[kind] = path
    assert files["ours"].read_text() == files["original"].read_text()
    chosen = {path: data for path, data in GROUPS.items() if not groups or path[11:13] in groups}
    assert len(files["ours"].read_text().splitlines()) == len(chosen)
    for kind, tools in both.items():
        other = files["original" if kind == "ours" else "ours"]
        chroot = f"{tmp_path.name}-{kind}"
        target = put(zookeeper, chroot, {"/consumers/g1/offsets/t/0": "1"})
        done = tools.run(
            "kafka.tools.ImportZkOffsets", "--zkconnect", target, "--input-file", str(other)
        )
        assert (done.code, done.out, done.err) == (0, "", "")
        missing = {"/consumers/g1/offsets/t/0": "1"}
        assert nodes(zookeeper, chroot, GROUPS) == {**missing, **chosen}


@original
def test_a_named_group_without_offsets_fails_alike(
    both: dict[str, Tools], zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    connect = put(zookeeper, tmp_path.name, {**GROUPS, "/consumers/idle/ids": ""})
    done = [
        tools.run(
            "kafka.tools.ExportZkOffsets",
            "--zkconnect", connect, "--output-file", str(tmp_path / "out"), "--group", "idle",
        )
        for tools in both.values()
    ]  # fmt: skip
    assert [each.code for each in done] == [1, 1]
    assert failure(done[0]) == failure(done[1]) != ""


@original
@pytest.mark.parametrize(
    "text",
    ["/a/0:1\n/b/0\n", "/a/0:1\n\n/b/0:2\n", "/a/0:1:2\n/a/0:3\n", "", "nonsense:5\n/a/0:1\n"],
    ids=["no offset", "empty line", "two colons", "nothing", "no path"],
)
def test_import_of_odd_files(
    both: dict[str, Tools], zookeeper: ZooKeeper, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "offsets"
    file.write_text(text)
    results = {}
    for kind, tools in both.items():
        connect = put(zookeeper, f"{tmp_path.name}-{kind}", {"/x": ""})
        done = tools.run(
            "kafka.tools.ImportZkOffsets", "--zkconnect", connect, "--input-file", str(file)
        )
        stored = nodes(zookeeper, f"{tmp_path.name}-{kind}", ["/a/0", "/b/0", "/nonsense"])
        results[kind] = (done.code, done.out, failure(done), bool(done.err), stored)
    assert results["ours"] == results["original"]


@original
def test_update_offsets(
    both: dict[str, Tools], broker: Broker, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    topic = f"update-{tmp_path.name}"
    broker.create_topic(topic, 3)
    with broker.wire() as wire:
        for number in range(3):
            wire.produce(topic, number, encode_set([(None, b"x")] * (number + 4)))
    for time, expected in (("latest", ["4", "5", "6"]), ("earliest", ["0", "0", "0"])):
        found = {}
        for kind, tools in both.items():
            file = tmp_path / f"{kind}.properties"
            file.write_text(f"group.id=group-{kind}\nzookeeper.connect={broker.zookeeper}\n")
            found[kind] = tools.run("kafka.tools.UpdateOffsetsInZK", time, str(file), topic)
            paths = [f"/consumers/group-{kind}/offsets/{topic}/{number}" for number in range(3)]
            chroot = broker.zookeeper.partition("/")[2]
            assert list(nodes(zookeeper, chroot, paths).values()) == expected
        assert found["ours"] == found["original"]
        assert found["ours"].code == 0
    for words in (["latest", "no-such-topic"], ["sometime", topic]):
        done = [
            tools.run("kafka.tools.UpdateOffsetsInZK", words[0], str(file), words[1])
            for tools in both.values()
        ]
        assert done[0].code == done[1].code
        assert done[0].out == done[1].out
        assert failure(done[0]) == failure(done[1])


# StateChangeLogMerger

STATE_CHANGES = """
log4j.logger.state.change.logger=TRACE, stateChangeAppender
log4j.additivity.state.change.logger=false
log4j.appender.stateChangeAppender=org.apache.log4j.FileAppender
log4j.appender.stateChangeAppender.File={path}
log4j.appender.stateChangeAppender.layout=org.apache.log4j.PatternLayout
log4j.appender.stateChangeAppender.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
MERGER = "kafka.tools.StateChangeLogMerger"
DATE = slice(1, 24)


@pytest.fixture(scope="module")
def state_changes(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the state change logs of a broker of either kind in one cluster."""
    directory = tmp_path_factory.mktemp("state")
    chroot = f"{zookeeper.connect}/{directory.name}"
    brokers = []
    for number, kind in enumerate(("original", "ours")):
        broker = Broker(kind, directory / kind, chroot, broker_id=number)
        if kind == "original":
            log4j = broker.config.with_name("log4j.properties")
            path = directory / kind / "state-change.log"
            log4j.write_text(log4j.read_text() + STATE_CHANGES.format(path=path))
        brokers.append(broker.start())
    try:
        for topic in ("one", "two.three_four-5"):
            brokers[0].create_topic(topic, 4)
            brokers[1].create_topic(f"{topic}-b", 2)
    finally:
        for broker in brokers:
            broker.stop()
    for kind in ("original", "ours"):
        shutil.copy(directory / kind / "state-change.log", directory / f"state-change.log.{kind}")
    return directory


@original
@pytest.mark.parametrize(
    "words",
    [[], ["--topic", "one"], ["--topic", "two.three_four-5-b", "--partitions", "1,0"]],
    ids=lambda words: "_".join(words) or "all",
)
def test_merge(both: dict[str, Tools], state_changes: Path, words: list[str]) -> None:
    logs = [state_changes / f"state-change.log.{kind}" for kind in ("original", "ours")]
    named = ["--logs", ",".join(map(str, logs))]
    found = {kind: tools.run(MERGER, *named, *words) for kind, tools in both.items()}
    ours, theirs = found["ours"].lines, found["original"].lines
    assert (found["ours"].code, found["ours"].err) == (0, "")
    assert found["original"].code == 0
    # of the same millisecond either file may come first
    assert [line[DATE] for line in ours] == [line[DATE] for line in theirs]
    assert sorted(ours) == sorted(theirs)
    # Threads of the original write lines of neighbouring milliseconds in either order: only what
    # was sorted in each file is so in the whole.
    written = [[line[DATE] for line in log.read_text().splitlines()] for log in logs]
    if all(dates == sorted(dates) for dates in written):
        assert [line[DATE] for line in ours] == sorted(line[DATE] for line in ours)
    by_regex = both["ours"].run(
        MERGER, "--logs-regex", f"{state_changes}/state-change.log*", *words
    )
    assert sorted(by_regex.lines) == sorted(ours)
    for log in logs:  # what both brokers write is understood
        assert set(log.read_text(errors="replace").splitlines()) & set(ours), log
    middle = ours[len(ours) // 2][DATE]
    for option in ("--start-time", "--end-time"):
        part = {
            kind: sorted(tools.run(MERGER, *named, *words, option, middle).lines)
            for kind, tools in both.items()
        }
        assert part["ours"] == part["original"]
        assert 0 < len(part["ours"]) < len(ours)


# TestLogCleaning


@original
@pytest.mark.slow  # each waits 20 s for messages that do not come
def test_log_cleaning(both: dict[str, Tools], zookeeper: ZooKeeper, tmp_path: Path) -> None:
    props = {
        "log.cleanup.policy": "compact",
        "log.segment.bytes": 20_000,
        "log.cleaner.backoff.ms": 500,
        "log.cleaner.min.cleanable.ratio": 0.01,
        "log.cleaner.dedupe.buffer.size": 8 << 20,
    }
    chroot = f"{zookeeper.connect}/{tmp_path.name}"
    broker = Broker("ours", tmp_path / "broker", chroot, props=props).start()
    words = ["--broker", broker.address, "--zk", chroot, "--messages", "3000"]
    words += ["--percent-deletes", "20", "--sleep", "5"]
    try:
        running = {
            kind: tools.background("kafka.tools.TestLogCleaning", *words)
            for kind, tools in both.items()
        }
        for process in running.values():
            assert process.exit_code(120) == 0, process.log
    finally:
        broker.stop()
    shown = {
        kind: [
            line
            for line in process.log.splitlines()
            if not line.startswith(("Logging", "[", "SLF4J", "log4j"))
        ]
        for kind, process in running.items()
    }
    rows = re.compile(
        r"3000 rows of data produced, (\d+) rows of data consumed \((.*)% reduction\)\."
    )
    for lines in shown.values():
        ((count, percent),) = rows.findall(lines.pop(3))
        assert int(count) < 3000
        assert float(percent) > 0
    assert shown["ours"] == shown["original"]
    assert shown["ours"][-1].endswith(" values, 0 mismatches.")
    for directory in (tmp_path / "broker" / "data").glob("log-cleaner-test-*"):
        dumped = compare(both, "kafka.tools.TestLogCleaning", "--dump", str(directory))
        assert len(dumped.lines) > 100


# kafka-log-scrub


def scrub(broker: Broker, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HOME / "bin" / "kafka-log-scrub.sh", "--config", broker.config, *words],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(broker.directory),
        check=False,
    )


@pytest.mark.parametrize("kind", ["ours", pytest.param("original", marks=original)])
def test_rot_on_a_follower_is_repaired_from_the_leader(
    kind: str, zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    connect = f"{zookeeper.connect}/{tmp_path.name}"
    props = {
        "log.segment.bytes": 20_000,
        "log.index.interval.bytes": 1000,
        "default.replication.factor": 3,
        "log.scrub.interval.ms": 1000,
        "log.scrub.bytes.per.second": 100 << 20,
    }
    brokers = []
    for number, each in enumerate((kind, "ours", "ours")):
        directory = tmp_path / str(number)
        brokers.append(Broker(each, directory, connect, broker_id=number, props=props))
        launch(brokers[-1])
        brokers[-1].start()
    leader, follower, third = brokers
    topic = "rotten"
    assignment = '{"version":1,"partitions":{"0":[0,1,2]}}'
    put(zookeeper, tmp_path.name, {f"/brokers/topics/{topic}": assignment})
    leader.wait_for_leader(topic)
    noise = random.Random(kind)
    with leader.wire() as wire:
        for number in range(300):
            records: Records = [
                (None, noise.randbytes(20).hex().encode()) for _ in range(noise.randrange(1, 20))
            ]
            wire.produce(topic, 0, encode_set(records, number % 3), acks=-1)
        end = wire.offset(topic, 0)
    directory = follower.log_dir / f"{topic}-0"
    segments = sorted(directory.glob("*.log"))[:-1]
    assert len(segments) > 4
    wait_until("side files", 60, lambda: all(p.with_suffix(".crc32c").exists() for p in segments))
    assert scrub(follower).returncode == 0  # while it runs
    assert "using this directory" in scrub(follower, "--seal").stderr
    assert follower.stop() == 143
    before = {path: path.read_bytes() for path in directory.iterdir()}
    for path in segments:
        data = bytearray(path.read_bytes())
        bit = noise.randrange(len(data) * 8)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
    found = scrub(follower)
    assert found.returncode == 1
    assert found.stdout.count(" damaged: ") == len(segments)

    wait_until("isr without it", 30, lambda: isr(connect, topic) == [0, 2])
    done = scrub(follower, "--repair", "--bootstrap-server", third.address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" repaired: ") == len(segments)
    assert done.stdout.count("; as it was sealed") == len(segments)
    assert {path: path.read_bytes() for path in directory.iterdir()} == before
    assert scrub(follower).returncode == 0
    assert isr(connect, topic) == [0, 2]
    with leader.wire() as wire:
        hw, _ = wire.fetch(topic, 0, end)
        assert hw == end
        assert wire.produce(topic, 0, encode_set([(None, b"more")]), acks=-1) == end

    follower.start()
    wait_until("isr with it", 30, lambda: isr(connect, topic) == [0, 1, 2])
    assert all(path.read_bytes() == before[path] for path in segments)
    third.stop()
    wait_until("isr of two", 30, lambda: isr(connect, topic) == [0, 1])
    leader.stop()
    follower.wait_for_leader(topic)
    with follower.wire() as wire:
        count, position = 0, 0
        while position <= end:
            for message in iter_messages(wire.fetch(topic, 0, position)[1]):
                count += message.offset >= position
                position = max(position, message.offset + 1)
        assert count == end + 1
