"""Log aggregation: syslog and Python's logging to one topic, then a search by words and time.

    .venv/bin/python docs/examples/log_aggregation.py

log-aggregation.md describes it.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import random
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

import charts
import topics
from log_lines import JsonFormatter, Line, decoded, encoded, matching, of_syslog

from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.logging_handler import KafkaLoggingHandler

TOPIC = "logs"
SHOWN = 15
BUCKET_S = 300
Received = tuple[bytes, str]  # a datagram and its sender


def collect(datagrams: Iterable[Received], address: str) -> None:
    """Syslog to the topic. Lines of one host stay in order, as its name is the key."""
    with KafkaProducer(
        bootstrap_servers=address, acks="all", retries=10, linger_ms=100, compression_type="gzip"
    ) as producer:
        for datagram, sender in datagrams:
            line = of_syslog(datagram, sender, datetime.now().astimezone())
            producer.send(TOPIC, encoded(line).encode(), key=line.host.encode())


def received(host: str, port: int, seconds: float, own: Iterable[bytes]) -> Iterator[Received]:
    """The datagrams of ``own``, sent to the port one by one; then those of the next ``seconds``."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((host, port))
        for datagram in own:
            server.sendto(datagram, server.getsockname())
            data, sender = server.recvfrom(65535)
            yield data, sender[0]
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            server.settimeout(left)
            with contextlib.suppress(TimeoutError):
                data, sender = server.recvfrom(65535)
                yield data, sender[0]


def simulated_syslog(rng: random.Random, start: float) -> Iterator[bytes]:
    """An hour of two machines: one writes as in RFC 3164, one as in RFC 5424."""
    for second in range(0, 3600, 60):
        at = datetime.fromtimestamp(start + second).astimezone()
        user, port = rng.choice(["root", "admin", "ann"]), rng.randrange(40000, 60000)
        old = f"{at:%b} {at.day:2d} {at:%H:%M:%S}"
        yield f"<86>{old} gate sshd[{port}]: Failed password for {user} port {port} ssh2".encode()
        word = rng.choices(["took 12 ms", "timeout after 3000 ms"], [4, 1])[0]
        level = 3 if "timeout" in word else 6
        data = f'[request@32473 path="/pay" id="{port}"]'
        yield f"<{128 + level}>1 {at.isoformat()} web1 nginx 71 - {data} POST /pay {word}".encode()


def simulated_program(rng: random.Random, start: float, address: str) -> int:
    """An hour of a program that uses Python's logging. Returns how many records were lost."""
    handler = KafkaLoggingHandler(TOPIC, address, required_num_acks=1, max_block_ms=60000)
    handler.setFormatter(JsonFormatter("shop1"))
    for second in range(0, 3600, 30):
        text, level = rng.choices(
            [("order stored", logging.INFO), ("payment timeout, trying again", logging.WARNING)],
            [9, 1],
        )[0]
        record = {"name": "shop.orders", "msg": text, "levelno": level, "created": start + second}
        handler.handle(logging.makeLogRecord({**record, "levelname": logging.getLevelName(level)}))
    handler.close()
    return handler.dropped


def search(address: str, words: str, since: float, until: float) -> None:
    lines = [decoded(message.value) for message in topics.read(address, TOPIC)]
    found: list[Line] = sorted(matching(lines, words, since, until))
    print(f'"{words}": {len(found)} of {len(lines)} lines; the last {len(found[-SHOWN:])}:')
    rows = [[_clock(line.time, "%m-%d %H:%M:%S"), *line[1:]] for line in found[-SHOWN:]]
    print(charts.table(["time", "host", "program", "level", "text"], rows))
    counts = Counter(int(line.time) // BUCKET_S * BUCKET_S for line in found)
    if counts:
        times = range(min(counts), max(counts) + 1, BUCKET_S)[-36:]
        series = [(_clock(at, "%H:%M"), counts[at]) for at in times]
        print(f"\n{charts.columns(f'Lines in {BUCKET_S // 60} minutes', series)}\n")
    print(charts.bars("By level", sorted(Counter(line.level for line in found).items())))


def _clock(seconds: float, form: str) -> str:
    return time.strftime(form, time.localtime(seconds))


def moment(text: str) -> float:
    """2014-07-01T10:00, in the zone of this machine if it names none. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", default=topics.ADDRESS)
    parser.add_argument("--listen", default="127.0.0.1:0", help="the address for syslog")
    parser.add_argument("--seconds", type=float, default=0, help="listen; do not simulate")
    parser.add_argument("--search", help="words; do not simulate")
    parser.add_argument("--since", type=moment, default=0, help="2014-07-01T10:00")
    parser.add_argument("--until", type=moment, default=float("inf"), help="2014-07-01T11:00")
    args = parser.parse_args()
    address = args.bootstrap_server
    topics.make(address, TOPIC, 4, {"retention.ms": str(14 * 24 * 3600 * 1000)})
    simulate = args.search is None and not args.seconds
    rng, start = random.Random(8), time.time() - 3600
    host, _, port = args.listen.rpartition(":")
    if simulate or args.seconds:
        own = simulated_syslog(rng, start) if simulate else []
        collect(received(host, int(port), args.seconds, own), address)
    lost = simulated_program(rng, start, address) if simulate else 0
    search(address, "timeout" if args.search is None else args.search, args.since, args.until)
    if lost:
        raise SystemExit(f"{lost} records of the program were lost")


if __name__ == "__main__":
    main()
