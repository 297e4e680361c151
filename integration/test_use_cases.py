"""The use cases of docs/examples, each run as a program against a broker, checked by its numbers.

Every program makes its own topics and input, and ends by itself.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from integration import guides
from integration.harness import HOME, Broker, Process, ZooKeeper
from integration.spark.support import missing
from kafka08.producer.kafka_producer import KafkaProducer

EXAMPLES = HOME / "docs" / "examples"
TIMEOUT_S = 300


@pytest.fixture
def broker(zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]) -> Broker:
    """One for each test, as the examples name their topics."""
    chroot = f"{zookeeper.connect}/use-case-{uuid.uuid4().hex[:6]}"
    props = {"offsets.topic.num.partitions": 2, "num.partitions": 2}
    broker = Broker("ours", tmp_path / "broker", chroot, props=props)
    launch(broker)
    return broker.start()


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Any:
    """docs/examples/topics.py, imported as the examples import it."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return pytest.importorskip("topics")


def run(name: str, broker: Broker, *options: str, directory: Path) -> str:
    """The output of an example, which must end with status 0."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), f"--bootstrap-server={broker.address}", *options],
        capture_output=True,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(HOME)},
        timeout=TIMEOUT_S,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_a_topic_is_made_once_and_read_up_to_its_end(topics: Any, broker: Broker) -> None:
    topics.make(broker.address, "t", 3, {"retention.ms": "3600000"})
    topics.make(broker.address, "t", 5)
    assert topics.bounds(broker.address, "t") == {0: (0, 0), 1: (0, 0), 2: (0, 0)}
    assert list(topics.read(broker.address, "t")) == []
    sent = {(part, b"%d" % n) for part in (0, 2) for n in range(100)}
    with KafkaProducer(bootstrap_servers=broker.address, acks="all") as producer:
        for part, value in sorted(sent):
            producer.send("t", value, partition=part)
    found = list(topics.read(broker.address, "t"))
    assert {(each.partition, each.value) for each in found} == sent
    assert [e.offset for e in found if e.partition == 2] == list(range(100))
    assert len(found) == len(sent)


def run_as_shown(page: str, broker: Broker, directory: Path, changing: str = "") -> str:
    """The output of the first command of a page that shows one, which must be as shown there.

    ``changing``: see ``guides.matches``.
    """
    steps = guides.steps((EXAMPLES / page).read_text(encoding="utf-8"))
    step = next(step for step in steps if step.output is not None)
    printed = run(*options_of(step, broker, directory), directory=directory)
    assert guides.matches(step.output or "", printed, changing), f"{page} shows another:\n{printed}"
    return printed


def options_of(step: guides.Step, broker: Broker, directory: Path) -> tuple[Any, ...]:
    """The name of the program that a page runs last, ``broker``, and its further options."""
    words = shlex.split(step.text.replace("\\\n", " "), comments=True)
    at = max(number for number, word in enumerate(words) if word.endswith(".py"))
    names = {"localhost:9092": broker.address, "localhost:2181": broker.zookeeper}
    options = [names.get(word, word.replace("/tmp", str(directory))) for word in words[at + 1 :]]
    return Path(words[at]).name, broker, *options


def numbers(text: str, pattern: str) -> list[int]:
    """The groups of the one place where ``pattern`` matches, as numbers."""
    [found] = re.finditer(pattern, text, re.MULTILINE)
    return [int(each) for each in found.groups()]


def test_messaging(broker: Broker, tmp_path: Path, topics: Any) -> None:
    """A worker dies; its work is done by the others, and some of it twice."""
    changing = r"(?m)(?<=worker [12])  +\d+  #+$|(?<=^  worker 3)  .*|(?<=more than once: )\d+"
    printed = run_as_shown("messaging.md", broker, tmp_path, changing)
    done = [
        (each.key, each.value)
        for each in topics.read(broker.address, "tasks-done")
        if each.value != b"ready"
    ]
    tasks = {each.value for each in topics.read(broker.address, "tasks")}
    shares = Counter(worker.decode() for _, worker in done)
    counts = Counter(task for task, _ in done)
    assert set(counts) == tasks
    assert len(tasks) == 300
    assert shares["worker 3"] == 25
    assert numbers(printed, r"not done: (\d+)") == [0]
    again = sum(count > 1 for count in counts.values())
    assert numbers(printed, r"more than once: (\d+)") == [again]
    assert again >= 1  # the one that the worker had in hand
    for worker, count in shares.items():
        assert numbers(printed, rf"^  {worker} +(\d+)  #") == [count]
    assert numbers(printed, r"^mail +(\d+) +(\d+) +(\d+)$") == [300, 0, 300]
    assert numbers(printed, r"^statistics +(\d+) +(\d+) +(\d+)$") == [300, 0, 300]
    assert numbers(printed, r"^search-index +(\d+) +(\d+) +(\d+)$") == [180, 120, 300]


def test_website_activity(broker: Broker, tmp_path: Path, topics: Any) -> None:
    """The numbers that Spark counted are those of the topic."""
    if missing():
        pytest.skip(missing())
    pytest.importorskip("pyarrow")
    printed = run_as_shown("activity.md", broker, tmp_path)
    views = [json.loads(each.value) for each in topics.read(broker.address, "page-views")]
    pages = Counter(view["page"] for view in views)
    assert pages["/"] >= 500
    assert numbers(printed, r"^Page views that Spark counted: (\d+)$") == [len(views)]
    assert dict(re.findall(r"^  (/\S*) +(\d+)  #", printed, re.MULTILINE)) == {
        page: str(count) for page, count in pages.items()
    }
    windows = Counter(int(view["time"][14:16]) // 5 for view in views)
    assert numbers(printed, r"^ +(\d+) \|") == [max(windows.values())]
    for kind, topic in (("view", "page-views"), ("search", "searches"), ("order", "orders-placed")):
        stored = sum(end for _, end in topics.bounds(broker.address, topic).values())
        assert numbers(printed, rf"^{kind} +{topic} +(\d+)$") == [stored]
        assert stored


def test_metrics_of_the_simulated_server(broker: Broker, tmp_path: Path, topics: Any) -> None:
    """Every number of the table, computed here from the samples in the topic."""
    printed = run_as_shown("metrics.md", broker, tmp_path, r"\d\d:\d\d")
    cells: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for message in topics.read(broker.address, "metrics"):
        sample = json.loads(message.value)
        assert message.key.decode() == sample["name"]
        cells[sample["name"], int(sample["time"] // 60)].append(sample["value"])
    assert sum(map(len, cells.values())) == 60 * 14  # 12 of statsd and 2 of collectd at a time
    rows = {row[0]: row[2:] for row in map(str.split, printed.splitlines()) if len(row) == 12}
    minutes = sorted({minute for _, minute in cells})
    for name, reduce in {
        "web.requests": sum,
        "cache.hits": sum,
        "web1.load.load-short": mean,
        "web.answer": lambda values: sorted(values)[28],  # the 29th of 30: 95 %
        "web.users": lambda values: len(set(values)),
    }.items():
        expected = [reduce(cells[name, minute]) for minute in minutes]
        assert [float(cell) for cell in rows[name]] == pytest.approx(expected, abs=0.006)
    totals = [cells["web1.interface-eth0.if_octets.tx", minute] for minute in minutes]
    ends = [totals[0][0], *(values[-1] for values in totals)]
    assert [float(cell) for cell in rows["web1.interface-eth0.if_octets.tx"]] == [
        after - before for before, after in itertools.pairwise(ends)
    ]
    stored = {
        each.key: json.loads(each.value)
        for each in topics.read(broker.address, "metrics-per-minute")
    }
    key = json.dumps(["web.requests", "count", minutes[3] * 60]).encode()
    assert stored[key] == sum(cells["web.requests", minutes[3]])
    assert len(stored) == len(cells)
    assert numbers(printed, r"could not be read: (\d+)$") == [0]


def datagrams(port: int, *sent: bytes, until: Callable[[], bool]) -> None:
    """Sends them again and again, as nobody may listen yet, until all have arrived once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        deadline = time.monotonic() + TIMEOUT_S
        while not until():
            assert time.monotonic() < deadline
            for datagram in sent:
                agent.sendto(datagram, ("127.0.0.1", port))
            time.sleep(0.5)


def udp_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listening(
    name: str, broker: Broker, port: int, directory: Path, *sent: bytes, until: Callable[[], bool]
) -> str:
    """The output of an example that received datagrams from other programs."""
    options = (f"--listen=127.0.0.1:{port}", "--seconds=20")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run, name, broker, *options, directory=directory)
        datagrams(port, *sent, until=lambda: running.done() or until())
        return running.result()


def test_metrics_of_real_agents(broker: Broker, tmp_path: Path, topics: Any) -> None:
    """Sets and gauges, as a datagram may have to be sent more than once; and lines with faults."""
    at = 1_400_000_040  # the begin of a minute
    sent = [
        f"users:ann|s|T{at}\nusers:bob|s|T{at + 59}\nusers:ann|s|T{at + 61}".encode(),
        f'PUTVAL "db 1/load/load" {at}:0.25:U\nload:+1|g'.encode(),
    ]
    for topic in ("metrics", "metrics-unreadable"):
        topics.make(broker.address, topic, 4)

    def arrived() -> bool:
        names = {each.key for each in topics.read(broker.address, "metrics")}
        return len(names) == 2 and any(topics.read(broker.address, "metrics-unreadable"))

    printed = listening("metrics.py", broker, udp_port(), tmp_path, *sent, until=arrived)
    assert re.search(r"^users +set +2 +1$", printed, re.MULTILINE)
    assert re.search(r"^db 1\.load\.load\.0 +gauge +0\.25$", printed, re.MULTILINE)
    refused = list(topics.read(broker.address, "metrics-unreadable"))
    assert {each.value for each in refused} == {b"load:+1|g"}
    assert {each.key for each in refused} == {b"a change of a gauge, without its value"}
    assert numbers(printed, r"could not be read: (\d+)$") == [len(refused)]


def test_log_aggregation(broker: Broker, tmp_path: Path, topics: Any) -> None:
    # The chart has 5 minutes of the clock in a column, so that its shape depends on the time.
    changing = r"(?m)^\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d|(?<=minutes\n)(?: +\d* [|+].*\n)+"
    printed = run_as_shown("log-aggregation.md", broker, tmp_path, changing)
    logs = [json.loads(each.value) for each in topics.read(broker.address, "logs")]
    assert Counter(line["host"] for line in logs) == {"gate": 60, "web1": 60, "shop1": 120}
    found = [line for line in logs if "timeout" in line["text"]]
    assert numbers(printed, r'^"timeout": (\d+) of (\d+) lines') == [len(found), 240]
    levels = Counter(line["level"] for line in found)
    for level, count in levels.items():
        assert numbers(printed, rf"^  {level} +(\d+)  #") == [count]
    assert set(levels) == {"err", "warning"}

    # The other search of the page.
    steps = guides.steps((EXAMPLES / "log-aggregation.md").read_text(encoding="utf-8"))
    name, _, *options = options_of(steps[1], broker, tmp_path)
    printed = run(name, broker, *options, directory=tmp_path)
    roots = sum(" for root " in line["text"] for line in logs)
    assert numbers(printed, r'^"failed password root": (\d+) of (\d+) lines') == [roots, 240]

    # A later search simulates nothing, and finds words in several fields, in a span of time.
    end = datetime.fromtimestamp(max(line["time"] for line in logs) - 1800).isoformat()
    options = ("--search=GATE failed root", f"--until={end}")
    printed = run("log_aggregation.py", broker, *options, directory=tmp_path)
    early = datetime.fromisoformat(end).timestamp()
    expected = [
        line
        for line in logs
        if line["time"] < early and line["host"] == "gate" and " for root " in line["text"]
    ]
    assert numbers(printed, r'^"GATE failed root": (\d+) of (\d+) lines') == [len(expected), 240]
    assert 0 < len(expected) < sum(" for root " in line["text"] for line in logs)


def test_syslog_of_real_machines(broker: Broker, tmp_path: Path, topics: Any) -> None:
    """One in each form, and one in none."""
    topics.make(broker.address, "logs", 4)
    sent = [
        b"<34>1 2003-10-11T22:14:15.003Z my.example.com su - ID47 - \xef\xbb\xbf'su root' failed",
        b"<13>Feb  5 17:32:18 10.0.0.99 cron[77]: Use the BFG!",
        b"no form",
    ]

    def arrived() -> bool:
        return len({each.value for each in topics.read(broker.address, "logs")}) >= len(sent)

    port = udp_port()
    listening("log_aggregation.py", broker, port, tmp_path, *sent, until=arrived)
    lines = [json.loads(each.value) for each in topics.read(broker.address, "logs")]
    assert {(line["host"], line["program"], line["level"], line["text"]) for line in lines} == {
        ("my.example.com", "su", "crit", "'su root' failed"),
        ("10.0.0.99", "cron", "notice", "Use the BFG!"),
        ("127.0.0.1", "-", "notice", "no form"),
    }
    assert {line["time"] for line in lines if line["program"] == "su"} == {1065910455.003}
    keys = {each.key.decode() for each in topics.read(broker.address, "logs")}
    assert keys == {line["host"] for line in lines}
