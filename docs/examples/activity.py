"""Website activity: each kind of activity to its topic, page views counted by Spark, and drawn.

    .venv/bin/python docs/examples/activity.py

activity.md describes it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import activity_counts
import charts
import topics

from kafka08.producer.kafka_producer import KafkaProducer

TYPES = {"view": "page-views", "search": "searches", "order": "orders-placed"}
COUNTS = "page-counts"
PAGES = {"/": 8, "/products/1": 5, "/products/2": 3, "/cart": 2, "/help": 1}
MINUTES = 5


def visits(seed: int, start: datetime, count: int) -> Iterator[tuple[str, dict[str, str]]]:
    """The activities of ``count`` visits of an hour: kind and event. A visit begins at "/"."""
    rng = random.Random(seed)
    for number in range(count):
        at = start + timedelta(minutes=min(max(rng.gauss(30, 12), 0), 50))
        user = f"u{number % (count // 3 + 1)}"
        for page in ["/", *rng.choices(list(PAGES), list(PAGES.values()), k=rng.randrange(5))]:
            event = {"user": user, "time": at.isoformat(timespec="seconds")}
            yield "view", {**event, "page": page}
            if page == "/" and rng.random() < 0.3:
                yield "search", {**event, "words": rng.choice(["lamp", "chair"])}
            if page == "/cart" and rng.random() < 0.5:
                yield "order", {**event, "total": str(rng.randrange(10, 200))}
            at += timedelta(seconds=rng.randrange(5, 120))


def publish(address: str, seed: int, start: datetime, count: int) -> Counter[str]:
    """Sends the activities by user. Returns how many of each kind are stored."""
    stored: Counter[str] = Counter()
    with KafkaProducer(bootstrap_servers=address, acks=1, retries=3, linger_ms=50) as producer:
        sent = []
        for kind, event in visits(seed, start, count):
            key, value = event["user"].encode(), json.dumps(event).encode()
            sent.append((kind, producer.send(TYPES[kind], value, key=key)))
        for kind, future in sent:
            future.result(topics.TIMEOUT_MS / 1000)
            stored[kind] += 1
    return stored


def count_with_spark(address: str, checkpoint: str) -> None:
    """Runs the job activity_counts.py until it has counted what is there."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = activity_counts.session()
    window = f"--window={MINUTES} minutes"
    options = [f"--bootstrap-server={address}", f"--checkpoint={checkpoint}", window, "--once"]
    try:
        activity_counts.run(session, options)
    finally:
        session.stop()


def last_counts(address: str) -> list[dict[str, Any]]:
    """The last count of each window and page, which a compacted topic keeps."""
    last = {message.key: message.value for message in topics.read(address, COUNTS)}
    return [json.loads(value) for value in last.values() if value is not None]


def show(counts: list[dict[str, Any]]) -> None:
    pages: Counter[str] = Counter()
    windows: Counter[str] = Counter()
    for each in counts:
        pages[each["page"]] += each["views"]
        windows[each["from"][11:16]] += each["views"]
    print(charts.bars("Page views, by page", pages.most_common()))
    print(f"\n{charts.columns(f'Page views in {MINUTES} minutes (UTC)', sorted(windows.items()))}")
    print(f"Page views that Spark counted: {sum(pages.values())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", default=topics.ADDRESS)
    parser.add_argument("--visits", type=int, default=500)
    parser.add_argument("--start", default="2014-07-01T10:00:00", help="of the hour, in UTC")
    parser.add_argument("--checkpoint", help="where Spark continues; default: count all again")
    args = parser.parse_args()
    address = args.bootstrap_server
    for topic in TYPES.values():
        topics.make(address, topic, 4, {"retention.ms": str(7 * 24 * 3600 * 1000)})
    topics.make(address, COUNTS, 4, {"cleanup.policy": "compact"})
    start = datetime.fromisoformat(args.start).replace(tzinfo=timezone.utc)
    stored = publish(address, 8, start, args.visits)
    rows = [[kind, TYPES[kind], stored[kind]] for kind in TYPES]
    print(charts.table(["activity", "topic", "stored"], rows), flush=True)
    print()
    with tempfile.TemporaryDirectory() as directory:
        count_with_spark(address, args.checkpoint or directory)
    show(last_counts(address))


if __name__ == "__main__":
    main()
