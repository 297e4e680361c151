"""A walk over every command-line tool of 0.8.2 and every option, by the list in tools.csv.

A row of the list is a tool, one of its options, its argument, its default, whether it is required
and since when it is there ("newer": later than 0.8.2). A tool is a script's name without ``.sh``,
or a class for ``kafka-run-class.sh``; ``<x>`` is a positional argument.
"""

from __future__ import annotations

import csv
import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from integration.harness import HOME, Tools
from tools.options import OptionError, UsageError
from tools.run_class import MODULES

# The tools that do not exist here. A tool that exists must not be listed.
ABSENT = {
    "kafka.tools.JmxTool": "speaks JMX, which only a JVM serves",
    "kafka.tools.KafkaMigrationTool": "needs the jars of Kafka 0.7",
}
CLASSES = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-console-consumer": "kafka.tools.ConsoleConsumer",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "kafka.admin.ConsumerGroupCommand",
    "kafka-consumer-offset-checker": "kafka.tools.ConsumerOffsetChecker",
    "kafka-consumer-perf-test": "kafka.tools.ConsumerPerformance",
    "kafka-mirror-maker": "kafka.tools.MirrorMaker",
    "kafka-preferred-replica-election": "kafka.admin.PreferredReplicaLeaderElectionCommand",
    "kafka-producer-perf-test": "kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "kafka.admin.ReassignPartitionsCommand",
    "kafka-replay-log-producer": "kafka.tools.ReplayLogProducer",
    "kafka-replica-verification": "kafka.tools.ReplicaVerificationTool",
    "kafka-simple-consumer-shell": "kafka.tools.SimpleConsumerShell",
    "kafka-topics": "kafka.admin.TopicCommand",
}
# Their options are the scripts', which tests/tools/test_bin.py tries.
SHELL = {"kafka-run-class", "kafka-server-start", "zookeeper-server-start", "zookeeper-shell"}
# Without arguments it connects and reads commands.
INTERACTIVE = {"kafka.tools.ZooKeeperMainWrapper"}
# Options of ours that neither 0.8.2 nor the list has.
OWN = {
    "kafka-console-producer": {"--reader-property"},
    "kafka-mirror-maker": {
        "--modern.producer",
        "--new.consumer",
        "--abort.on.send.failure",
        "--offset.commit.interval.ms",
        "--metrics.port",
    },
    "kafka-consumer-perf-test": {"--consumer.config"},
    "kafka-producer-perf-test": {"--producer.config"},
    "kafka-reassign-partitions": {"--wait"},
    "kafka.tools.DumpLogSegments": {"--verify-integrity"},
    "kafka.tools.GetOffsetShell": {"--bootstrap-server"},
}
# Options of ours for connections to brokers and ZooKeeper, which many tools have.
CONNECTION = {"--command-config", "--zk-tls-config-file"}
# Tools whose one sentence about themselves is our own.
REWORDED = {
    "kafka.tools.DumpLogSegments",
    "kafka.tools.StateChangeLogMerger",
    "kafka.tools.TestEndToEndLatency",
}
NO_SUCH = "--no-such-option"


class Row(NamedTuple):
    option: str
    arg: str
    default: str
    required: str
    since: str


def _rows() -> dict[str, list[Row]]:
    tools: dict[str, list[Row]] = {}
    with (Path(__file__).parent / "tools.csv").open(newline="") as file:
        for tool, *rest in list(csv.reader(file))[1:]:
            tools.setdefault(tool, []).append(Row(*rest))
    return tools


TOOLS = _rows()
SCRIPTS = [tool for tool in TOOLS if "." not in tool]
WITH_OPTIONS = [
    tool
    for tool, rows in TOOLS.items()
    if tool not in ABSENT.keys() | SHELL | INTERACTIVE
    and any(row.option.startswith("-") for row in rows)
]
OF_0_8_2 = [
    tool
    for tool, rows in TOOLS.items()
    if tool not in ABSENT | dict.fromkeys(SHELL | INTERACTIVE)
    and any(row.since == "0.8.2" for row in rows)
]


def class_of(tool: str) -> str:
    return CLASSES.get(tool, tool)


def test_the_list_of_absent_tools_is_not_stale() -> None:
    assert not ABSENT.keys() & MODULES.keys()
    assert ABSENT.keys() <= TOOLS.keys()


@pytest.mark.parametrize("suffix", ["", ".sh"])
@pytest.mark.parametrize("tool", SCRIPTS)
def test_scripts_have_both_names(tool: str, suffix: str) -> None:
    assert os.access(HOME / "bin" / f"{tool}{suffix}", os.X_OK)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in SHELL])
def test_classes_have_a_module(tool: str) -> None:
    assert (class_of(tool) in MODULES) != (tool in ABSENT)


@pytest.mark.parametrize("tool", WITH_OPTIONS)
def test_every_option_is_taken(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A parser reads from left to right: it must not stumble before the one that is unknown."""
    argv: list[str] = []
    for row in TOOLS[tool]:
        if row.option.startswith("-") and row.option not in ("--help", "-r"):
            argv += [row.option, _sample(row)] if row.arg else [row.option]
    main = importlib.import_module(MODULES[class_of(tool)]).main
    assert "no-such-option" in refusal(main, [*argv, NO_SUCH], capsys)


@pytest.mark.parametrize("tool", [tool for tool in WITH_OPTIONS if tool in CLASSES])
def test_prefixes_of_0_8_2_stay_unique(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Options of later releases must not make an abbreviation ambiguous that worked."""
    old = {row.option: row for row in TOOLS[tool] if row.since == "0.8.2"}
    main = importlib.import_module(MODULES[class_of(tool)]).main
    for option, row in old.items():
        prefix = next(
            option[:end]
            for end in range(3, len(option) + 1)
            if option[:end] == option or sum(o.startswith(option[:end]) for o in old) == 1
        )
        argv = [prefix, _sample(row)] if row.arg else [prefix]
        assert "no-such-option" in refusal(main, [*argv, NO_SUCH], capsys), prefix


def _sample(row: Row) -> str:
    return "1" if row.arg.startswith(("Integer", "Long", "int", "long")) else "x"


def refusal(
    main: Callable[[list[str]], int], argv: list[str], capsys: pytest.CaptureFixture[str]
) -> str:
    """The tool's description of its command line."""
    try:
        main(argv)
    except (OptionError, UsageError) as error:
        return str(error)
    captured = capsys.readouterr()
    return captured.err + captured.out


# --- beside the original


class Usage(NamedTuple):
    """The output of a tool without arguments: its first lines, and each option's default."""

    code: int
    intro: list[str]
    options: dict[str, str | None]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tools, Tools]:
    return (
        Tools("ours", tmp_path_factory.mktemp("ours")),
        Tools("original", tmp_path_factory.mktemp("original")),
    )


def usage(tools: Tools, class_name: str) -> Usage:
    done = tools.run(class_name)
    lines = (done.out + done.err).splitlines()
    if not any(line.startswith("Option  ") for line in lines):
        return Usage(done.code, lines, {})
    start = next(i for i, line in enumerate(lines) if line.startswith("Option  "))
    return Usage(done.code, lines[:start], _options(lines[start + 2 :]))


def _options(table: list[str]) -> dict[str, str | None]:
    """Heading without blanks -> default, of joptsimple's two columns of 39."""
    rows: list[list[str]] = []
    for line in table:
        left, right = line[:39].strip(), line[40:].strip()
        if line.startswith("-"):
            rows.append([left, right])
        else:
            rows[-1][0] += left
            rows[-1][1] += f" {right}"
    found = {}
    for heading, text in rows:
        default = re.search(r"\(default:\s*(.*)\)\s*$", text)
        shown = None if default is None else re.sub(r"\s", "", default[1])
        # A group's made-up name.
        # Where the original shows an object instead of its pattern.
        heading = re.sub(r"java.text.SimpleDateFormat@\w+", "yyyy-MM-dd HH:mm:ss,SSS", heading)
        found[re.sub(r"\s", "", heading)] = shown and re.sub(r"-\d+$", "-N", shown)
    return found


def name_of(heading: str) -> str:
    return re.split(r"[<\[]", heading)[0]


@pytest.mark.original
@pytest.mark.parametrize("tool", OF_0_8_2)
def test_usage_without_arguments(tool: str, both: tuple[Tools, Tools]) -> None:
    ours, theirs = (usage(tools, class_of(tool)) for tools in both)
    if any("Exception" in line for line in theirs.intro):
        assert ours.intro
        assert not any("Traceback" in line for line in ours.intro), ours.intro
        return
    newer = {row.option for row in TOOLS[tool] if row.since == "newer"} | CONNECTION
    newer |= OWN.get(tool, set())
    known = {h: d for h, d in ours.options.items() if name_of(h) not in newer}
    assert known == theirs.options
    if tool in REWORDED:
        assert bool(ours.intro) == bool(theirs.intro)
    else:
        assert ours.intro == theirs.intro
    assert ours.code == theirs.code
