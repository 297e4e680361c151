"""The cleaner at length: a million keyed updates, kill -9 in the middle of cleanings.

At the end the log must hold each key's last value at its true offset and nothing that a later
message of the same key has superseded (below where cleaning got), and the original's consumer,
our own and two independent clients must read the very same messages from it.
"""

from __future__ import annotations

import gzip
import random
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from integration import original
from integration.clients import KAFKA_08
from integration.harness import Broker, Process, Tools, ZooKeeper
from integration.wire import Entry, Wire, WireError, entry, wait_until

TOPIC = "soak"
SET_MESSAGES = 2000
SEED = 20150909
CLIENT_TIMEOUT_S = 180
CLEANABLE = 0.2
PROPS = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": 200,
    "log.cleaner.min.cleanable.ratio": CLEANABLE,
    "log.cleaner.dedupe.buffer.size": 16 << 20,
    "log.segment.bytes": 4 << 20,
    "log.flush.offset.checkpoint.interval.ms": 2000,
    "message.max.bytes": 4 << 20,
    "replica.fetch.max.bytes": 5 << 20,
}
GZIP, SNAPPY = 1, 2


class Updates:
    """Sets of keyed updates and what they come to: value number ``n`` of key ``k`` is told by
    both, a few are tombstones. ``last`` has each key's last (offset, value)."""

    def __init__(self, keys: int, codec: int, seed: int) -> None:
        self.codec = codec
        self.last: dict[bytes, tuple[int, bytes | None]] = {}
        self.count = 0
        self._keys = [b"key-%06d" % number for number in range(keys)]
        self._rng = random.Random(seed)

    def next_set(self, messages: int) -> tuple[bytes, list[tuple[bytes, bytes | None]]]:
        keys = self._rng.choices(self._keys, k=messages)
        pairs: list[tuple[bytes, bytes | None]] = [
            (key, b"%s=%d" % (key, self.count + i) if (self.count + i) % 97 else None)
            for i, key in enumerate(keys)
        ]
        self.count += messages
        return encode(pairs, self.codec), pairs

    def stored(self, base: int, pairs: list[tuple[bytes, bytes | None]]) -> None:
        """The set was acknowledged at this offset."""
        for offset, (key, value) in enumerate(pairs, base):
            self.last[key] = (offset, value)


_HEAD = struct.Struct(">qiIbbi")


def encode(pairs: list[tuple[bytes, bytes | None]], codec: int) -> bytes:
    """As the Scala producer does: inner offsets 0..n-1, the wrapper at n-1."""
    inner = b"".join([entry(key, value, i) for i, (key, value) in enumerate(pairs)])
    if codec == GZIP:
        return entry(None, gzip.compress(inner, 1), len(pairs) - 1, GZIP)
    if codec == SNAPPY:
        return entry(None, xerial(inner), len(pairs) - 1, SNAPPY)
    return inner


def xerial(data: bytes) -> bytes:
    import snappy

    blocks = [snappy.compress(data[at : at + 32768]) for at in range(0, len(data), 32768)]
    framed = [struct.pack(">i", len(block)) + block for block in blocks]
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(framed)


def unxerial(data: bytes) -> bytes:
    import snappy

    if not data.startswith(b"\x82SNAPPY\x00"):
        return bytes(snappy.decompress(data))
    parts, at = [], 16
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        parts.append(snappy.decompress(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return b"".join(parts)


def messages_of(data: bytes) -> Iterator[Entry]:
    """Whole messages with the offsets that their bytes carry, wrappers opened."""
    at = 0
    while at + 26 <= len(data):
        offset, size, crc, _, codec, key_size = _HEAD.unpack_from(data, at)
        end = at + 12 + size
        if end > len(data):
            return
        assert zlib.crc32(data[at + 16 : end]) == crc, f"bad crc at offset {offset}"
        at += 22
        key = None
        if key_size >= 0:
            key = data[at : at + key_size]
            at += key_size
        (value_size,) = struct.unpack_from(">i", data, at)
        value = data[at + 4 : end] if value_size >= 0 else None
        at = end
        if not codec:
            yield Entry(offset, 0, key, value)
        else:
            assert value is not None
            inner = gzip.decompress(value) if codec == GZIP else unxerial(value)
            for message in messages_of(inner):
                yield message._replace(codec=codec)


def read_everything(wire: Wire, size: int = 4 << 20) -> list[Entry]:
    """From the start to the end; compaction leaves gaps."""
    found: list[Entry] = []
    offset, end = wire.offset(TOPIC, 0, -2), wire.offset(TOPIC, 0)
    while offset < end:
        _, data = wire.fetch(TOPIC, 0, offset, size)
        fresh = [message for message in messages_of(data) if message.offset >= offset]
        if not fresh:
            break
        found += fresh
        offset = fresh[-1].offset + 1
    return found


class Soak:
    """One broker under updates, killed now and then in the middle of a cleaning."""

    def __init__(self, broker: Broker, updates: Updates, kills: int, total: int) -> None:
        self.broker = broker
        self.updates = updates
        self.total = total
        self.kill_at = [total * (i + 1) // (kills + 1) for i in range(kills)]
        self.killed_while_cleaning = 0
        self._rng = random.Random(SEED)

    def run(self) -> None:
        wire = self.broker.wire()
        while self.updates.count < self.total:
            self._update(wire)
            if self.kill_at and self.updates.count >= self.kill_at[0]:
                del self.kill_at[0]
                self.kill_while_cleaning(wire)
                wire = self.broker.wire()
        wire.close()

    def _update(self, wire: Wire) -> None:
        data, pairs = self.updates.next_set(SET_MESSAGES)
        self.updates.stored(self._produce(wire, data), pairs)

    def _produce(self, wire: Wire, data: bytes) -> int:
        while True:
            try:
                return wire.produce(TOPIC, 0, data)
            except WireError as error:
                assert error.code in (3, 5, 6), f"error {error.code}"
                time.sleep(0.1)

    def kill_while_cleaning(self, wire: Wire) -> None:
        """kill -9 once cleaned files are there, or about to be swapped. Updates continue until
        then, as the cleaner may have nothing to do."""
        directory = self.broker.log_dir / f"{TOPIC}-0"
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if any(name.suffix in (".cleaned", ".swap") for name in directory.iterdir()):
                self.killed_while_cleaning += 1
                time.sleep(self._rng.uniform(0, 0.05))
                break
            self._update(wire)
        wire.close()
        self.broker.kill()
        self.broker.start()
        self.broker.wait_for_leader(TOPIC)

    def wait_until_clean(self) -> None:
        """Until what is left to clean is less than is worth it, as the cleaner reckons."""
        wait_until("an end of cleaning", 180, self._is_clean)

    def _is_clean(self) -> bool:
        directory = self.broker.log_dir / f"{TOPIC}-0"
        sizes = {int(path.stem): path.stat().st_size for path in directory.glob("*.log")}
        first_dirty = cleaned_until(self.broker)
        closed = sorted(sizes)[:-1]
        dirty = sum(sizes[base] for base in closed if base >= first_dirty)
        share = dirty / (sum(sizes[base] for base in closed if base < first_dirty) + dirty)
        return share <= CLEANABLE and not any(directory.glob("*.cleaned"))


def check(found: list[Entry], updates: Updates, clean_until: int) -> None:
    """Each key's last value at its offset; nothing superseded below ``clean_until``."""
    offsets = [message.offset for message in found]
    assert all(a < b for a, b in pairwise(offsets)), "offsets do not rise"
    last: dict[bytes, tuple[int, bytes | None]] = {}
    superseded_below: dict[bytes, int] = {}
    for message in found:
        assert message.key is not None
        if message.key in last and message.offset < clean_until:
            superseded_below[message.key] = message.offset
        if message.value is not None:
            assert message.value.startswith(message.key + b"="), message
        last[message.key] = (message.offset, message.value)
    for key, (offset, value) in updates.last.items():
        if value is None:
            assert last.get(key, (offset, None)) == (offset, None), key
        else:
            assert last.get(key) == (offset, value), (key, last.get(key), offset, value)
    assert not superseded_below, f"{len(superseded_below)} keys more than once"
    assert set(last) <= set(updates.last)


def cleaned_until(broker: Broker) -> int:
    lines = (broker.log_dir / "cleaner-offset-checkpoint").read_text().splitlines()
    found = (int(line.split()[2]) for line in lines[2:] if line.startswith(f"{TOPIC} 0 "))
    return next(found, 0)


@pytest.mark.parametrize(
    "codec",
    [
        pytest.param("none", marks=pytest.mark.slow),
        "gzip",
        pytest.param("snappy", marks=pytest.mark.slow),
    ],
)
def test_compaction_under_kill_9(
    codec: str,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
    request: pytest.FixtureRequest,
) -> None:
    quick = request.config.getoption("--quick")
    total, keys, kills = (100_000, 5_000, 2) if quick else (1_200_000, 40_000, 4)
    props = {**PROPS, **({"log.segment.bytes": 200_000} if quick else {})}
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/soak-{codec}", props=props)
    launch(broker)
    broker.start()
    broker.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
    updates = Updates(keys, {"none": 0, "gzip": GZIP, "snappy": SNAPPY}[codec], SEED)
    soak = Soak(broker, updates, kills, total)
    soak.run()
    assert soak.killed_while_cleaning, "no kill met a cleaning"
    # The cleaner's child outlives its broker by a moment, in a session of its own.
    assert "Traceback" not in broker.log_path.read_text()
    soak.wait_until_clean()
    with broker.wire() as wire:
        found = read_everything(wire)
    check(found, updates, cleaned_until(broker))
    assert len(found) < total * 0.7, "hardly anything was cleaned"
    everyone_agrees(broker, found, tmp_path)
    assert broker.stop() == 143


Read = list[tuple[int, bytes | None, bytes | None]]


def by_kafka_python(broker: Broker, last: int) -> Read:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=broker.address,
        api_version=(0, 8, 2),
        group_id=None,
        enable_auto_commit=False,
        max_partition_fetch_bytes=8 << 20,
    )
    partition = TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found: Read = []
    deadline = time.monotonic() + CLIENT_TIMEOUT_S
    while (not found or found[-1][0] < last) and time.monotonic() < deadline:
        for batch in consumer.poll(500).values():
            found += [(m.offset, m.key, m.value) for m in batch]
    consumer.close()
    return found


def by_librdkafka(broker: Broker, last: int) -> Read:
    from confluent_kafka import Consumer, TopicPartition

    config = {**KAFKA_08, "bootstrap.servers": broker.address, "group.id": "unused"}
    config |= {"enable.auto.commit": False, "log_level": 3, "fetch.message.max.bytes": 8 << 20}
    consumer = Consumer({**config, "enable.auto.offset.store": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: Read = []
    deadline = time.monotonic() + CLIENT_TIMEOUT_S
    while (not found or found[-1][0] < last) and time.monotonic() < deadline:
        for message in consumer.consume(2000, 1):
            assert message.error() is None, message.error()
            found.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return found


def everyone_agrees(broker: Broker, found: list[Entry], directory: Path) -> None:
    """Independent clients read the cleaned log as the wire does, offsets included."""
    expected = [(message.offset, message.key, message.value) for message in found]
    assert by_kafka_python(broker, expected[-1][0]) == expected
    assert by_librdkafka(broker, expected[-1][0]) == expected
    kinds = ["ours", *(["original"] if original.available() else [])]
    for kind in kinds:
        tools = Tools(kind, directory / f"tools-{kind}")
        args = ["--broker-list", broker.address, "--topic", TOPIC, "--no-wait-at-logend"]
        args += ["--partition", "0", "--print-offsets", "--property", "print.key=true"]
        args += ["--fetchsize", str(8 << 20)]
        done = tools.run("kafka.tools.SimpleConsumerShell", *args, timeout=600)
        assert done.code == 0, done.err
        lines = done.raw.splitlines()
        for number, (offset, key, value) in enumerate(expected):
            assert lines[2 * number] == b"next offset = %d" % (offset + 1), f"{kind} at {offset}"
            assert lines[2 * number + 1] == b"%s\t%s" % (key, b"null" if value is None else value)
        assert len(lines) == 2 * len(expected) + 1
