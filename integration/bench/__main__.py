"""Ours and the original in one run, cell by cell and round by round in turn.

`--quick` is one round of short cells (under five minutes); `--json FILE` also keeps the numbers;
`--table FILE` puts them between the markers of a document.
Without the original only ours is measured. A cell's number is the median of its rounds. Two starts
of one build differ by some percent from start to end, so each round has starts of its own if the
original is not measured. With it there is one start: a JVM gets faster with time.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from pathlib import Path

from integration import harness, original
from integration.bench import cells, chart, table
from integration.bench.cells import FULL, QUICK, Bench, Effort
from integration.bench.machine import described
from integration.bench.table import Row, markdown
from integration.harness import Broker, ZooKeeper, kill_everything

HEAP = ("-Xmx1G", "-Xms1G")
PROPS = {
    "delete.topic.enable": "true",
    "num.network.threads": 3,
    "num.io.threads": 8,
    "socket.send.buffer.bytes": 102400,
    "socket.receive.buffer.bytes": 102400,
    "zookeeper.session.timeout.ms": 6000,
}
MANY = "start, partitions"
BEFORE = "another checkout, set up and compiled, that is measured in place of the other broker"
# The chart: by panel, the bars' names and their rows.
PANELS = {
    "~100 B": {shown: f"produce ~100 B x {shown}, acks 1" for shown in cells.SET_BYTES},
    "~1 KB": {shown: f"produce ~1 KB x {shown}, acks 1" for shown in cells.SET_BYTES},
    "~100 B x 16 KB": {
        "equal": "produce 100 B equal x 16 KB, acks 1",
        "keys": "produce ~100 B x 16 KB, with keys, acks 1",
        "6 part.": "produce ~100 B x 16 KB over 6 partitions, acks 1",
        **{codec: f"produce ~100 B x 16 KB {codec}, acks 1" for codec in ("gzip", "snappy", "lz4")},
    },
}


def run_replicated(bench: Bench, kinds: list[str], rounds: int, connect: str, root: Path) -> None:
    """Three brokers of one kind at a time: six would want more memory than they are worth."""
    for kind in kinds:
        three = [
            Broker(
                kind,
                root / f"{kind}-{number}",
                f"{connect}/{kind}-3",
                broker_id=number,
                props=PROPS,
                heap=HEAP,
            ).start()
            for number in range(3)
        ]
        for _ in range(rounds + 1):
            say(f"3 replicas: {kind}")
            bench.replicated(three)
        bench.forget_first(cells.REPLICATED)
        for broker in three:
            broker.kill()


def run_cells(bench: Bench, brokers: list[Broker], rounds: int, only: str) -> None:
    restart = not any(broker.kind == "original" for broker in brokers)
    chosen = {name: cell for name, cell in cells.cells(bench).items() if only in name}
    if not chosen and only not in "start, empty":
        return
    for number in range(rounds):
        in_turn = brokers if number % 2 == 0 else brokers[::-1]
        for broker in in_turn if restart or not number else ():
            bench.start(broker)
        if not number and any("half load" in name for name in chosen):
            bench.find_half_load(brokers)
        for name, cell in chosen.items():
            say(f"round {number + 1}: {name}")
            for broker in in_turn:
                cell(broker)
        for broker in in_turn if restart or number == rounds - 1 else ():
            bench.memory(broker)
            broker.stop()


def run(kinds: list[str], effort: Effort, only: str, directory: Path) -> list[Row]:
    rows: dict[str, Row] = {}
    bench = Bench(rows, effort)
    zookeeper = ZooKeeper(directory / "zookeeper").start()

    def brokers(name: str, **more: object) -> list[Broker]:
        props = {**PROPS, **more}
        return [
            Broker(
                kind,
                directory / f"{kind}{name}",
                f"{zookeeper.connect}/{kind}{name}",
                props=props,
                heap=HEAP,
            )
            for kind in kinds
        ]

    run_cells(bench, brokers(""), effort.rounds, only)
    old = {codec: name for codec, name in cells.OLD_SETS.items() if only in name}
    for broker in brokers("-old") if old else []:
        say(f"old sets: {broker.kind}")
        bench.old_sets(broker, old)
    if only in cells.REPLICATED:
        run_replicated(bench, kinds, effort.rounds, zookeeper.connect, directory)
    many = {"log.index.size.max.bytes": 1 << 20}
    for broker in brokers("-many", **many) if only in MANY else []:
        say(f"{MANY}: {broker.kind}")
        bench.start_with_partitions(broker)
    return list(rows.values())


def chart_of(rows: list[Row], kinds: list[str]) -> str:
    """The produce rates with acks 1, by record and set size and for sets of other kinds."""
    found = {row.name: row for row in rows}
    values = {}
    for panel, bars in PANELS.items():
        for bar, name in bars.items():
            row = found.get(name)
            for kind in kinds:
                value = row and row.median(kind)
                if value:
                    values[panel, bar, kind] = value
    panels = {panel: list(bars) for panel, bars in PANELS.items()}
    return chart.svg("Produce rate, acks 1, 6 partitions", "MB/s", panels, kinds, values)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of short cells")
    parser.add_argument("--rounds", type=int, help="rounds per cell")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--chart", type=Path, help="also draw rates of producing, an SVG")
    parser.add_argument(
        "--table", type=Path, help="also replace the table between the markers of this document"
    )
    parser.add_argument("--only", default="", help="only cells whose name holds this")
    parser.add_argument("--kind", choices=("ours", "original"), help="measure this one alone")
    parser.add_argument("--before", type=Path, help=BEFORE)
    parser.add_argument("--mixed", type=float, help="seconds of mixed load, for each round")
    parser.add_argument("--dir", type=Path, help="where the data goes (a temporary directory)")
    options = parser.parse_args()
    if options.table and (options.only or options.kind or options.before):
        parser.error("--table writes all rows: it does not go with --only, --kind or --before")
    if options.table and not options.table.is_file():
        parser.error(f"--table replaces the table of a page: there is no {options.table}")
    effort = QUICK if options.quick else FULL
    if options.rounds:
        effort = effort._replace(rounds=options.rounds)
    if options.mixed:
        effort = effort._replace(mixed_s=options.mixed)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # for 1,000 connections
    if options.before:
        harness.HOMES["before"] = options.before.resolve()
    kinds = [options.kind] if options.kind else ["ours", "before" if options.before else "original"]
    if "original" in kinds and not original.available():
        print(f"The original is not measured: {original.missing()}\n")
        kinds.remove("original")
    try:
        with tempfile.TemporaryDirectory(prefix="kafka08-bench-", dir=options.dir) as directory:
            try:
                rows = run(kinds, effort, options.only, Path(directory))
            finally:
                kill_everything()
    except KeyboardInterrupt:
        return 130
    print(f"{described()}, median of {effort.rounds}\n")
    print(markdown(rows, kinds))
    if options.chart:
        options.chart.write_text(chart_of(rows, kinds))
    if options.table:
        options.table.write_text(table.replaced(options.table.read_text(), rows, kinds))
    if options.json:
        numbers = {row.name: {"unit": row.unit, **row.values} for row in rows}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
