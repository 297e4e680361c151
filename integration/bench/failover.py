"""How long partitions are without a leader, ours beside the original: `make bench-failover`.

Three brokers, one topic with three replicas of every partition. Per kind and round:

- kill -9 of a broker that leads a third, once an ordinary one and once the controller. Counted
  from the kill until a survivor's metadata shows another leader for the last of its partitions,
  and until each of those has acknowledged a record to the whole isr (acks -1). Most of it is
  the session timeout, so what comes after it is shown too, and what comes after the session
  has ended, which may be sooner (its last sign of life came before the kill) or later.
- a controlled restart (SIGTERM, start, wait for full isrs) of one broker after the other under
  a producer with acks -1 and retries: what it had to report as failed, its longest wait for one
  batch, and what it was acknowledged but cannot be read afterwards.

Without the original only ours is measured. The numbers are medians of the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from integration import original
from integration.cluster.cluster import Cluster, eventually
from integration.cluster.hosts import Loopback
from integration.harness import kill_everything
from kafka08.errors import KafkaError
from kafka08.message.message_set import encode_set, iter_messages
from kafka08.network.channel import Channel
from kafka08.producer.config import ProducerConfig
from kafka08.producer.errors import FailedToSendMessageError
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Producer
from kafka08.protocol import schemas
from zk import znodes

TOPIC = "failover"
SESSION_MS = 6000
POLL_S = 0.05
PATIENCE_S = 120
BATCH = 50
PROPS = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "replica.lag.time.max.ms": 10000,
    "controlled.shutdown.retry.backoff.ms": 5000,
    "num.network.threads": 3,
    "num.io.threads": 8,
}
UNITS = {
    "killed: new leaders": "s",
    "killed: new leaders, after the session timeout": "s",
    "killed: acknowledged": "s",
    "killed: acknowledged, after the session timeout": "s",
    "killed: acknowledged, after the session ended": "s",
    "killed controller: new leaders": "s",
    "killed controller: new leaders, after the session timeout": "s",
    "killed controller: acknowledged": "s",
    "killed controller: acknowledged, after the session timeout": "s",
    "killed controller: acknowledged, after the session ended": "s",
    "preferred election": "s",
    "restart: SIGTERM to exit": "s",
    "restart: start to full isrs": "s",
    "restart: producer's longest wait": "s",
    "restart: failed after retries": "batches",
    "restart: acknowledged": "records",
    "restart: lost": "records",
}


class Failover:
    """One cluster of one kind; what was measured gathers in `numbers` by name."""

    def __init__(self, kind: str, partitions: int, directory: Path) -> None:
        self.kind = kind
        self.partitions = partitions
        self.numbers: dict[str, list[float]] = {}
        self.cluster = Cluster(Loopback(), directory, kind, props=PROPS)

    def _note(self, name: str, value: float) -> None:
        assert name in UNITS
        self.numbers.setdefault(name, []).append(value)
        _say(f"{self.kind}: {name} {value:.3f}")

    # The cluster

    def start(self) -> None:
        self.cluster.start()
        rings = [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
        begin = time.monotonic()
        self.cluster.new_topic(
            *(rings[number % 3] for number in range(self.partitions)), wait=False, name=TOPIC
        )
        self._await_healthy()
        _say(f"{self.kind}: {self.partitions} partitions in {time.monotonic() - begin:.1f} s")

    def _states(self) -> list[dict[str, list[int]]]:
        paths = [znodes.partition_state_path(TOPIC, n) for n in range(self.partitions)]
        asked = [self.cluster.zk.get_async(path) for path in paths]
        return [json.loads(each.get(timeout=PATIENCE_S)[0]) for each in asked]

    def _full(self) -> bool:
        return all(len(state["isr"]) == 3 for state in self._states())

    def _await_healthy(self) -> None:
        """Full isrs, and every broker's metadata agrees with ZooKeeper on the leaders."""
        eventually("full isrs", self._full, PATIENCE_S)
        wanted = {number: state["leader"] for number, state in enumerate(self._states())}
        for broker_id in self.cluster.brokers:
            eventually(
                f"metadata of broker {broker_id}",
                lambda b=broker_id: self._leaders(b) == wanted,
                PATIENCE_S,
            )

    def _leaders(self, broker_id: int) -> dict[int, int]:
        """Leader by partition as a broker's metadata shows it; -1 for none."""
        found = self.cluster.metadata(broker_id, TOPIC).topics[0].partitions
        return {each.partition: each.leader for each in found}

    def _elect_preferred(self) -> None:
        """Back to a third each; also timed."""
        listed = [{"topic": TOPIC, "partition": number} for number in range(self.partitions)]
        begin = time.monotonic()
        self.cluster.put("/admin/preferred_replica_election", {"version": 1, "partitions": listed})
        survivor = next(iter(self.cluster.brokers))
        wanted = {number: number % 3 + 1 for number in range(self.partitions)}
        eventually("preferred leaders", lambda: self._leaders(survivor) == wanted, PATIENCE_S)
        self._note("preferred election", time.monotonic() - begin)
        self.cluster.await_no_node("/admin/preferred_replica_election")
        self._await_healthy()

    # kill -9

    def kill(self, name: str, victim: int) -> None:
        """Kill a broker and wait until all it led is led by others; then bring it back."""
        led = {number for number in range(self.partitions) if number % 3 + 1 == victim}
        survivor = next(each for each in self.cluster.brokers if each != victim)
        ended: list[float] = []
        self.cluster.zk.exists(znodes.broker_path(victim), lambda _: ended.append(time.monotonic()))
        begin = time.monotonic()
        self.cluster.kill(victim)
        with self._connected(survivor) as channel:
            leaders = self._await_leaders(channel, led, victim)
            self._timed(f"{name}: new leaders", time.monotonic() - begin)
        self._await_acknowledged({number: leaders[number] for number in led})
        end = time.monotonic()
        self._timed(f"{name}: acknowledged", end - begin)
        self._note(f"{name}: acknowledged, after the session ended", end - ended[0])
        self.cluster.brokers[victim].start()
        self._await_healthy()
        self._elect_preferred()

    def _timed(self, name: str, seconds: float) -> None:
        self._note(name, seconds)
        self._note(f"{name}, after the session timeout", seconds - SESSION_MS / 1000)

    @contextlib.contextmanager
    def _connected(self, broker_id: int) -> Iterator[Channel]:
        broker = self.cluster.brokers[broker_id]
        with Channel(broker.host.address, broker.port, timeout_ms=30000) as channel:
            yield channel

    def _await_leaders(self, channel: Channel, led: set[int], victim: int) -> dict[int, int]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = channel.call(schemas.MetadataRequest([TOPIC])).topics[0].partitions
            leaders = {each.partition: each.leader for each in found}
            left = [number for number in led if leaders.get(number, -1) in (-1, victim)]
            if not left:
                return leaders
            if time.monotonic() > deadline:
                raise AssertionError(f"no new leader for {len(left)} partitions: {left[:5]}")
            time.sleep(POLL_S)

    def _await_acknowledged(self, leaders: dict[int, int]) -> None:
        """A record into each partition, all of one leader's in one request, until it takes it."""
        data = memoryview(encode_set([(None, b"x")]))
        deadline = time.monotonic() + PATIENCE_S
        waiting = dict(leaders)
        while waiting:
            for leader in set(waiting.values()):
                mine = [number for number, each in waiting.items() if each == leader]
                records = [schemas.ProducePartition(n, memoryview(bytearray(data))) for n in mine]
                request = schemas.ProduceRequest(-1, 1000, [schemas.ProduceTopic(TOPIC, records)])
                with self._connected(leader) as channel:
                    answer = channel.call(request)
                for each in answer.topics[0].partitions:
                    if each.error == 0:
                        del waiting[each.partition]
            if waiting and time.monotonic() > deadline:
                raise AssertionError(f"{len(waiting)} partitions take no record")

    # Controlled restart

    def roll(self) -> None:
        """Restart every broker in turn while a producer runs."""
        addresses = [f"{b.host.address}:{b.port}" for b in self.cluster.brokers.values()]
        with Load(addresses) as load:
            load.await_more()
            for broker_id, broker in self.cluster.brokers.items():
                begin = time.monotonic()
                self.cluster.terminate(broker_id)
                self._note("restart: SIGTERM to exit", time.monotonic() - begin)
                begin = time.monotonic()
                broker.start()
                self._await_healthy()
                self._note("restart: start to full isrs", time.monotonic() - begin)
                load.await_more()
        self._note("restart: producer's longest wait", load.longest_s)
        self._note("restart: failed after retries", load.failed)
        self._note("restart: acknowledged", len(load.acked))
        self._note("restart: lost", len(load.acked - self._read_all()))
        self._elect_preferred()

    def _read_all(self) -> set[bytes]:
        """Every value a consumer can see."""
        found: set[bytes] = set()
        leaders = self._leaders(1)
        for leader in set(leaders.values()):
            mine = [number for number, each in leaders.items() if each == leader]
            with self._connected(leader) as channel:
                for number in mine:
                    found.update(_values(channel, number))
        return found

    def stop(self) -> None:
        self.cluster.stop()


def _values(channel: Channel, partition: int) -> Iterable[bytes]:
    offset = 0
    while True:
        request = schemas.FetchRequest(
            -1,
            0,
            0,
            [schemas.FetchTopic(TOPIC, [schemas.FetchPartition(partition, offset, 1 << 20)])],
        )
        answer = channel.call(request).topics[0].partitions[0]
        if answer.error:
            raise OSError(f"fetch of {partition} at {offset}: error {answer.error}")
        messages = list(iter_messages(answer.message_set))
        for message in messages:
            if message.value is not None:
                yield bytes(message.value)
        if not messages:
            return
        offset = messages[-1].offset + 1


class Load:
    """One producer with acks -1: a batch over many partitions at a time, over and over.

    `acked`: values of batches that went through; `failed`: batches given up after all retries.
    """

    def __init__(self, addresses: list[str]) -> None:
        self.acked: set[bytes] = set()
        self.failed = 0
        self.longest_s = 0.0
        self._batches = 0
        self._error: BaseException | None = None
        self._stop = threading.Event()
        config = ProducerConfig.from_properties(
            {
                "metadata.broker.list": ",".join(addresses),
                "request.required.acks": "-1",
                "request.timeout.ms": "5000",
                "message.send.max.retries": "30",
                "retry.backoff.ms": "100",
            }
        )
        self._producer = Producer(config)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)
        self._producer.close()

    def await_more(self, batches: int = 20) -> None:
        """Until so many more batches were sent."""
        goal = self._batches + batches

        def done() -> bool:
            if self._error is not None:
                raise RuntimeError("the producer broke") from self._error
            return self._batches >= goal

        eventually("batches sent", done, PATIENCE_S)

    def _run(self) -> None:
        try:
            number = 0
            while not self._stop.is_set():
                self._send(range(number, number + BATCH))
                number += BATCH
                self._stop.wait(0.01)
        except BaseException as error:
            self._error = error
            raise

    def _send(self, numbers: range) -> None:
        messages = [KeyedMessage(TOPIC, b"%d" % n, part_key=n) for n in numbers]
        begin = time.monotonic()
        try:
            self._producer.send(*messages)
        except (FailedToSendMessageError, KafkaError, OSError) as error:
            self.failed += 1
            _say(f"the producer gave up: {error!r}")
        else:
            self.acked.update(b"%d" % n for n in numbers)
        self.longest_s = max(self.longest_s, time.monotonic() - begin)
        self._batches += 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Options(NamedTuple):
    partitions: int
    rounds: int


def measure(kind: str, options: Options, directory: Path) -> dict[str, list[float]]:
    """Every number of one kind, by name, one entry or more per round."""
    failover = Failover(kind, options.partitions, directory)
    try:
        failover.start()
        for _ in range(options.rounds):
            ordinary = next(i for i in (1, 2, 3) if i != failover.cluster.controller())
            failover.kill("killed", ordinary)
            failover.kill("killed controller", failover.cluster.controller())
            failover.roll()
    finally:
        failover.stop()
    return failover.numbers


def markdown(found: dict[str, dict[str, list[float]]]) -> str:
    """A line per number, a column per kind."""
    lines = [["case", "unit", *found], ["-"] * (2 + len(found))]
    for name, unit in UNITS.items():
        shown = [_shown(unit, numbers.get(name)) for numbers in found.values()]
        lines.append([name, unit, *shown])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _shown(unit: str, values: list[float] | None) -> str:
    if not values:
        return "-"
    return f"{statistics.median(values):.2f}" if unit == "s" else f"{sum(values):.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.failover")
    parser.description = (__doc__ or "").partition("\n")[0]
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kind", choices=("ours", "original"), help="measure this one alone")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--dir", type=Path, help="where the data goes (a temporary directory)")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else ["ours", "original"]
    missing = original.missing() if "original" in kinds else ""
    if missing:
        print(f"The original is not measured: {missing}\n")
        kinds.remove("original")
    if not kinds:
        return 1
    found: dict[str, dict[str, list[float]]] = {}
    # Errors that retries mend are the point here, and long.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory(prefix="kafka08-failover-", dir=options.dir) as directory:
            for kind in kinds:
                effort = Options(options.partitions, options.rounds)
                found[kind] = measure(kind, effort, Path(directory, kind))
    except KeyboardInterrupt:
        return 130
    finally:
        kill_everything()
    print(
        f"{platform.machine()}, Python {platform.python_version()}, "
        f"{options.partitions} partitions, {options.rounds} round(s), "
        f"session timeout {SESSION_MS} ms\n"
    )
    print(markdown(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
