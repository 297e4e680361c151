"""One console over several clusters, one of which is away when it starts."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

from integration.console import Console
from integration.harness import Broker, ZooKeeper
from integration.scrape import scrape
from integration.wire import entry, wait_until

AT_ONCE_S = 1.5
"""For a page that asks no cluster, on a busy machine; a call to the one that is away takes 4 s."""


def clusters_on(console: Console) -> dict[str, dict[str, Any]]:
    found = json.loads(console.ask("/", Accept="application/json")[1])["clusters"]
    return {each["name"]: each for each in found}


def brokers_up(console: Console, name: str) -> int | None:
    found: int | None = clusters_on(console)[name]["brokers_up"]
    return found


def test_a_cluster_that_is_away_keeps_no_other_waiting(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    away = ZooKeeper(tmp_path / "away")
    broker = Broker("ours", tmp_path / "prod", f"{zookeeper.connect}/console-clusters").start()
    broker.create_topic("orders")
    with broker.wire() as wire:
        wire.produce("orders", 0, entry(None, b"value"))
    console = Console(
        "",
        tmp_path / "console",
        **{
            "console.clusters": "prod,test",
            "cluster.prod.zookeeper.connect": broker.zookeeper,
            "cluster.test.zookeeper.connect": away.connect,
            "cluster.test.console.read.only": "true",
            "console.read.only": "false",
            "console.audit.file": tmp_path / "audit.log",
        },
    ).begin()
    wait_until("the first cluster", 30, lambda: brokers_up(console, "prod") == 1)
    wait_until(
        "the error of the other",
        30,
        lambda: "ZooKeeper" in str(clusters_on(console)["test"]["causes"]),
    )
    for path in ("/", "/metrics", "/health/ready", "/c/prod/", "/c/prod/topics", "/c/test/"):
        begin = time.monotonic()
        status, _ = console.ask(path)
        assert status == (503 if path == "/c/test/" else 200), path
        assert time.monotonic() - begin < AT_ONCE_S, path
    messages = console.ask("/c/prod/topics/orders/messages")[1]
    assert 'id="offset-0"' in messages
    assert console.ask("/c/prod/topics/orders/raw?offset=0&part=value")[1] == "value"
    status, page = console.submit(
        "/c/prod/topics/orders/send", "/c/prod/topics/orders/send", partition=0, value="sent"
    )
    assert status == 200
    assert "The message is at offset 1" in page
    assert json.loads((tmp_path / "audit.log").read_text())["cluster"] == "prod"
    sight = {
        dict(labels)["cluster"]: value
        for (name, labels), value in scrape(console.port).items()
        if name == "kafka_console_cluster_in_sight"
    }
    assert sight == {"prod": 1, "test": 0}

    away.start()
    second = Broker("ours", tmp_path / "test", away.connect).start()
    wait_until("the second cluster", 60, lambda: brokers_up(console, "test") == 1)
    assert console.ask("/c/test/create")[0] == 403
    assert console.ask("/c/test/health/ready")[0] == 200
    away.pause()
    wait_until("its absence", 60, lambda: clusters_on(console)["test"]["errors"])
    assert brokers_up(console, "test") == 1
    assert not clusters_on(console)["prod"]["errors"]
    begin = time.monotonic()
    assert console.stop() == 128 + signal.SIGTERM
    assert time.monotonic() - begin < 15
    away.resume()
    for process in (second, broker, away):
        process.kill()
    assert " ERROR " not in console.log
