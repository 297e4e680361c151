"""The health of real brokers while they start, recover, stop, and lose ZooKeeper or a disk."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from integration.harness import Broker, Process, ZooKeeper, free_port
from integration.test_disks import Disk
from integration.test_disks import disk as disk
from integration.test_metrics import Watched, get
from integration.wire import entry, wait_until

pytest.importorskip("prometheus_client")
LOGS = 100


class Seen(NamedTuple):
    """Answers of both pages at one moment."""

    state: int
    live: int
    ready: int
    reasons: tuple[str, ...]


class Watcher(threading.Thread):
    """Asks for a broker's health again and again, and keeps what it had not seen before."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.seen: list[Seen] = []
        self._port = port
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                live = get(self._port, "/health/live")[0]
                ready, body = get(self._port, "/health/ready")
                said = json.loads(body)
                now = Seen(said["broker_state"], live, ready, tuple(said.get("reasons", ())))
                if now not in self.seen:
                    self.seen.append(now)
            time.sleep(0.002)

    def stop(self) -> list[Seen]:
        self._over.set()
        self.join()
        return self.seen


def watched(
    directory: Path, zookeeper: str, launch: Callable[[Process], None], **props: object
) -> Watched:
    """A broker that does not run yet."""
    port = free_port()
    given = {"http.port": port, "zookeeper.session.timeout.ms": 4000, **props}
    broker = Broker(
        "ours", directory, zookeeper, broker_id=int(str(props.get("broker.id", 0))), props=given
    )  # fmt: skip
    launch(broker)
    return Watched(broker, port)


@pytest.mark.scenario("ops-20")
def test_a_broker_that_recovers_is_alive_and_not_ready(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    one = watched(tmp_path / "broker", f"{zookeeper.connect}/recovers", launch)
    broker = one.broker.start()
    broker.create_topic("dirty", LOGS)
    with broker.wire() as wire:
        for partition in range(LOGS):
            wire.produce("dirty", partition, entry(None, b"x" * 1000) * 100)
    broker.kill()
    watcher = Watcher(one.port)
    watcher.start()
    broker.start()
    wait_until("readiness", 60, lambda: one.ready()[0] == 200)
    seen = watcher.stop()
    assert {each.live for each in seen} == {200}
    states = [each.state for each in seen]
    assert 2 in states
    assert states == sorted(states)
    for each in seen:
        assert each.ready == (200 if each.state in (3, 4) else 503), each
    assert ("the broker is recovering its logs",) in {each.reasons for each in seen}


@pytest.mark.scenario("ops-20")
def test_a_broker_that_hands_its_leaderships_over_is_not_ready(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """The controller is silent for a while, so that this takes long."""
    chroot = f"{zookeeper.connect}/hands-over"
    props = {"zookeeper.session.timeout.ms": 30_000}
    first, second = (
        watched(tmp_path / str(number), chroot, launch, **props, **{"broker.id": number})
        for number in (1, 2)
    )
    first.broker.start()
    wait_until("a controller", 30, lambda: first.ready()[1]["broker_state"] == 4)
    second.broker.start()
    wait_until("readiness", 30, lambda: second.ready()[0] == 200)
    watcher = Watcher(second.port)
    watcher.start()
    wait_until("an answer", 30, lambda: watcher.seen)
    first.broker.pause()
    try:
        stopping = threading.Thread(target=second.broker.stop)
        stopping.start()
        wait_until("state 6", 30, lambda: 6 in [each.state for each in watcher.seen])
    finally:
        first.broker.resume()
    stopping.join()
    by_state = {each.state: each for each in watcher.stop()}
    assert by_state[3].ready == 200
    assert by_state[6] == Seen(6, 200, 503, ("the broker is handing its leaderships over",))


@pytest.mark.scenario("ops-20")
def test_a_broker_with_a_failed_disk_is_alive_and_not_ready(
    zookeeper: ZooKeeper, tmp_path: Path, disk: Disk, launch: Callable[[Process], None]
) -> None:
    one = watched(
        tmp_path / "broker", f"{zookeeper.connect}/disk-health", launch,
        **{"log.dirs": f"{tmp_path / 'whole'},{disk.path}"},
    )  # fmt: skip
    broker = one.broker.start()
    broker.create_topic("spread", 4)
    assert one.ready()[0] == 200
    disk.fail()

    def produce() -> bool:
        """The broker notices by a write."""
        with contextlib.suppress(Exception), broker.wire() as wire:
            for partition in range(4):
                with contextlib.suppress(Exception):
                    wire.produce("spread", partition, entry(None, b"m"))
        return one.ready()[0] == 503

    wait_until("the failure", 60, produce)
    assert one.ready()[1]["reasons"] == [f"data directories have failed: {disk.path}"]
    assert get(one.port, "/health/live")[0] == 200


@pytest.mark.scenario("ops-20")
def test_a_broker_without_zookeeper_is_alive_and_not_ready(tmp_path: Path) -> None:
    zookeeper = ZooKeeper(tmp_path / "zookeeper").start()
    port = free_port()
    props = {"http.port": port, "controlled.shutdown.enable": "false"}
    broker = Broker("ours", tmp_path / "broker", zookeeper.connect, props=props).start()
    watched = Watched(broker, port)
    try:
        wait_until("a controller", 30, lambda: watched.ready()[1].get("broker_state") == 4)
        zookeeper.kill()
        wait_until("the end of the session", 30, lambda: watched.ready()[0] == 503)
        assert watched.ready()[1]["reasons"] == ["ZooKeeper is out of reach"]
        assert get(port, "/health/live")[0] == 200
    finally:
        broker.kill()
        zookeeper.kill()
