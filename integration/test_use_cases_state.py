"""The use cases of docs/examples that keep state in topics: the state is compared with the input.

Reorders from a stream, orders rebuilt from events, a store that is killed and recovers.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration import test_use_cases as shared
from integration.harness import Broker, Process
from integration.spark.support import missing
from kafka08.producer.kafka_producer import KafkaProducer

broker = shared.broker
topics = shared.topics
CHANGES = 5000


def stock(changes: int, keys: int) -> dict[str, int]:
    """The state after so many changes of commit_log.py."""
    state: dict[str, int] = {}
    for number in range(1, changes + 1):
        key = f"article-{number * 7919 % keys:03d}"
        state.pop(key, None)
        if number % 10:
            state[key] = number
    return state


def stored(topics: Any, broker: Broker) -> dict[str, int]:
    """The state that the topic holds."""
    state: dict[str, int] = {}
    for message in topics.read(broker.address, "stock"):
        state.pop(message.key.decode(), None)
        if message.value is not None:
            state[message.key.decode()] = int(message.value)
    return state


def test_a_store_killed_in_the_middle_recovers_from_its_log(
    broker: Broker, topics: Any, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    command = [sys.executable, str(shared.EXAMPLES / "commit_log.py")]
    command += [f"--bootstrap-server={broker.address}", f"--changes={CHANGES}"]
    process = Process("commit-log", command, tmp_path)
    launch(process)
    process.spawn()
    process.wait_for("Change 500 is stored.")
    assert process.stop(signal.SIGKILL) == 128 + signal.SIGKILL
    assert "a new one" not in process.log  # it had not ended
    acknowledged = int(re.findall(r"Change (\d+) is stored", process.log)[-1])
    found = stored(topics, broker)
    # All that was acknowledged is there, and at most the changes after it that were stored as well.
    reached = max(found.values())
    assert acknowledged - 1 <= reached < CHANGES
    assert found in (stock(reached, 53), stock(reached + 1, 53))
    # How much was stored at the kill, and so how much is recovered, differs.
    changing = r"Recovered .*\n(?:Change \d+ is stored\.\n|\.\.\.\n)*"
    printed = shared.run_as_shown("commit_log.md", broker, tmp_path, changing)
    assert f"Recovered {len(found)} keys from " in printed
    expected = stock(CHANGES, 53)
    assert stored(topics, broker) == expected
    rows = re.findall(r"^(this one|a new one) +(\d+) +(\d+) +(\w+)$", printed, re.MULTILINE)
    assert [row[:3] for row in rows] == [
        (name, str(len(expected)), str(CHANGES - 1)) for name in ("this one", "a new one")
    ]
    assert rows[0][3] == rows[1][3]
    # A third start has nothing to do, and finds the same.
    again = shared.run("commit_log.py", broker, f"--changes={CHANGES - 1}", directory=tmp_path)
    assert f"Recovered {len(expected)} keys" in again
    assert "is stored" not in again
    assert f" {rows[0][3]}\n" in again


def orders_of(topics: Any, broker: Broker) -> tuple[dict[str, dict[str, Any]], int]:
    """The orders that the events amount to, and how many events there are."""
    after = {"paid": "paid", "shipped": "shipped", "cancelled": "cancelled"}
    before = {"paid": {"open"}, "shipped": {"paid"}, "cancelled": {"open", "paid"}}
    orders: dict[str, dict[str, Any]] = {}
    count = 0
    for message in topics.read(broker.address, "order-events"):
        count += 1
        event = json.loads(message.value)
        kind, name = event["event"], message.key.decode()
        if kind == "placed":
            assert name not in orders
            orders[name] = {"state": "open", "amount": 0, "refused": 0}
        elif kind == "added" and orders[name]["state"] == "open":
            orders[name]["amount"] += event["amount"]
        elif orders[name]["state"] in before.get(kind, ()):
            orders[name]["state"] = after[kind]
        else:
            orders[name]["refused"] += 1
    return orders, count


def test_orders_are_rebuilt_from_events_and_from_a_snapshot(
    broker: Broker, topics: Any, tmp_path: Path
) -> None:
    printed = shared.run_as_shown("event_sourcing.md", broker, tmp_path)
    orders, events = orders_of(topics, broker)
    assert (len(orders), events) == (200, 200 + 5 * 200)
    rows = re.findall(r"^(all|snapshot).*?  +(\d+) +(\d+)$", printed, re.MULTILINE)
    # 180 orders and 3 positions are in the snapshot, and 20 orders came later.
    assert rows == [("all", "1200", "200"), ("snapshot", str(180 + 3 + 6 * 20), "200")]
    states = Counter(order["state"] for order in orders.values())
    assert len(states) == 4
    shown = re.findall(r"^  (\w+) +(\d+) +#+$", printed, re.MULTILINE)
    assert shown == [(state, str(count)) for state, count in sorted(states.items())]
    paid = sum(o["amount"] for o in orders.values() if o["state"] in ("paid", "shipped"))
    refused = sum(order["refused"] for order in orders.values())
    assert paid and refused
    assert f"Paid: {paid}. Events that were not possible: {refused}.\n" in printed
    assert printed.endswith("Both states are equal.\n")
    snapshot = {
        m.key.decode(): json.loads(m.value) for m in topics.read(broker.address, "order-snapshots")
    }
    assert sum(key.startswith("order ") for key in snapshot) == 180
    assert sum(snapshot[f"position {number}"] for number in range(3)) == 6 * 180


def test_a_snapshot_that_differs_from_the_events_is_noticed(
    broker: Broker, topics: Any, tmp_path: Path
) -> None:
    shared.run("event_sourcing.py", broker, "--orders=20", directory=tmp_path)
    [message] = [
        each
        for each in topics.read(broker.address, "order-snapshots")
        if each.key == b"order order-1-0000"
    ]
    wrong = {**json.loads(message.value), "amount": 12345}
    with KafkaProducer(bootstrap_servers=broker.address, acks="all") as producer:
        producer.send("order-snapshots", json.dumps(wrong).encode(), message.key).result(30)
    with pytest.raises(AssertionError, match="The states differ"):
        shared.run("event_sourcing.py", broker, "--orders=20", directory=tmp_path)


@pytest.mark.slow
def test_reorders_of_the_sample(
    broker: Broker, topics: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing():
        pytest.skip(missing())
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    printed = shared.run_as_shown("reorders.md", broker, tmp_path)
    totals: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for topic in ("sales", "shipments"):
        for message in topics.read(broker.address, topic):
            event = json.loads(message.value)
            totals[event["time"][:13] + ":00", event["sku"]][topic] += event["quantity"]
    expected = []
    for (hour, sku), both in sorted(totals.items()):
        sold, shipped = both["sales"], both["shipments"]
        percent = 10 if sold > 2 * shipped else -10 if 2 * sold < shipped else None
        reorder = sold - shipped if sold > shipped else None
        if hour < "2014-07-01T13:00" and (percent or reorder):
            expected.append([hour, sku, str(reorder or "NULL"), str(percent or "NULL")])
    lines = [line.strip("|").split("|") for line in printed.splitlines() if line.startswith("|")]
    header, *rows = [[cell.strip() for cell in line] for line in lines]
    assert header == ["hour", "sku", "reorder", "price change %"]
    assert rows == expected
    assert len(expected) > 10
