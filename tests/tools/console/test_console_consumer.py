from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.standalone import StandaloneConsumer
from tests.consumer.group_world import GroupWorld
from tests.fakes.zookeeper import Session
from tools.console import console_consumer
from tools.console.console_consumer import Printer, main
from tools.groups import nodes
from tools.options import UsageError
from tools.shutdown import Shutdown

TOPIC = ["--zookeeper", "z", "--topic", "t"]


class Driven(ConsumerConnector):
    """Fetches by itself whenever streams are made: no task runs under the fake runtime."""

    world: GroupWorld

    def create_message_streams_by_filter(self, *args: Any, **options: Any) -> Any:
        streams = super().create_message_streams_by_filter(*args, **options)
        for name in ("leader-finder", "FetcherThread", "FetcherThread"):
            self.world.runtime.step(name)
        return streams


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> GroupWorld:
    world = GroupWorld()
    world.topic("t", 1)
    Driven.world = world

    def connect(config: Any) -> ConsumerConnector:
        zk = Session(world.ensemble)
        return Driven(config, runtime=world.runtime, zk=zk, channel=world.cluster.channel)

    monkeypatch.setattr(console_consumer, "ConsumerConnector", connect)
    monkeypatch.setattr(nodes, "zookeeper", lambda url, security: Session(world.ensemble))
    return world


@pytest.fixture
def settings(tmp_path: Path) -> list[str]:
    file = tmp_path / "consumer.properties"
    file.write_text("group.id=g\nconsumer.timeout.ms=0\n")
    return ["--consumer.config", str(file)]


def test_messages_go_out_and_the_count_to_stderr(world: GroupWorld, capfdbinary: Any) -> None:
    world.cluster.append("t", 0, b"a", b"\xff", b"c")
    assert main([*TOPIC, "--from-beginning", "--max-messages", "2"]) == 0
    assert capfdbinary.readouterr() == (b"a\n\xff\n", b"Consumed 2 messages\n")


def test_own_group_is_removed(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a")
    main([*TOPIC, "--from-beginning", "--max-messages", "1"])
    assert world.ensemble.below("/consumers") == []


def test_named_group_goes_on_behind_the_last_message(
    world: GroupWorld, settings: list[str], capfdbinary: Any
) -> None:
    world.cluster.append("t", 0, b"a", b"b", b"c")
    world.ensemble.put("/consumers/g/offsets/t/0", b"0")
    for expected in (b"a\nb\n", b"c\n"):
        assert main([*TOPIC, *settings, "--max-messages", "2"]) == 0
        assert capfdbinary.readouterr().out == expected
    assert world.offset("t", 0) == "3"


def test_idle_timeout_is_logged_and_exits_0(
    world: GroupWorld, settings: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main([*TOPIC, *settings]) == 0
    assert "Error processing message, stopping consumer" in caplog.text


def test_found_offsets_refuse_from_beginning(
    world: GroupWorld, settings: list[str], capsys: Any
) -> None:
    world.ensemble.put("/consumers/g/offsets/t/0", b"0")
    assert main([*TOPIC, *settings, "--from-beginning"]) == 1
    assert capsys.readouterr().err == (
        "Found previous offset information for this group g. Please use "
        "--delete-consumer-offsets to delete previous offsets metadata\n"
    )


def test_offsets_are_deleted_when_told(
    world: GroupWorld, settings: list[str], capfdbinary: Any
) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    world.ensemble.put("/consumers/g/offsets/t/0", b"2")
    options = ["--from-beginning", "--delete-consumer-offsets"]
    assert main([*TOPIC, *settings, *options]) == 0
    assert capfdbinary.readouterr().out == b"a\nb\n"


class BrokenOutput:
    def write(self, data: bytes) -> int:
        raise BrokenPipeError

    def flush(self) -> None: ...


def test_closed_stdout(world: GroupWorld, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    world.cluster.append("t", 0, b"a")
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=BrokenOutput()))
    monkeypatch.setattr(console_consumer, "abandon_stdout", lambda: None)
    assert main([*TOPIC, "--from-beginning"]) == 1
    assert capsys.readouterr().err == (
        "Unable to write to standard out, closing consumer.\nConsumed 0 messages\n"
    )
    assert world.ensemble.below("/consumers") == []


class Picky:
    def __init__(self, properties: Any) -> None: ...

    def write_to(self, key: Any, value: Any, output: Any) -> None:
        if value == b"bad":
            raise ValueError("bad message")
        output.write(value)

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("options", "out", "count"),
    [([], b"a", 1), (["--skip-message-on-error"], b"ac", 2)],
)
def test_message_that_cannot_be_shown(
    world: GroupWorld, capfdbinary: Any, options: list[str], out: bytes, count: int
) -> None:
    world.cluster.append("t", 0, b"a", b"bad", b"c")
    formatter = ["--formatter", f"{__name__}.Picky", "--max-messages", "3"]
    assert main([*TOPIC, "--from-beginning", *formatter, *options]) == 0
    assert capfdbinary.readouterr() == (out, b"Consumed %d messages\n" % count)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A signal comes when the first message is printed; the statuses the process ended with."""
    statuses: list[int] = []
    process = Shutdown(statuses.append)
    monkeypatch.setattr(console_consumer, "at_end", process.at_end)
    monkeypatch.setattr(console_consumer, "hold", process.hold)
    monkeypatch.setattr(Printer, "print_all", lambda printer, stream: process.run(signal.SIGINT))
    return statuses


def test_an_interrupt_leaves_the_group(
    world: GroupWorld, interrupted: list[int], capfdbinary: Any
) -> None:
    main(TOPIC)
    assert interrupted == [130]
    assert world.ensemble.below("/consumers") == []
    assert capfdbinary.readouterr() == (b"", b"Consumed 0 messages\n")


def test_an_interrupt_without_zookeeper_names_the_node_that_stays(
    world: GroupWorld, interrupted: list[int], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(Session, "unreachable", True)
    monkeypatch.setattr(nodes, "zookeeper", None)  # nothing connects again
    main(TOPIC)
    assert interrupted == [130]
    count, left = capsys.readouterr().err.splitlines()
    assert count == "Consumed 0 messages"
    (group,) = world.ensemble.below("/consumers")
    assert left == f"ZooKeeper does not answer: /consumers/{group} may stay there"


class Shown(NamedTuple):
    """A message."""

    value: bytes
    key: bytes | None = None


def test_no_message_is_printed_after_the_report(capfdbinary: Any) -> None:
    printer = Printer(console_consumer.PARSER.parse([]))

    def messages() -> Iterator[Shown]:
        yield Shown(b"a")
        printer.finish()  # as a signal does, while the next message is waited for
        yield Shown(b"b")

    printer.print_all(messages())
    assert capfdbinary.readouterr() == (b"a\n", b"Consumed 1 messages\n")


def test_blacklist(world: GroupWorld, settings: list[str], capfdbinary: Any) -> None:
    world.topic("u", 1)
    world.cluster.append("t", 0, b"a")
    world.cluster.append("u", 0, b"b")
    assert main(["--zookeeper", "z", "--blacklist", "t", *settings, "--from-beginning"]) == 0
    assert capfdbinary.readouterr().out == b"b\n"


class DrivenStandalone(StandaloneConsumer):
    world: GroupWorld

    def stream(self, *args: Any, **options: Any) -> Any:
        stream = super().stream(*args, **options)
        for name in ("leader-finder", "FetcherThread", "FetcherThread"):
            self.world.runtime.step(name)
        return stream


@pytest.mark.parametrize(
    ("options", "out"),
    [
        (["--from-beginning"], b"a\nb\nx\n"),
        (["--offset", "earliest", "--partition", "0"], b"a\nb\n"),
        (["--offset", "1", "--partition", "0"], b"b\n"),
        ([], b""),
    ],
)
def test_brokers_alone(
    world: GroupWorld,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: Any,
    options: list[str],
    out: bytes,
) -> None:
    world.topic("t", 2)
    world.cluster.append("t", 0, b"a", b"b")
    world.cluster.append("t", 1, b"x")
    DrivenStandalone.world = world
    monkeypatch.setattr(
        console_consumer,
        "StandaloneConsumer",
        lambda endpoints, config, group: DrivenStandalone(
            endpoints, config, group=group, runtime=world.runtime, channel=world.cluster.channel
        ),
    )
    argv = ["--bootstrap-server", "b0:9090", "--topic", "t", "--timeout-ms", "0"]
    assert main([*argv, *options]) == 0
    count = out.count(b"\n")
    expected = b"Processed a total of %d messages\n" % count
    assert capfdbinary.readouterr() == (out, expected)
    assert world.ensemble.below("/consumers") == []


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--bootstrap-server", "b:1"], r'Missing required argument "\[topic\]"'),
        (["--bootstrap-server", "b:1", *TOPIC], "can't be used with option\""),
        (["--bootstrap-server", "b:1", "--topic", "t", "--offset", "x"], "offset value 'x'"),
        ([], "The console consumer is a tool"),
        (["--topic", "t"], r'Missing required argument "\[zookeeper\]"'),
        (["--zookeeper", "z"], r"Exactly one of whitelist/blacklist/topic is required\."),
        ([*TOPIC, "--whitelist", "t"], "Exactly one of whitelist/blacklist/topic"),
    ],
)
def test_usage(argv: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        main(argv)


def test_unknown_option_prints_the_bare_message(capsys: Any) -> None:
    assert main([*TOPIC, "--nope"]) == 1
    assert capsys.readouterr().err == "'nope' is not a recognized option\n"


def test_metrics_as_csv(world: GroupWorld, tmp_path: Path) -> None:
    world.cluster.append("t", 0, b"a", b"bc")
    metrics = tmp_path / "metrics"
    options = ["--csv-reporter-enabled", "--metrics-dir", str(metrics), "--max-messages", "2"]
    assert main([*TOPIC, "--from-beginning", *options]) == 0
    last = {path.stem: path.read_text().splitlines()[-1] for path in metrics.iterdir()}
    assert last.keys() == {"MessagesPerSec", "BytesPerSec"}
    assert last["MessagesPerSec"].split(",")[1] == "2"
    assert last["BytesPerSec"].split(",")[1] == "3"


def test_options_of_later_releases(world: GroupWorld, capfdbinary: Any) -> None:
    world.cluster.append("t", 0, (5).to_bytes(8, "big"))
    options = ["--group", "mine", "--consumer-property", "client.id=c", "--max-messages", "1"]
    options += ["--value-deserializer", "LongDeserializer", "--enable-systest-events"]
    assert main([*TOPIC, "--from-beginning", *options]) == 0
    assert capfdbinary.readouterr().out == b"5\nshutdown_complete\n"
    assert world.ensemble.text("/consumers/mine/offsets/t/0") == "1"


def test_a_group_without_zookeeper(
    world: GroupWorld, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    world.cluster.append("t", 0, b"a", b"b")
    DrivenStandalone.world = world
    monkeypatch.setattr(
        console_consumer,
        "StandaloneConsumer",
        lambda endpoints, config, group: DrivenStandalone(
            endpoints, config, group=group, runtime=world.runtime, channel=world.cluster.channel
        ),
    )
    argv = ["--bootstrap-server", "b0:9090", "--topic", "t", "--timeout-ms", "0", "--group", "g"]
    for expected in (b"a\n", b"b\n", b""):
        assert main([*argv, "--from-beginning", "--max-messages", "1"]) == 0
        assert capfdbinary.readouterr().out == expected


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ([], False),
        (["--property", "print.offset=true"], False),
        (["--property", "print.timestamp=true"], True),
        (["--property", "print.headers=true"], True),
        (["--consumer-property", "api.versions.request=true"], True),
        (
            [
                "--property",
                "print.headers=true",
                "--consumer-property",
                "api.versions.request=false",
            ],
            False,
        ),
    ],
)
def test_what_needs_later_fetches_asks_for_them(
    world: GroupWorld, capfdbinary: Any, given: list[str], asked: bool
) -> None:
    world.cluster.append("t", 0, b"a")
    assert main([*TOPIC, *given, "--from-beginning", "--max-messages", "1"]) == 0
    assert any(options.get("api_versions") for options in world.cluster.options) == asked
