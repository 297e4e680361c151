"""A producer that remembers what was acknowledged, and the check that none of it is lost.

One task per partition sends a small batch at a time with acks -1, and again until it is
acknowledged, whatever happens meanwhile; a batch may therefore be there twice, never not at all.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from integration.cluster.cluster import Cluster, eventually
from kafka08.errors import KafkaError
from kafka08.message.sets import encode_set
from kafka08.network.channel import Channel
from kafka08.protocol import schemas

# Codes that brokers answer during a leader change; a producer tries again and no user sees them.
MOVED = {3, 5, 6, 7, 19, 20}
BATCH = 5


class Recorder:
    """Runs from `with` to its end. `acked` by partition, in order; `codes` counts answers."""

    def __init__(self, cluster: Cluster, topic: str, partitions: int = 1, codec: int = 0) -> None:
        self.cluster = cluster
        self.topic = topic
        self.partitions = partitions
        self.codec = codec
        self.acked: list[list[bytes]] = [[] for _ in range(partitions)]
        self.codes: Counter[int] = Counter()
        self.slowest_s = 0.0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(partitions)
        ]

    def __enter__(self) -> Recorder:
        for thread in self._threads:
            thread.start()
        self.await_more(2 * BATCH)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def await_more(self, count: int = 5 * BATCH) -> None:
        """Until every partition has had `count` more records acknowledged."""
        goal = [len(each) + count for each in self.acked]
        eventually(
            f"{count} more records acknowledged ({self.codes})",
            lambda: all(len(a) >= g for a, g in zip(self.acked, goal, strict=True)),
        )

    def verify(self) -> None:
        """Stop; every acknowledged record can be read, in the order of acknowledgement."""
        self.stop()
        for number in range(self.partitions):
            eventually(f"{self.topic}-{number} complete", lambda n=number: self._complete(n))

    def _complete(self, number: int) -> bool:
        found = list(dict.fromkeys(self.cluster.read(self.topic, number)))
        acked = self.acked[number]
        have = set(found)
        missing = [value for value in acked if value not in have]
        if missing:
            raise OSError(f"{len(missing)} of {len(acked)} lost, first {missing[0]!r}")
        wanted = set(acked)
        assert [value for value in found if value in wanted] == acked, "order changed"
        return True

    def _run(self, partition: int) -> None:
        channel: Channel | None = None
        leader = -1
        for number in range(0, 1 << 30, BATCH):
            values = [b"%d-%d" % (partition, n) for n in range(number, number + BATCH)]
            begin = time.monotonic()
            while not self._stop.is_set():
                try:
                    if channel is None:
                        leader = self._leader(partition)
                        broker = self.cluster.brokers[leader]
                        channel = Channel(broker.host.address, broker.port, timeout_ms=6000)
                    code = self._send(channel, partition, values)
                except (OSError, KafkaError, KazooException, KazooTimeoutError):
                    code = -100
                self.codes[code] += 1
                if code == 0:
                    self.acked[partition] += values
                    self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
                    break
                if channel is not None:
                    channel.close()
                    channel = None
                self._stop.wait(0.1)
            if self._stop.wait(0.02):
                break
        if channel is not None:
            channel.close()

    def _leader(self, partition: int) -> int:
        """The leader by the metadata of one broker; each call asks another broker first.

        A broker that is cut off may show an old leader without end.
        """
        brokers = list(self.cluster.brokers.values())
        random.shuffle(brokers)
        for broker in brokers:
            if not broker.alive:
                continue
            try:
                channel = Channel(broker.host.address, broker.port, timeout_ms=1000)
                with channel:
                    answer = channel.call(schemas.MetadataRequest([self.topic]))
            except (OSError, KafkaError):
                continue
            for each in answer.topics[0].partitions:
                if each.partition == partition and each.leader in self.cluster.brokers:
                    return int(each.leader)
        raise OSError("no broker knows a leader")

    def _send(self, channel: Channel, partition: int, values: list[bytes]) -> int:
        data = memoryview(encode_set([(None, value) for value in values], self.codec))
        request = schemas.ProduceRequest(
            -1,
            5000,
            [schemas.ProduceTopic(self.topic, [schemas.ProducePartition(partition, data)])],
        )
        answer = channel.call(request)
        return int(answer.topics[0].partitions[0].error)
