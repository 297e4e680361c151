"""A day of a site, as the produce requests of four services.

Each service has a topic, record sizes, a codec and a traffic that is least at 4 o'clock and ten
times as much at 16 o'clock. Its producers send what has gathered within their linger time, so
sets are of few records at night and full by day. The requests are drawn from a fixed seed, in
order of time. Knows nothing of sockets.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from integration.bench.load import Request, Ring, reply_bytes, request
from integration.bench.records import Batch, Sizes, encode, stream

SEED = 1
HOURS = 24
REQUESTS_AN_HOUR = 50
QUIETEST_HOUR = 4
LEAST = 0.1


class Service(NamedTuple):
    """``rate``: records a second from one producer for one partition in the busiest hour;
    ``producers``: how many of them there are."""

    topic: str
    sizes: Sizes
    keyed: bool
    codec: str
    rate: int
    producers: int
    linger_s: float
    set_bytes: int


SERVICES = (
    Service("clicks", Sizes("clicks", 150, 0.5), True, "snappy", 2000, 4, 0.05, 16384),
    Service("applog", Sizes("log lines", 200, 0.9), False, "gzip", 1500, 4, 0.2, 65536),
    Service("orders", Sizes("orders", 900, 0.7), True, "lz4", 100, 2, 0.05, 16384),
    Service("meters", Sizes("readings", 40, 0.2), True, "none", 400, 6, 0.02, 16384),
)


class Sent(NamedTuple):
    """One request of the day."""

    hour: int
    service: Service
    batch: Batch


def traffic(hour: float) -> float:
    """Share of the busiest hour's."""
    wave = math.cos((hour - QUIETEST_HOUR) / HOURS * 2 * math.pi)
    return LEAST + (1 - LEAST) * (1 - wave) / 2


def gathered(service: Service, hour: int) -> float:
    """Records of one producer within one linger time, one at least."""
    return max(1.0, service.rate * traffic(hour) * service.linger_s)


@functools.cache
def day() -> tuple[Sent, ...]:
    noise = random.Random(SEED)
    sources = {each: stream(each.sizes, each.keyed, noise) for each in SERVICES}
    found = []
    for hour in range(HOURS):
        asks = [s.producers * s.rate * traffic(hour) / gathered(s, hour) for s in SERVICES]
        for service in noise.choices(SERVICES, asks, k=REQUESTS_AN_HOUR):
            count, size, records = 1 + round(noise.expovariate(1 / gathered(service, hour))), 0, []
            for record in sources[service]:
                records.append(record)
                size += len(record[0] or b"") + len(record[1])
                if len(records) >= count or size >= service.set_bytes:
                    break
            found.append(Sent(hour, service, encode(records, service.codec)))
    return tuple(found)


def topics(name: str) -> list[str]:
    """A topic for each service. Their names have one length, so that all answers have one."""
    return [f"{name}-{each.topic}" for each in SERVICES]


def answer_bytes(name: str) -> int:
    return reply_bytes(topics(name)[0])


def rings(name: str, partitions: int, connections: int, sent: Sequence[Sent]) -> list[Ring]:
    """The day dealt out to so many connections, each with a client id of its service."""
    noise = random.Random(SEED)
    hands: list[list[Request]] = [[] for _ in range(connections)]
    for number, each in enumerate(sent):
        hand = number % connections
        partition = noise.randrange(partitions)
        client_id = f"{each.service.topic}-producer-{hand}"
        sets = [(partition, each.batch)]
        hands[hand].append(request(f"{name}-{each.service.topic}", sets, 1, client_id))
    return [Ring(hand) for hand in hands]
