"""One data directory, two brokers in turn: each opens, serves and continues the other's files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import Broker, Process, ZooKeeper
from integration.wire import Entry, Wire, entry, gzip_set, wait_until

PARTITIONS = 3
SETS = 120
PER_SET = 10
GROUP = "exchange"
LOADING = 14
PROPS = {
    "log.segment.bytes": 100_000,
    "log.index.interval.bytes": 1000,
    "log.index.size.max.bytes": 10_000,
    "offsets.topic.num.partitions": 2,
}
original = pytest.mark.original
PAIRS = [
    pytest.param("original", "ours", marks=original, id="original-then-ours"),
    pytest.param("ours", "original", marks=original, id="ours-then-original"),
    pytest.param("original", "original", marks=original, id="original-then-original"),
    pytest.param("ours", "ours", id="ours-then-ours"),
]


def fill(wire: Wire, topic: str, round_: int, compressed: bool) -> None:
    """SETS sets of PER_SET messages per partition, some with null or empty parts."""
    noise = random.Random(round_)
    for number in range(PARTITIONS):
        for i in range(SETS):
            records: list[tuple[bytes | None, bytes | None]] = [
                (b"%d" % j, b"%d-%d-%d-%d-" % (round_, number, i, j) + noise.randbytes(20 * j))
                for j in range(PER_SET - 2)
            ]
            records += [(None, b""), (b"dead", None)]
            if compressed:
                message_set = gzip_set(records)
            else:
                message_set = b"".join(entry(key, value) for key, value in records)
            wire.produce(topic, number, message_set)


def contents(wire: Wire, topic: str) -> list[list[Entry]]:
    return [wire.read_all(topic, number) for number in range(PARTITIONS)]


def coordinate(wire: Wire) -> None:
    def loaded() -> bool:
        found = wire.coordinator_error(GROUP) == 0
        return found and wire.committed(GROUP, "data", 0)[1] == 0

    wait_until("offset coordinator", 30, loaded)


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_the_other_broker_takes_over(
    first: str,
    second: str,
    end: str,
    compressed: bool,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    chroot = f"{zookeeper.connect}/exchange-{first}-{second}-{end}-{compressed}"
    data = tmp_path / "data"
    # Only files whose wrappers hold absolute offsets are safe with 0.8.2.2.
    props = {**PROPS, **({"log.compressed.sets": "normalised"} if first == "ours" else {})}
    one = Broker(first, tmp_path / "one", chroot, props=props, log_dir=data)
    two = Broker(second, tmp_path / "two", chroot, props=PROPS, log_dir=data)
    launch(one)
    launch(two)
    one.start()
    one.create_topic("data", PARTITIONS)
    with one.wire() as wire:
        fill(wire, "data", 1, compressed)
        coordinate(wire)
        assert wire.commit(GROUP, "data", 1, 77) == 0
        before = contents(wire, "data")
    if end == "stop":
        assert one.stop() == 143
    else:
        one.kill()
    assert len(list((data / "data-0").glob("*.log"))) > 1, "too little data to see segments"

    two.start()
    two.wait_for_leader("data", PARTITIONS)
    with two.wire() as wire:
        assert contents(wire, "data") == before
        coordinate(wire)
        # A coordinator answers before it has read its partition of offsets.
        wait_until("loaded offsets", 30, lambda: wire.committed(GROUP, "data", 1)[1] != LOADING)
        assert wire.committed(GROUP, "data", 1) == (77, 0)
        for start in (1, 333, SETS * PER_SET - 1):
            assert wire.read_all("data", 0, start) == before[0][start:]
        fill(wire, "data", 2, compressed)
        after = contents(wire, "data")
    for old, new in zip(before, after, strict=True):
        assert new[: len(old)] == old
        assert [e.offset for e in new] == list(range(2 * SETS * PER_SET))
    assert two.stop() == 143
