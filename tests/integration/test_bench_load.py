"""The generators' arithmetic: requests as the broker reads them, totals as it would store them."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from integration.bench import latency, load, reading, trace
from integration.bench.load import Ring
from integration.bench.records import AROUND_100, Batch, batches
from integration.wire import OFFSETS
from kafka08.message.sets import assign_offsets, iter_messages
from kafka08.protocol.requests import decode_request
from kafka08.protocol.schemas import ProduceRequest

TOPIC = "topic"


def frames(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        yield data[at + 4 : at + 4 + size]
        at += 4 + size
    assert at == len(data)


def contents(data: bytes) -> tuple[list[str], list[set[int]], int, int]:
    """Client ids and partitions of each request; records and payload of all."""
    clients, partitions, records, payload = [], [], 0, 0
    for each in frames(data):
        header, body = decode_request(each)
        assert isinstance(body, ProduceRequest)
        clients.append(header.client_id or "")
        (topic,) = body.topics
        partitions.append({part.partition for part in topic.partitions})
        for part in topic.partitions:
            for message in iter_messages(part.message_set):
                records += 1
                payload += len(message.key or b"") + len(message.value or b"")
    return clients, partitions, records, payload


@pytest.mark.parametrize(("at_once", "codec"), [(1, "none"), (1, "lz4"), (6, "none")])
def test_rings_hold_whole_requests(at_once: int, codec: str) -> None:
    sets = batches(AROUND_100, 4096, codec)
    rings = load.rings(TOPIC, 6, sets, acks=1, connections=3, at_once=at_once)
    seen = set()
    for ring in rings:
        clients, partitions, records, payload = contents(bytes(ring.data))
        assert len(clients) == ring.count
        assert ring.totals(ring.count) == (records, payload)
        assert ring.totals(2 * ring.count) == (2 * records, 2 * payload)
        assert {len(numbers) for numbers in partitions} == {at_once}
        assert set.union(*partitions) == set(range(6))
        seen |= set(clients)
    assert len(seen) == 3


def test_rings_of_many_connections_stay_small() -> None:
    sets = batches(AROUND_100, 1024)
    rings = load.rings(TOPIC, 6, sets, acks=1, connections=1000)
    assert sum(len(ring.data) for ring in rings) < 2 * load.RING_BYTES
    assert len({bytes(ring.data[: ring.bounds[1]]) for ring in rings}) > 100


def test_a_ring_is_sent_round_and_round() -> None:
    ring = Ring([load.Request(b"aa", 1, 10), load.Request(b"b", 2, 20), load.Request(b"c", 4, 40)])
    assert ring.take(0, 2) == (2, b"aab")
    assert ring.take(2, 2) == (1, b"c")
    assert ring.take(3, 9) == (3, b"aabc")
    assert ring.totals(4) == (8, 80)


def test_the_day_is_dealt_out_whole() -> None:
    day = trace.day()[:100]
    rings = trace.rings("day", 6, 7, day)
    found = [contents(bytes(ring.data)) for ring in rings]
    assert sum(records for _, _, records, _ in found) == sum(each.batch.records for each in day)
    assert sum(payload for *_, payload in found) == sum(each.batch.payload for each in day)
    assert len({client for clients, *_ in found for client in clients}) > 7


@contextmanager
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A broker that answers with as many bytes as a broker would; its port, and what came."""
    came: list[bytes] = []
    threads = []

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                data = stream.read(*struct.unpack(">i", size))
                key, acks = struct.unpack(">h", data[:2])[0], 1
                if key != OFFSETS:
                    came.append(size + data)
                    acks = decode_request(data)[1].acks
                body = bytes(4 if key == OFFSETS else load.reply_bytes(TOPIC) - 8)
                if acks:
                    connection.sendall(struct.pack(">ii", 4 + len(body), 0) + body)

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(connection,)))
            threads[-1].start()

    server = socket.create_server(("127.0.0.1", 0))
    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield server.getsockname()[1], came
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        accepting.join(30)
        for thread in threads:
            thread.join(30)


@pytest.mark.parametrize("acks", [1, 0])
def test_what_is_counted_is_what_was_sent(acks: int) -> None:
    sets = batches(AROUND_100, 4096)
    with listener() as (port, came):
        amount = load.produce(
            port,
            TOPIC,
            6,
            sets,
            acks=acks,
            connections=4,
            in_flight=5,
            seconds=60,
            max_bytes=2 << 20,
            cpu=iter((1.0, 3.5)).__next__,
        )
    _, _, records, payload = contents(b"".join(came))
    assert (amount.records, amount.payload) == (records, payload)
    assert records > 10_000
    assert amount.broker_cpu_s == 2.5


def log(sets: list[Batch], turns: int) -> bytes:
    """The log that a broker would have after these requests."""
    stored, offset = b"", 0
    for each in sets * turns:
        buffer = bytearray(each.message_set)
        assign_offsets(memoryview(buffer), offset, max_message_bytes=1 << 20)
        stored += buffer
        offset += each.records
    return stored


def test_readers_find_the_next_offset_wherever_a_reply_is_cut() -> None:
    sets = [batches(AROUND_100, 1024, codec)[3] for codec in ("none", "gzip", "none", "lz4")]
    stored = log(sets, 2)
    cycle = reading.Cycle(sets)
    assert cycle.records == sum(each.records for each in sets)
    everything = list(iter_messages(stored))
    ends = {0: 0}  # where an entry ends: the offset after it
    at = 0
    while at < len(stored):
        offset, size = struct.unpack_from(">qi", stored, at)
        at += 12 + size
        ends[at] = offset + 1
    for cut in range(0, len(stored) + 1, 7):
        after = ends[max(end for end in ends if end <= cut)]
        payload = sum(len(m.value or b"") for m in everything[:after])
        assert cycle.read(0, memoryview(stored), 0, cut) == (after, payload)
    starts = [(end, offset) for end, offset in ends.items() if offset < len(everything)]
    for start, offset in starts:
        found, _ = cycle.read(offset, memoryview(stored), start, len(stored))
        assert found == len(everything)


def test_a_record_in_the_wrong_place_is_noticed() -> None:
    sets = [batches(AROUND_100, 1024)[0]]
    stored = log(sets, 2)
    with pytest.raises(RuntimeError, match="offset 0 where 1 was expected"):
        reading.Cycle(sets).read(1, memoryview(stored), 0, len(stored))


def test_mixed_load_sends_every_codec_from_every_producer() -> None:
    firsts = set()
    for number in range(latency.MIXED_PAIRS):
        sets = latency.mixed_batches(number)
        attributes = [each.message_set[17] & 7 for each in sets]
        assert set(attributes) == {0, 1, 2, 3}
        assert attributes == attributes[:4] * (len(attributes) // 4)
        firsts.add(attributes[0])
    assert firsts == {0, 1, 2, 3}
