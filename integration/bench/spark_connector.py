"""``kafka08`` beside Spark's own Kafka connector: `make bench WHAT=spark_connector`.

Both run on one release of PySpark, the newest whose connector Maven Central has, and read and write
the same topics of one broker in turn:

- ours: a broker of this project with messages of format 0, and ``api.versions.enable``, which the
  connector needs. The format ``kafka08`` speaks 0.8.2.2 to it, as it does by default.
- 3.9.1: a broker of that release with messages of format 2. ``kafka08`` has
  ``kafka.api.versions.request``, or the broker would convert each message.

Topics have two partitions. Cases:

- batch, stream, sink: rows a second and CPU, for each size of values and each kind of Spark. The
  rate of a stream is that without its first batch. Half as many rows are written as are read.
- peak: memory while a batch query reads two partitions of a gigabyte each (``--peak-rows``).
- queries: the start, the memory and the idle CPU of many streaming queries in one driver, which ask
  for news once a second.

pip and Maven fetch what is missing at the first use. If that fails, the program names it and
measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from integration import builds, modern
from integration.bench.machine import described
from integration.bench.spark_job import Job, Measured
from integration.bench.table import Row, markdown
from integration.harness import HOME, Broker, ZooKeeper, kill_everything
from integration.modern import ModernBroker
from integration.spark import environments
from integration.wire import Wire
from kafka08.message.sets import encode_set

FORMATS = {"kafka08": "kafka08", "connector": "kafka"}
RATES = ["batch", "stream", "sink"]
CASES = [*RATES, "peak", "queries"]
BROKERS = ["ours", modern.VERSION]
MASTERS = ["local[2]", "local-cluster[2,1,1024]"]
SIZES = [100, 1000]
PEAK_SIZE = 1000
QUERY_ROWS = 1000
SET_BYTES = 500_000
HEAP = ("-Xms1G", "-Xmx1G")


class Bench:
    """Measures the jobs of ``args``; what they find gathers in ``rows``."""

    def __init__(self, args: argparse.Namespace, python: Path, jars: str) -> None:
        self._args = args
        self._python = python
        self._jars = jars
        self.rows: dict[str, Row] = {}

    def measure(self, name: str, broker: Broker | ModernBroker) -> None:
        """All cases against a broker that serves no topics yet."""
        args = self._args
        later = {"kafka.api.versions.request": "true"} if name != "ours" else {}
        address = {"kafka.bootstrap.servers": broker.address}
        options = {"kafka08": {**address, **later}, "connector": address}
        rates = [case for case in RATES if case in args.cases]
        broker.create_topic("written", 2)
        for size in args.sizes if rates else ():
            rows = args.rows * SIZES[0] // size
            fill(broker, f"filled-{size}", size, rows)
            for master in args.masters:
                text = f"{size} B, broker {name}, {master}"
                self._pairs(text, rates, options, master=master, size=size, rows=rows)
        if "peak" in args.cases:
            fill(broker, "filled-peak", PEAK_SIZE, args.peak_rows)
            text = f"broker {name}, {MASTERS[0]}"
            self._pairs(text, ["peak"], options, topic="filled-peak", rows=args.peak_rows)
        if "queries" in args.cases:
            fill(broker, "filled-queries", SIZES[0], QUERY_ROWS)
            text = f"broker {name}"
            self._pairs(text, ["queries"], options, topic="filled-queries", rows=QUERY_ROWS)

    def _pairs(
        self,
        text: str,
        cases: list[str],
        options: dict[str, dict[str, str]],
        *,
        rows: int,
        master: str = MASTERS[0],
        size: int = SIZES[0],
        topic: str = "",
    ) -> None:
        rounds, queries = self._args.rounds, self._args.queries
        for _ in range(self._args.pairs):
            for kind, format in FORMATS.items():
                jars = self._jars if format == "kafka" else ""
                source = topic or f"filled-{size}"
                job = Job(
                    format, options[kind], master, cases, source, size, rows, rounds, queries, jars
                )
                self.note(kind, text, self._run(job))

    def _run(self, job: Job) -> Measured:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
        environment = {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(HOME)}
        command = [str(self._python), "-m", "integration.bench.spark_job"]
        done = subprocess.run(
            [*command, json.dumps(job._asdict())],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found: Measured = json.loads(done.stdout.splitlines()[-1])
        return found

    def note(self, kind: str, text: str, found: Measured) -> None:
        for name, unit, more, values in found:
            full = f"{name}, {text}"
            print(f"{kind}, {full}: {values} {unit}", file=sys.stderr, flush=True)
            row = self.rows.setdefault(full, Row(full, unit, more, {}))
            row.values.setdefault(kind, []).extend(values)


def fill(broker: Broker | ModernBroker, topic: str, size: int, rows: int) -> None:
    """A topic with ``rows`` random values."""
    broker.create_topic(topic, 2)
    count = min(SET_BYTES // size, rows)
    data = encode_set([(None, os.urandom(size)) for _ in range(count)])
    with Wire(broker.port) as wire:
        for number in range(rows // count):
            wire.produce(topic, number % 2, data)


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def some(known: list[str], text: str) -> list[str]:
    """Words of ``known``, or the first letters of them, one after the other."""
    words = text.split("+")
    found = [each for each in known if any(each.startswith(word) for word in words)]
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is not among {' '.join(known)}")
    return found


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="of 100 bytes; larger: fewer")
    parser.add_argument("--pairs", type=int, default=3, help="each Spark is started so often")
    parser.add_argument("--rounds", type=int, default=3, help="of each start")
    parser.add_argument("--peak-rows", type=int, default=2_000_000, help="of 1,000 bytes")
    parser.add_argument("--sizes", type=numbers, default=SIZES, metavar="BYTES,...")
    parser.add_argument("--queries", type=numbers, default=[1, 10, 100], metavar="COUNT,...")
    for name, known in {"cases": CASES, "brokers": BROKERS, "masters": MASTERS}.items():
        parser.add_argument(
            f"--{name}",
            type=lambda text, known=known: some(known, text),  # type: ignore[misc]
            default=known,
            help=f"of {' '.join(known)}, by their first letters, with + between them",
        )
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    try:
        if reason := modern.missing():
            raise builds.MissingError(reason)
        bench = Bench(args, *environments.other_connector())
    except builds.MissingError as error:
        print(f"Not measured beside Spark's own connector: {error}", file=sys.stderr)
        return 0
    scratch = Path(tempfile.mkdtemp(prefix="kafka08-bench-connector-"))
    try:
        for name in args.brokers:
            broker = start(name, scratch / name)
            bench.measure(name, broker)
            kill_everything()
    finally:
        kill_everything()
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{described()}, PySpark {environments.OTHER_VERSION}, {args.rows:,} rows\n")
    print(markdown(list(bench.rows.values()), list(FORMATS), cpu="Spark's"))
    return 0


def start(name: str, directory: Path) -> Broker | ModernBroker:
    if name != "ours":
        return ModernBroker(directory, java=HEAP).start()
    zookeeper = ZooKeeper(directory / "zookeeper").start()
    props = {"api.versions.enable": "true"}
    return Broker("ours", directory / "broker", f"{zookeeper.connect}/bench", props=props).start()


if __name__ == "__main__":
    sys.exit(main())
