"""Data that left the page cache: it arrives whole, and the event loop's thread does not fetch it.

Which thread made the disk read is told by the kernel's own account, /proc/PID/task/TID/io.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import Broker, Process, ZooKeeper
from integration.wire import Wire, entry, fetch_frame, gzip_set
from kafka08.message.compression import SNAPPY, compress
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages

SETS, RECORDS, VALUE_BYTES = 120, 40, 5000
SEGMENT_BYTES = 5 << 20


def plain_set(records: list[tuple[bytes | None, bytes | None]]) -> bytes:
    return b"".join(entry(*record, number) for number, record in enumerate(records))


def snappy_set(records: list[tuple[bytes | None, bytes | None]]) -> bytes:
    return entry(None, compress(SNAPPY, plain_set(records)), len(records) - 1, SNAPPY)


MAKERS = {"plain": plain_set, "gzip": gzip_set, "snappy": snappy_set}


@pytest.fixture
def broker(zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]) -> Broker:
    props = {"log.segment.bytes": SEGMENT_BYTES, "log.scrub.interval.ms": 0}
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/{tmp_path.name}", props=props)
    launch(broker)
    return broker.start()


def fill(broker: Broker, topic: str) -> list[bytes]:
    """About 24 MB in five segments; the values in order. Nothing of it is fresh afterwards."""
    broker.create_topic(topic)
    values: list[bytes] = []
    with broker.wire() as wire:
        for _ in range(SETS):
            batch = [random.randbytes(VALUE_BYTES // 2).hex().encode() for _ in range(RECORDS)]
            wire.produce(topic, 0, MAKERS[topic]([(None, value) for value in batch]))
            values += batch
    broker.stop()
    broker.start()
    broker.wait_for_leader(topic)
    return values


def chill(broker: Broker, topic: str) -> None:
    """Have none of the topic in the page cache."""
    for path in (broker.log_dir / f"{topic}-0").iterdir():
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def drain(broker: Broker, topic: str, max_bytes: int = 1 << 20) -> tuple[list[bytes], list[bytes]]:
    """The values, and each reply's bytes, from the beginning to the end."""
    values: list[bytes] = []
    replies: list[bytes] = []
    with broker.wire() as wire:
        end = wire.offset(topic, 0)
        while len(values) < end:
            _, data = wire.fetch(topic, 0, len(values), max_bytes)
            replies.append(data)
            messages = [m for m in iter_messages(data) if m.offset >= len(values)]
            assert [m.offset for m in messages[:1]] == [len(values)]
            values += [message.value or b"" for message in messages]
    return values, replies


def whole_entries(replies: list[bytes]) -> dict[int, bytes]:
    return {
        entry.offset: data[entry.position : entry.position + entry.size_total]
        for data in replies
        for entry in iter_entries(data)
    }


def read_from_disk(broker: Broker) -> tuple[int, int]:
    """Bytes the disk has read for the event loop's thread, and for all others."""
    found = {}
    for task in Path(f"/proc/{broker.pid}/task").iterdir():
        for line in (task / "io").read_text().splitlines():
            if line.startswith("read_bytes:"):
                found[int(task.name)] = int(line.split()[1])
    loop = found.pop(broker.pid)
    return loop, sum(found.values())


@pytest.mark.parametrize("topic", MAKERS)
def test_cold_readers(broker: Broker, topic: str) -> None:
    values = fill(broker, topic)
    hot_values, hot_replies = drain(broker, topic)
    assert hot_values == values
    chill(broker, topic)
    cold_values, cold_replies = drain(broker, topic)
    assert cold_values == values
    # where replies end depends on what is rebuilt already
    assert whole_entries(cold_replies) == whole_entries(hot_replies)
    assert cold_replies == hot_replies or topic != "plain"


def test_the_bytes_are_those_of_the_files(broker: Broker) -> None:
    fill(broker, "plain")
    chill(broker, "plain")
    files = sorted((broker.log_dir / "plain-0").glob("*.log"))
    with broker.wire() as wire:
        for file in files:
            _, data = wire.fetch("plain", 0, int(file.stem), 2 * SEGMENT_BYTES)
            assert data == file.read_bytes()
    assert len(files) > 4


def test_many_cold_readers_at_once(broker: Broker) -> None:
    values = fill(broker, "snappy")
    chill(broker, "snappy")
    sizes = [1 << 20, 300_000, 2 << 20, 1 << 20, 250_000, 1_500_000]
    found: dict[int, list[bytes]] = {}

    def read(number: int) -> None:
        found[number] = drain(broker, "snappy", sizes[number])[0]

    threads = [threading.Thread(target=read, args=(number,)) for number in range(len(sizes))]
    for thread in threads:
        thread.start()
    for number, thread in enumerate(threads):
        if number == 2:
            chill(broker, "snappy")  # once more, in the middle of it
        thread.join(60)
    assert all(found[number] == values for number in range(len(sizes)))


def test_replies_of_a_connection_stay_in_order(broker: Broker) -> None:
    """A cold fetch first, then what needs no disk: pipelined on one connection."""
    fill(broker, "plain")
    with Wire(broker.port) as wire:
        end = wire.offset("plain", 0)
        chill(broker, "plain")
        frames = [fetch_frame("plain", 0, at, 200_000, 0) for at in (0, end, 1000, end, 3000, end)]
        wire.socket.sendall(b"".join(frames))
        sizes = [len(wire.receive()) > 100_000 for _ in frames]
    assert sizes == [True, False] * 3


@pytest.mark.parametrize("topic", ["plain", "gzip"])
def test_the_event_loop_does_not_read(broker: Broker, topic: str) -> None:
    """From the end to the beginning: at pages that follow others in memory, the kernel reads ahead
    for the thread that touches them. The account has these reads too, although nobody waits."""
    values = fill(broker, topic)
    loop_before, others_before = read_from_disk(broker)
    with broker.wire() as wire:
        for offset in range(len(values) - 100, -1, -300):
            chill(broker, topic)
            _, data = wire.fetch(topic, 0, offset, 1 << 20)
            assert offset in [message.offset for message in iter_messages(data)]
    check_accounts(broker, loop_before, others_before)


def test_a_restart_leaves_nothing_to_the_loop(broker: Broker) -> None:
    """Fetches of the very end after a start: not fresh, for this process wrote nothing."""
    values = fill(broker, "plain")
    loop_before, others_before = read_from_disk(broker)
    with broker.wire() as wire:
        for _ in range(20):
            chill(broker, "plain")
            _, data = wire.fetch("plain", 0, len(values) - 100, 1 << 20)
            assert len(list(iter_messages(data))) == 100
    check_accounts(broker, loop_before, others_before)


def check_accounts(broker: Broker, loop_before: int, others_before: int) -> None:
    """The loop is charged with the pages that it asks for: newer kernels begin to read them."""
    loop, others = read_from_disk(broker)
    if loop - loop_before + others - others_before < 1 << 20:
        pytest.skip("this file system keeps everything in memory, or no account")
    assert loop - loop_before < (others - others_before) // 5
