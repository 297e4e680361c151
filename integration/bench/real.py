"""Programs that people run, unmodified: ours, 0.8.2.2 and 3.9.1 in one run, round by round in turn.

`python -m integration.bench.real [--rounds N] [--only TEXT] [--scale X]`. The programs are
ProducerPerformance and ConsumerPerformance of Kafka 0.8.2.2 and 3.9.1, librdkafka's
rdkafka_performance, kcat, and kafka-python. A program that is not installed is left out. Rates and
latencies are those that the programs print; those of kcat, which prints none, are of its whole
run. CPU is the broker's. The first round of a case warms the brokers up and does not count.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import itertools
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from integration import builds, modern, original
from integration.bench import clients, load
from integration.bench.clients import Server
from integration.bench.machine import described
from integration.bench.table import figure, figures, quotient
from integration.harness import Broker, Tools, ZooKeeper, kill_everything
from integration.modern import ModernBroker

OURS, OLD, NEW = "ours", original.VERSION, modern.VERSION
HEAP = ("-Xmx1G", "-Xms1G")
TOOLS = f"org.apache.kafka:kafka-tools:{NEW}"
RDKAFKA = ("rdkafka_performance", "-q", "-q")
# A broker of 0.8.2.2 closes the connection when it is asked for its versions.
AS_FOR_OLD = ("api.version.request=false", "broker.version.fallback=0.8.2.1")
PARTITIONS = clients.PARTITIONS
TIMEOUT_S = 300


class Outcome(NamedTuple):
    """Of one run of a program. ``p50``, ``p99``: ms, None where the program does not say."""

    records: int
    seconds: float
    p50: float | None = None
    p99: float | None = None


class Sample(NamedTuple):
    """An outcome, and the broker's CPU seconds meanwhile."""

    outcome: Outcome
    cpu: float


class Case(NamedTuple):
    """``run(broker, topic, records, size)`` has a program send or read so many of this size.
    ``kinds``: the brokers that it can talk to. A topic to read is ``filled`` by the producer of
    this release; one on 0.8.2.2 by its own."""

    name: str
    run: Callable[[Server, str, int, int], Outcome]
    records: int
    size: int = 100
    kinds: tuple[str, ...] = (OURS, OLD, NEW)
    filled: str = ""


# --- the programs


def _output(command: list[str], stdin: Path | None = None) -> str:
    with (stdin or Path("/dev/null")).open("rb") as data:
        done = subprocess.run(
            command, stdin=data, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout + done.stderr


def produced(text: str) -> Outcome:
    """The last line of a ProducerPerformance of Kafka, any release. Raises ValueError."""
    found = re.findall(
        r"(\d+) records sent, ([\d.]+) records/sec .*?([\d.]+) ms 50th.*?([\d.]+) ms 99th", text
    )
    if not found:
        raise ValueError(f"no summary of a producer: {text[-500:]}")
    records, rate, p50, p99 = found[-1]
    return Outcome(int(records), int(records) / float(rate), float(p50), float(p99))


def consumed(text: str) -> Outcome:
    """The last line of a ConsumerPerformance of 3.9.1, whose fetching counts and not the time until
    its group was made. Raises ValueError."""
    found = re.findall(
        r"^\S+ \S+, \S+ \S+, [\d.]+, [\d.]+, (\d+), [\d.]+, -?\d+, (\d+),", text, re.M
    )
    if not found:
        raise ValueError(f"no summary of a consumer: {text[-500:]}")
    records, ms = found[-1]
    return Outcome(int(records), int(ms) / 1e3)


def rdkafka(text: str) -> Outcome:
    """The summary of rdkafka_performance. Raises ValueError."""
    found = re.findall(r"% (\d+) messages .*?in (\d+)ms", text)
    if not found:
        raise ValueError(f"no summary of rdkafka_performance: {text[-500:]}")
    records, ms = found[-1]
    return Outcome(int(records), int(ms) / 1e3)


def java_produce(
    broker: Server, topic: str, records: int, size: int, settings: Sequence[str] = ()
) -> Outcome:
    sent = ["--topic", topic, "--num-records", str(records), "--record-size", str(size)]
    props = ["--producer-props", f"bootstrap.servers={broker.address}", *settings]
    command = [*_java(), "org.apache.kafka.tools.ProducerPerformance", *sent]
    return produced(_output([*command, "--throughput", "-1", *props]))


def java_consume(broker: Server, topic: str, records: int, size: int) -> Outcome:
    command = [*_java(), "org.apache.kafka.tools.ConsumerPerformance", "--topic", topic]
    command += ["--bootstrap-server", broker.address, "--timeout", "60000", "--hide-header"]
    return consumed(_output([*command, "--messages", str(records)]))


def _java() -> list[str]:
    return ["java", "-Xmx512M", "-cp", f"{builds.jars(TOOLS)}/*:{modern.directory()}/*"]


def old_produce(tools: Tools, broker: Server, topic: str, records: int, size: int) -> Outcome:
    case = clients.Case("produce", size, records)
    return produced(clients.original_produced(tools, case, broker, topic).out)


def old_consume(tools: Tools, broker: Server, topic: str, records: int, size: int) -> Outcome:
    assert isinstance(broker, Broker)
    result = clients.original_consume(tools, clients.Case("consume", size, records), broker, topic)
    return Outcome(result.records, result.seconds)


def rdkafka_produce(
    broker: Server, topic: str, records: int, size: int, settings: Sequence[str] = ()
) -> Outcome:
    command = [*RDKAFKA, "-P", "-t", topic, "-b", broker.address, "-a", "1", *_each("-X", settings)]
    return rdkafka(_output([*command, "-s", str(size), "-c", str(records)]))


def rdkafka_consume(broker: Server, topic: str, records: int, size: int) -> Outcome:
    partitions = _each("-p", range(PARTITIONS))
    command = [*RDKAFKA, "-C", "-t", topic, "-b", broker.address, *partitions]
    return rdkafka(_output([*command, "-c", str(records), "-o", "beginning"]))


def _each(option: str, values: Iterable[object]) -> list[str]:
    return [word for value in values for word in (option, str(value))]


def _kcat(broker: Server, topic: str) -> list[str]:
    return ["kcat", "-q", "-b", broker.address, "-t", topic, *_each("-X", AS_FOR_OLD)]


def kcat_produce(lines: Path, broker: Server, topic: str, records: int, size: int) -> Outcome:
    with lines.open("w") as file:
        file.writelines(itertools.repeat("x" * size + "\n", records))
    begin = time.monotonic()
    _output([*_kcat(broker, topic), "-P"], lines)
    return Outcome(records, time.monotonic() - begin)


def kcat_consume(broker: Server, topic: str, records: int, size: int) -> Outcome:
    begin = time.monotonic()
    shown = _output([*_kcat(broker, topic), "-C", "-e", "-f", "."])
    return Outcome(len(shown), time.monotonic() - begin)


def kafka_python(side: str, broker: Server, topic: str, records: int, size: int) -> Outcome:
    """Timed after its first messages, as if all took as long as the others."""
    result = clients.worker("kafka-python", clients.Case(side, size, records), broker, topic)
    return Outcome(records, result.seconds * records / result.records)


def cases(directory: Path, scale: float) -> list[Case]:
    """Those whose programs are here. ``scale``: of their numbers of records."""
    found = []
    if not modern.missing():
        found += _java_cases()
    if original.available():
        found += _old_java_cases(Tools("original", directory / "tools"))
    if shutil.which("rdkafka_performance"):
        found += _librdkafka_cases()
    if shutil.which("kcat"):
        lines = functools.partial(kcat_produce, directory / "lines")
        found.append(Case("kcat, produce", lines, 1_000_000))
        found.append(Case("kcat, consume", kcat_consume, 2_000_000, filled=NEW))
    if importlib.util.find_spec("kafka"):
        for side, filled in (("produce", ""), ("consume", OLD)):
            run = functools.partial(kafka_python, side)
            found.append(Case(f"kafka-python, {side}", run, 100_000, filled=filled))
    return [case._replace(records=round(case.records * scale)) for case in found]


def _java_cases() -> list[Case]:
    new = (OURS, NEW)

    def case(name: str, records: int, *settings: str, size: int = 100) -> Case:
        run = functools.partial(java_produce, settings=("acks=1", "linger.ms=5", *settings))
        return Case(f"Java {NEW}, {name}", run, records, size, new)

    return [
        case("produce", 3_000_000),
        case("produce, acks all", 3_000_000, "acks=all"),
        case("produce, 1 KB", 600_000, size=1000),
        case("produce, linger 0", 2_000_000, "linger.ms=0"),
        case("produce, gzip", 500_000, "compression.type=gzip"),
        case("produce, snappy", 2_000_000, "compression.type=snappy"),
        case("produce, lz4", 2_000_000, "compression.type=lz4"),
        case("produce, zstd", 2_000_000, "compression.type=zstd"),
        Case(f"Java {NEW}, consume", java_consume, 3_000_000, kinds=new, filled=NEW),
        Case(f"Java {NEW}, consume, 1 KB", java_consume, 600_000, 1000, new, NEW),
    ]


def _old_java_cases(tools: Tools) -> list[Case]:
    run = functools.partial(old_produce, tools)
    reader = functools.partial(old_consume, tools)
    return [
        Case(f"Java {OLD}, produce", run, 2_000_000),
        Case(f"Java {OLD}, produce, 1 KB", run, 500_000, 1000),
        Case(f"Java {OLD}, consume", reader, 2_000_000, kinds=(OURS, OLD), filled=OLD),
    ]


def _librdkafka_cases() -> list[Case]:
    as_old = functools.partial(rdkafka_produce, settings=AS_FOR_OLD)
    return [
        Case("librdkafka, produce", rdkafka_produce, 3_000_000, kinds=(OURS, NEW)),
        Case("librdkafka, produce as for 0.8.2", as_old, 3_000_000),
        Case("librdkafka, consume", rdkafka_consume, 3_000_000, kinds=(OURS, NEW), filled=NEW),
    ]


# --- a run


class Real:
    """The samples of a case gather in ``samples`` by its name and the kind of broker.
    ``fill``: the producer of a release."""

    def __init__(
        self, brokers: dict[str, Server], fill: Mapping[str, Callable[..., Outcome]]
    ) -> None:
        self.samples: dict[tuple[str, str], list[Sample]] = {}
        self._brokers = brokers
        self._fill = fill
        self._topics = itertools.count()
        self._filled: dict[tuple[str, str, int], tuple[str, int]] = {}

    def run(self, case: Case, rounds: int) -> None:
        kinds = [kind for kind in case.kinds if kind in self._brokers]
        for number in range(rounds + 1):
            for kind in kinds if number % 2 else kinds[::-1]:
                print(f"round {number}: {case.name}, {kind}", file=sys.stderr, flush=True)
                sample = self._sample(case, kind, self._brokers[kind])
                print(f"  {sample}", file=sys.stderr, flush=True)
                if number:
                    self.samples.setdefault((case.name, kind), []).append(sample)

    def _sample(self, case: Case, kind: str, broker: Server) -> Sample:
        topic = self._full(kind, case) if case.filled else self._topic(broker)
        before = broker.cpu_seconds()
        outcome = case.run(broker, topic, case.records, case.size)
        sample = Sample(outcome, broker.cpu_seconds() - before)
        if outcome.records < case.records:
            raise RuntimeError(f"{case.name}, {kind}: only {outcome.records} of {case.records}")
        if not case.filled:
            clients.check_stored(broker, topic, case.records, f"{case.name}, {kind}")
            load.discard(broker, topic)
        return sample

    def _topic(self, broker: Server) -> str:
        topic = f"real{next(self._topics):04}"
        broker.create_topic(topic, PARTITIONS)
        return topic

    def _full(self, kind: str, case: Case) -> str:
        """A topic with the records that a case reads."""
        by = OLD if kind == OLD else case.filled
        topic, records = self._filled.get((kind, by, case.size), ("", 0))
        if records != case.records:
            broker = self._brokers[kind]
            topic = self._topic(broker)
            self._fill[by](broker, topic, case.records, case.size)
            self._filled[kind, by, case.size] = topic, case.records
        return topic


def table(samples: Mapping[tuple[str, str], Sequence[Sample]], kinds: Sequence[str]) -> str:
    """Rates in thousands of records a second, the broker's CPU in seconds for a million records,
    and latencies in ms: of the first kind, and compared with each other one."""
    head = ["", "k/s", "CPU", "p50", "p99"]
    for kind in kinds[1:]:
        head += [f"k/s / {kind}", f"CPU / {kind}", f"p99 / {kind}"]
    rows = []
    for case in dict.fromkeys(name for name, _ in samples):
        ours = _figures(samples[case, kinds[0]])
        row = [case, *map(figure, ours)]
        for kind in kinds[1:]:
            theirs = _figures(samples.get((case, kind), ()))
            row += [quotient(ours[at], theirs[at]) for at in (0, 1, 3)]
        rows.append(row)
    return figures(head, rows)


Figures = tuple[float | None, float | None, float | None, float | None]


def _figures(samples: Sequence[Sample]) -> Figures:
    def median(of: Callable[[Sample], float | None]) -> float | None:
        found = [value for sample in samples if (value := of(sample)) is not None]
        return statistics.median(found) if found else None

    return (
        median(lambda sample: sample.outcome.records / sample.outcome.seconds / 1e3),
        median(lambda sample: sample.cpu / sample.outcome.records * 1e6),
        median(lambda sample: sample.outcome.p50),
        median(lambda sample: sample.outcome.p99),
    )


def start(directory: Path) -> dict[str, Server]:
    """The brokers that can run here, by kind; ours first."""
    zookeeper = ZooKeeper(directory / "zookeeper").start()
    props = {"delete.topic.enable": "true", "zookeeper.session.timeout.ms": 6000}
    found: dict[str, Server] = {}
    for kind, harness_kind in ((OURS, "ours"), (OLD, "original")):
        if kind == OLD and not original.available():
            continue
        more = {**props, **({"api.versions.enable": "true"} if kind == OURS else {})}
        connect = f"{zookeeper.connect}/{harness_kind}"
        at = directory / harness_kind
        found[kind] = Broker(harness_kind, at, connect, props=more, heap=HEAP).start()
    if not modern.missing():
        found[NEW] = ModernBroker(directory / "modern", java=HEAP).start()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.real", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    only = "only cases whose names hold one of these"
    parser.add_argument("--only", nargs="+", default=[""], help=only)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="kafka08-bench-") as name:
            directory = Path(name)
            brokers = start(directory)
            old = functools.partial(old_produce, Tools("original", directory / "tools"))
            # Without lingering, a broker that answers sooner would have more and smaller batches.
            new = functools.partial(java_produce, settings=("acks=1", "linger.ms=100"))
            real = Real(brokers, {NEW: new, OLD: old})
            for case in cases(directory, options.scale):
                if any(text in case.name for text in options.only):
                    real.run(case, options.rounds)
    finally:
        kill_everything()
    print(f"{described()}, median of {options.rounds}\n")
    print(table(real.samples, list(brokers)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
