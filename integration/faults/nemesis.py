"""Carries a plan out on a running cluster, and takes every fault back in the end.

One task does everything, so faults begin in the order of the plan; those that last are undone
when their time is up, meanwhile others may begin. At most ``MOST_IMPAIRED`` brokers are down,
stopped, cut off or out of room at a time (but for the fault that kills all). Nobody deletes any
data.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from integration.cluster.cluster import BrokerNode, Cluster
from integration.cluster.disks import LoopDisk
from integration.faults.history import History
from integration.faults.plan import CONTROLLER, CUTS, LEADER, Fault

MOST_IMPAIRED = 2
STOP_TIMEOUT_S = 45
ZK_TIMEOUT_S = 5.0
ZOOKEEPER = 0
_TICK_S = 0.1


class _Lasting(NamedTuple):
    """A fault to be undone at ``until``; ``members`` are broker ids, or ZOOKEEPER."""

    fault: Fault
    until: float
    members: frozenset[int]
    undo: Callable[[], None]


class Nemesis:
    """``carry_out`` may be followed by ``heal``; ``impaired`` can be asked from any thread.

    ``disks`` by broker id: those that can be filled.
    """

    def __init__(
        self, cluster: Cluster, topic: str, history: History, disks: Mapping[int, LoopDisk]
    ) -> None:
        self.begun = 0
        self.unexpected: list[str] = []
        self._cluster = cluster
        self._topic = topic
        self._history = history
        self._disks = disks
        self._lasting: list[_Lasting] = []
        self._cut: dict[int, str] = {}
        self._down: set[int] = set()

    @property
    def impaired(self) -> set[int]:
        """Broker ids in trouble of our making, and ZOOKEEPER."""
        return {member for each in list(self._lasting) for member in each.members} | set(self._down)

    def carry_out(self, fault: Fault) -> None:
        """Begin one fault, after what must come before it is over."""
        if not fault.overlap:
            self._pass_time(lambda: not self._lasting)
            end = time.monotonic() + fault.calm_s
            self._pass_time(lambda: time.monotonic() > end)
        members = self._members(fault)
        self._pass_time(lambda: self._fits(members))
        self.begun += 1
        named = [member for member in sorted(members) if member != ZOOKEEPER]
        self._history.add("fault", what=str(fault), brokers=named, number=self.begun)
        undo = self._begin(fault, members)
        if undo is not None:
            until = time.monotonic() + fault.duration_s
            self._lasting.append(_Lasting(fault, until, members, undo))
        self._down.clear()

    def pass_until(self, end: float) -> None:
        """Wait until ``time.monotonic()`` is ``end``, and undo what is due meanwhile."""
        self._pass_time(lambda: time.monotonic() >= end)

    def heal(self) -> None:
        """Undo everything at once."""
        while self._lasting:
            self._undo(self._lasting[0])
        self._look_for_dead()

    def _fits(self, members: frozenset[int]) -> bool:
        taken = self.impaired
        if members & taken or (not members and ZOOKEEPER in taken):
            return False
        if len(members) > MOST_IMPAIRED:
            return not taken
        return len((members | taken) - {ZOOKEEPER}) <= MOST_IMPAIRED

    def _pass_time(self, over: Callable[[], bool]) -> None:
        """Undo what is due until ``over()``."""
        while True:
            now = time.monotonic()
            for each in [each for each in self._lasting if each.until <= now]:
                self._undo(each)
            self._look_for_dead()
            if over():
                return
            time.sleep(_TICK_S)

    def _undo(self, lasting: _Lasting) -> None:
        self._history.add("note", what=f"end of {lasting.fault}", brokers=sorted(lasting.members))
        lasting.undo()
        self._lasting.remove(lasting)

    def _look_for_dead(self) -> None:
        """A broker that ends without our doing is a finding; it is started again."""
        for broker_id, broker in self._cluster.brokers.items():
            if not broker.alive and broker_id not in self.impaired:
                text = f"broker {broker_id} exited with {broker.exit_code(1)}"
                self._history.add("note", what=text)
                self.unexpected.append(text)
                broker.spawn()

    # Targets

    def _members(self, fault: Fault) -> frozenset[int]:
        if fault.kind.startswith("zookeeper"):
            return frozenset({ZOOKEEPER})
        if fault.kind in ("kill-all", "rolling"):
            return frozenset(self._cluster.brokers)
        if not fault.target:
            return frozenset()
        if fault.target == CONTROLLER:
            node = self._read("/controller")
            return frozenset({node["brokerid"] if node else self._some_broker(fault)})
        if fault.target == LEADER:
            path = f"/brokers/topics/{self._topic}/partitions/{fault.partition}/state"
            node = self._read(path)
            leader = node["leader"] if node else -1
            return frozenset({leader if leader > 0 else self._some_broker(fault)})
        return frozenset({int(fault.target)})

    def _some_broker(self, fault: Fault) -> int:
        """For a role that nobody has at the moment."""
        return sorted(self._cluster.brokers)[fault.partition % len(self._cluster.brokers)]

    def _read(self, path: str) -> Any:
        """A node's JSON, or None; never waits long, for it is us who must mend ZooKeeper."""
        with _tolerated():
            data, _ = self._cluster.zk.get_async(path).get(timeout=ZK_TIMEOUT_S)
            return json.loads(data)
        return None

    def _create(self, path: str, value: object) -> None:
        data = json.dumps(value, separators=(",", ":")).encode()
        with _tolerated():
            self._cluster.zk.create_async(path, data, makepath=True).get(timeout=ZK_TIMEOUT_S)

    # Faults

    def _begin(self, fault: Fault, members: frozenset[int]) -> Callable[[], None] | None:
        """Do it; the way back, or None when there is nothing to undo."""
        cluster, kind = self._cluster, fault.kind
        brokers = [cluster.brokers[member] for member in sorted(members) if member != ZOOKEEPER]
        if kind in ("kill", "kill-all"):
            self._down |= members
            for broker in brokers:
                broker.kill()
            return lambda: _spawn(brokers)
        if kind.startswith("pause"):
            brokers[0].pause()
            return brokers[0].resume
        if kind == "restart":
            self._stop(brokers[0].id)
            return brokers[0].spawn
        if kind == "rolling":
            self._roll()
            return None
        if kind in CUTS:
            self._cut[brokers[0].id] = CUTS[kind]
            cluster.cut(brokers[0].id, CUTS[kind])
            return lambda: self._mend(brokers[0].id)
        if kind == "full-disk":
            disk = self._disks[brokers[0].id]
            disk.fill()
            return disk.make_room
        if kind.startswith("zookeeper"):
            return self._zookeeper(kind)
        self._ask(fault)
        return None

    def _ask(self, fault: Fault) -> None:
        """The administrator's requests."""
        entry: dict[str, object] = {"topic": self._topic, "partition": fault.partition}
        if fault.kind == "reassign":
            entry["replicas"] = list(fault.replicas)
            self._create("/admin/reassign_partitions", {"version": 1, "partitions": [entry]})
        elif fault.kind == "preferred":
            partitions = [{**entry, "partition": p} for p in range(fault.partition + 1)]
            self._create(
                "/admin/preferred_replica_election", {"version": 1, "partitions": partitions}
            )
        elif fault.kind == "depose":
            with _tolerated():
                self._cluster.zk.delete_async("/controller").get(timeout=ZK_TIMEOUT_S)
        else:
            raise ValueError(f"unknown fault {fault.kind}")

    def _stop(self, broker_id: int) -> None:
        """SIGTERM, and -9 for one that takes too long (it may be alone in an isr)."""
        self._down.add(broker_id)
        broker = self._cluster.brokers[broker_id]
        if not broker.alive:
            return
        os.kill(broker.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        # Faults that are due meanwhile are undone: the broker may wait for one of these.
        self._pass_time(lambda: not broker.alive or time.monotonic() > deadline)
        if broker.alive:
            text = f"broker {broker_id} did not stop within {STOP_TIMEOUT_S} s"
            self._history.add("note", what=text)
            self.unexpected.append(text)
        with contextlib.suppress(subprocess.TimeoutExpired):
            broker.kill()

    def _roll(self) -> None:
        """A controlled restart of every broker, one after the other."""
        for broker_id, broker in self._cluster.brokers.items():
            self._stop(broker_id)
            broker.spawn()
            with contextlib.suppress(AssertionError):
                broker.await_started()
            self._down.discard(broker_id)

    def _mend(self, broker_id: int) -> None:
        """Undo one cut; the hosts can only undo all, so the others are made again."""
        del self._cut[broker_id]
        self._cluster.hosts.heal()
        for other, what in self._cut.items():
            self._cluster.cut(other, what)

    def _zookeeper(self, kind: str) -> Callable[[], None]:
        node = self._cluster.zookeepers[self.begun % len(self._cluster.zookeepers)]
        if kind in ("zookeeper-pause", "zookeeper-freeze"):
            node.pause()
            return node.resume
        node.kill()
        return node.spawn


def _spawn(brokers: list[BrokerNode]) -> None:
    for broker in brokers:
        broker.spawn()


@contextlib.contextmanager
def _tolerated() -> Iterator[None]:
    """ZooKeeper may be away or slow, and a node there already: then there is no such fault."""
    try:
        yield
    except (KazooException, KazooTimeoutError, NoNodeError):
        pass
