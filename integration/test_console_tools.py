"""The console consumer and producer beside the original's: the same arguments, the same bytes."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from integration.clients import config_file
from integration.harness import Broker, Result, Tools, zookeeper_text
from integration.wire import entry

pytestmark = pytest.mark.original

CONSUMER = "kafka.tools.ConsoleConsumer"
PRODUCER = "kafka.tools.ConsoleProducer"
OFFSETS_FORMATTER = "kafka.server.OffsetManager$OffsetsMessageFormatter"
ENTRIES = [
    (None, b"no key"),
    (b"key", b"value"),
    (b"", b""),
    (b"tombstone", None),
    ("schlüssel".encode(), "größe".encode()),
    (b"\x00\xff", bytes(range(256))),
    (b"last", b"x" * 5000),
]


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tools, Tools]:
    return (
        Tools("ours", tmp_path_factory.mktemp("ours")),
        Tools("original", tmp_path_factory.mktemp("original")),
    )


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    name = unique("console")
    broker.create_topic(name)
    with broker.wire() as wire:
        wire.produce(name, 0, b"".join(entry(key, value) for key, value in ENTRIES))
    return name


def run_both(both: tuple[Tools, Tools], *args: str, stdin: str = "") -> tuple[Result, Result]:
    ours, theirs = (tools.run(args[0], *args[1:], stdin=stdin) for tools in both)
    assert ours.code == theirs.code, (ours, theirs)
    return ours, theirs


def say(result: Result) -> list[str]:
    """The tool's own lines on stderr, without log lines and stack traces."""
    return [line for line in result.err.splitlines() if not line.startswith(("[", "\t", "kafka."))]


def _case(number: int, row: Any) -> Any:
    """The quick round has every fourth."""
    return pytest.param(row, marks=[pytest.mark.slow] if number % 4 else [])


CONSUMED = [
    [],
    ["--property", "print.key=true"],
    ["--property", "print.key=TRUE ", "--property", "key.separator=::"],
    ["--property", "line.separator=|", "--property", "print.key=true"],
    ["--property", "key.separator="],
    ["--property", "print.key"],
    ["--formatter", "kafka.tools.NoOpMessageFormatter"],
    ["--formatter", "kafka.tools.ChecksumMessageFormatter"],
    ["--formatter", "kafka.tools.ChecksumMessageFormatter", "--property", "topic=mine"],
    ["--max-messages", "3"],
    ["--max-messages", "0"],
    ["--skip-message-on-error"],
    ["--formatter", OFFSETS_FORMATTER, "--max-messages", "1"],
]


@pytest.mark.parametrize("args", [_case(number, row) for number, row in enumerate(CONSUMED)])
def test_consumer_prints_the_same(
    broker: Broker, topic: str, both: tuple[Tools, Tools], tmp_path: Path, args: list[str]
) -> None:
    settings = {"consumer.timeout.ms": 1500, "zookeeper.session.timeout.ms": 1500}
    config = config_file(tmp_path, "consumer.properties", settings)
    base = ["--zookeeper", broker.zookeeper, "--topic", topic, "--from-beginning"]
    base += ["--consumer.config", str(config)]
    if "--max-messages" not in args:
        # Before it has them all the original prints nothing.
        base += ["--max-messages", str(len(ENTRIES))]
    ours, theirs = run_both(both, CONSUMER, *base, *args)
    assert ours.raw == theirs.raw
    counts = [line for line in say(ours) if line.startswith("Consumed")]
    assert counts == [line for line in say(theirs) if line.startswith("Consumed")]
    assert len(counts) == 1


@pytest.mark.parametrize("choice", ["--whitelist", "--blacklist"])
def test_filters(broker: Broker, both: tuple[Tools, Tools], tmp_path: Path, choice: str) -> None:
    name = unique("filter")
    for suffix in ("a", "b"):
        broker.create_topic(f"{name}-{suffix}")
        with broker.wire() as wire:
            wire.produce(f"{name}-{suffix}", 0, entry(None, suffix.encode()))
    regex = f"{name}-a, {name}-c" if choice == "--whitelist" else f"(?!{name}).*|{name}-a"
    config = config_file(tmp_path, "c.properties", {"consumer.timeout.ms": 5000})
    args = ["--zookeeper", broker.zookeeper, choice, regex, "--from-beginning"]
    args += ["--max-messages", "1", "--consumer.config", str(config)]
    ours, theirs = run_both(both, CONSUMER, *args)
    assert ours.raw == theirs.raw == (b"a\n" if choice == "--whitelist" else b"b\n")


def test_groups_of_either_go_on_where_the_other_left(
    broker: Broker, topic: str, both: tuple[Tools, Tools], tmp_path: Path
) -> None:
    group = unique("shared")
    config = config_file(tmp_path, "c.properties", {"group.id": group, "consumer.timeout.ms": 5000})
    args = ["--zookeeper", broker.zookeeper, "--topic", topic, "--consumer.config", str(config)]
    begin = ["--from-beginning", "--max-messages", "1"]
    ours, theirs = both
    assert ours.run(CONSUMER, *args, *begin).raw == b"no key\n"
    assert theirs.run(CONSUMER, *args, "--max-messages", "1").raw == b"value\n"
    refused = run_both(both, CONSUMER, *args, *begin)
    assert say(refused[0]) == say(refused[1])
    assert refused[0].code == 1
    for tools in both:
        deleted = tools.run(CONSUMER, *args, *begin, "--delete-consumer-offsets")
        assert deleted.raw == b"no key\n"
    assert zookeeper_text(broker.zookeeper, f"/consumers/{group}/offsets/{topic}/0") == "1"


def test_offsets_topic(
    broker: Broker, topic: str, both: tuple[Tools, Tools], tmp_path: Path
) -> None:
    with broker.wire() as wire:
        group = unique("committed")
        for _ in range(100):
            if wire.coordinator_error(group) == 0 and wire.commit(group, topic, 0, 5) == 0:
                break
    values = {"exclude.internal.topics": "false", "consumer.timeout.ms": 3000}
    config = config_file(tmp_path, "c.properties", values)
    args = ["--zookeeper", broker.zookeeper, "--topic", "__consumer_offsets", "--from-beginning"]
    args += ["--consumer.config", str(config), "--formatter", OFFSETS_FORMATTER]
    ours, theirs = run_both(both, CONSUMER, *args)
    assert sorted(ours.lines) == sorted(theirs.lines)
    assert any(line.startswith(f"[{group},{topic},0]::OffsetAndMetadata[5,") for line in ours.lines)


@pytest.mark.parametrize(
    "args",
    [
        ["--zookeeper", "z"],
        ["--topic", "t"],
        ["--zookeeper", "z", "--topic", "t", "--whitelist", "u"],
        ["--zookeeper", "z", "--topic", "t", "--no-such"],
        ["--zookeeper"],
    ],
    ids=" ".join,
)
def test_consumer_refuses_the_same(both: tuple[Tools, Tools], args: list[str]) -> None:
    ours, theirs = run_both(both, CONSUMER, *args)
    assert say(ours)[:1] == say(theirs)[:1]


LINES = "plain\nkey\tvalue\n\n  blanks  \nküche\nlast\tone\ttwo"
PRODUCED = [
    (LINES, []),
    (LINES, ["--sync", "--request-required-acks", "-1"]),
    (LINES, ["--compression-codec"]),
    (LINES, ["--compression-codec", "gzip", "--timeout", "100"]),
    ("a\r\nb\rc\n", []),
    ("k\tv\nk\t\n\tv\nk\tv\tw\n", ["--property", "parse.key=true"]),
    ("k::v\n", ["--property", "parse.key=true", "--property", "key.separator=::"]),
    (LINES, ["--property", "parse.key=true", "--property", "ignore.error=true"]),
    (LINES, ["--property", "parse.key=true", "--sync"]),
    (LINES, ["--new-producer"]),
    ("k\tv\n", ["--new-producer", "--property", "parse.key=true", "--compression-codec", "gzip"]),
    ("", []),
    ("x" * 100_000, []),
    (LINES, ["--key-serializer", "kafka.serializer.NullEncoder", "--batch-size", "1"]),
]


@pytest.mark.parametrize("case", [_case(number, row) for number, row in enumerate(PRODUCED)])
def test_producer_stores_the_same(
    broker: Broker, both: tuple[Tools, Tools], case: tuple[str, list[str]]
) -> None:
    stdin, args = case
    found = []
    for tools in both:
        name = unique("lines")
        broker.create_topic(name)
        base = ["--broker-list", broker.address, "--topic", name]
        base += ["--request-required-acks", "1"] if "--request-required-acks" not in args else []
        done = tools.run(PRODUCER, *base, *args, stdin=stdin)
        with broker.wire() as wire:
            stored = [(e.key, e.value) for e in wire.read_all(name, 0)]
        found.append(
            (done.code, done.raw, stored, [line for line in say(done) if "at " not in line])
        )
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "args",
    [
        ["--topic", "t"],
        ["--broker-list", "h:1"],
        ["--broker-list", "h", "--topic", "t"],
        ["--broker-list", "h:1", "--topic", "t", "--batch-size", "x"],
        ["--broker-list", "h:1", "--topic", "t", "--property", "a=b=c"],
    ],
    ids=" ".join,
)
def test_producer_refuses_the_same(both: tuple[Tools, Tools], args: list[str]) -> None:
    ours, theirs = run_both(both, PRODUCER, *args)
    assert say(ours)[:1] == say(theirs)[:1]
