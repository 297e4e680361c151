"""How long partitions are without a leader, ours beside the original: `make bench WHAT=failover`.

Three brokers, three replicas of every partition, topics of 50 (0.8.2.2 takes minutes to create
one of a thousand). Per kind and round:

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
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from integration import original
from integration.bench.machine import described
from integration.cluster.cluster import Cluster, eventually
from integration.cluster.hosts import Loopback
from integration.harness import kill_everything
from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.message.sets import encode_set, iter_messages
from kafka08.network.channel import Channel
from kafka08.producer.config import ProducerConfig
from kafka08.producer.errors import FailedToSendMessageError
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Producer
from kafka08.protocol import schemas
from zk import znodes

PER_TOPIC = 50
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


Leaders = dict[TopicPartition, int]


class Failover:
    """One cluster of one kind; what was measured gathers in `numbers` by name."""

    def __init__(self, kind: str, partitions: int, directory: Path) -> None:
        self.kind = kind
        self.preferred = {
            TopicPartition(f"failover{number // PER_TOPIC}", number % PER_TOPIC): number % 3 + 1
            for number in range(partitions)
        }
        self.topics = list(dict.fromkeys(key.topic for key in self.preferred))
        self.numbers: dict[str, list[float]] = {}
        self.cluster = Cluster(Loopback(), directory, kind, props=PROPS)

    def _note(self, name: str, value: float) -> None:
        assert name in UNITS
        self.numbers.setdefault(name, []).append(value)
        _say(f"{self.kind}: {name} {value:.3f}")

    # The cluster

    def start(self) -> None:
        self.cluster.start()
        rings = {1: (1, 2, 3), 2: (2, 3, 1), 3: (3, 1, 2)}
        begin = time.monotonic()
        for topic in self.topics:
            lists = [rings[first] for key, first in self.preferred.items() if key.topic == topic]
            self.cluster.new_topic(*lists, wait=False, name=topic)
        self._await_healthy()
        _say(f"{self.kind}: partitions created in {time.monotonic() - begin:.1f} s")

    def _await_healthy(self) -> None:
        """Full isrs, and every broker's metadata agrees with ZooKeeper on the leaders."""
        wanted = {}
        for topic, number in self.preferred:  # one look each where all is well
            state = self.cluster.await_state(topic, lambda s: len(s.isr) == 3, number, "full isr")
            wanted[topic, number] = state.leader
        for broker_id in self.cluster.brokers:
            self._await_leaders(broker_id, lambda found: found == wanted)

    def _leaders(self, channel: Channel) -> Leaders:
        """Leader by partition as a broker's metadata shows it; -1 for none."""
        topics = channel.call(schemas.MetadataRequest(self.topics)).topics
        return {
            TopicPartition(topic.topic, each.partition): each.leader
            for topic in topics
            for each in topic.partitions
        }

    def _await_leaders(self, broker_id: int, wanted: Callable[[Leaders], bool]) -> Leaders:
        """Until a broker's metadata shows leaders as wanted."""
        deadline = time.monotonic() + PATIENCE_S
        with self._connected(broker_id) as channel:
            while not wanted(found := self._leaders(channel)):
                if time.monotonic() > deadline:
                    raise AssertionError(
                        f"broker {broker_id} still shows {Counter(found.values())}"
                    )
                time.sleep(POLL_S)
        return found

    @contextlib.contextmanager
    def _connected(self, broker_id: int) -> Iterator[Channel]:
        broker = self.cluster.brokers[broker_id]
        with Channel(broker.host.address, broker.port, timeout_ms=30000) as channel:
            yield channel

    def _elect_preferred(self) -> None:
        """Back to a third each; also timed."""
        listed = [{"topic": topic, "partition": number} for topic, number in self.preferred]
        begin = time.monotonic()
        self.cluster.put("/admin/preferred_replica_election", {"version": 1, "partitions": listed})
        self._await_leaders(1, lambda found: found == self.preferred)
        self._note("preferred election", time.monotonic() - begin)
        self.cluster.await_no_node("/admin/preferred_replica_election")
        self._await_healthy()

    # kill -9

    def kill(self, name: str, victim: int) -> None:
        """Kill a broker and wait until all it led is led by others; then bring it back."""
        led = [key for key, leader in self.preferred.items() if leader == victim]
        survivor = next(each for each in self.cluster.brokers if each != victim)
        ended: list[float] = []
        self.cluster.zk.exists(znodes.broker_path(victim), lambda _: ended.append(time.monotonic()))
        begin = time.monotonic()
        self.cluster.kill(victim)
        leaders = self._await_leaders(
            survivor, lambda found: all(found.get(key, -1) not in (-1, victim) for key in led)
        )
        self._timed(f"{name}: new leaders", time.monotonic() - begin)
        self._await_acknowledged({key: leaders[key] for key in led})
        end = time.monotonic()
        self._timed(f"{name}: acknowledged", end - begin)
        self._note(f"{name}: acknowledged, after the session ended", end - ended[0])
        self.cluster.await_gone(victim)
        self.cluster.brokers[victim].start()
        self._await_healthy()
        self._elect_preferred()

    def _timed(self, name: str, seconds: float) -> None:
        self._note(name, seconds)
        self._note(f"{name}, after the session timeout", seconds - SESSION_MS / 1000)

    def _await_acknowledged(self, leaders: Leaders) -> None:
        """A record into each partition, all of one leader's in one request, until it takes it."""
        deadline = time.monotonic() + PATIENCE_S
        waiting = dict(leaders)
        while waiting:
            for leader in set(waiting.values()):
                mine = [key for key, each in waiting.items() if each == leader]
                with self._connected(leader) as channel:
                    answer = channel.call(_produce_request(mine))
                for topic in answer.topics:
                    for each in topic.partitions:
                        if each.error == 0:
                            del waiting[TopicPartition(topic.topic, each.partition)]
            if waiting and time.monotonic() > deadline:
                raise AssertionError(f"{len(waiting)} partitions take no record")

    # Controlled restart

    def roll(self) -> None:
        """Restart every broker in turn while a producer runs."""
        addresses = [f"{b.host.address}:{b.port}" for b in self.cluster.brokers.values()]
        with Load(addresses, list(self.preferred)) as load:
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
        with self._connected(1) as channel:
            leaders = self._leaders(channel)
        for leader in set(leaders.values()):
            with self._connected(leader) as channel:
                for key, each in leaders.items():
                    if each == leader:
                        found.update(_values(channel, key))
        return found

    def stop(self) -> None:
        self.cluster.stop()


def _produce_request(keys: Iterable[TopicPartition]) -> schemas.ProduceRequest:
    """One record for each, to be acknowledged by the whole isr within a second."""
    topics: dict[str, list[schemas.ProducePartition]] = {}
    for topic, number in keys:
        data = memoryview(encode_set([(None, b"x")]))
        topics.setdefault(topic, []).append(schemas.ProducePartition(number, data))
    return schemas.ProduceRequest(
        -1, 1000, [schemas.ProduceTopic(*each) for each in topics.items()]
    )


def _values(channel: Channel, key: TopicPartition) -> Iterable[bytes]:
    offset = 0
    while True:
        wanted = schemas.FetchPartition(key.partition, offset, 1 << 20)
        request = schemas.FetchRequest(-1, 0, 0, [schemas.FetchTopic(key.topic, [wanted])])
        answer = channel.call(request).topics[0].partitions[0]
        if answer.error:
            raise OSError(f"fetch of {key} at {offset}: error {answer.error}")
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

    def __init__(self, addresses: list[str], keys: list[TopicPartition]) -> None:
        self._keys = keys
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
        places = [self._keys[n % len(self._keys)] for n in numbers]
        messages = [
            KeyedMessage(topic, b"%d" % n, part_key=number)
            for n, (topic, number) in zip(numbers, places, strict=True)
        ]
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
        f"{described()}, {options.partitions} partitions, {options.rounds} round(s), "
        f"session timeout {SESSION_MS} ms\n"
    )
    print(markdown(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
