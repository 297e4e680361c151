"""The model of ZooKeeper with clients on one task."""

from __future__ import annotations

from random import Random
from typing import cast

from kafka08.runtime import Runtime
from tests.fakes.runtime import FakeRuntime
from tests.simulation.stepped import SteppedSchedule
from tests.simulation.zookeeper import Ensemble
from tests.simulation.zookeeper_library import library
from tests.simulation.zookeeper_links import Timing
from tests.simulation.zookeeper_server import Server
from tests.zk import server as real
from zk.client import ZkClient

AT_ONCE = Timing(*[(0.0, 0.0)] * 7)
BEHIND = Timing(lag=(0.0, 0.3))


class ModelGround:
    """Clients of an ensemble; each call of ``client`` and ``other`` is another host."""

    def __init__(self, servers: int, timing: Timing, seed: int) -> None:
        fake = FakeRuntime()
        self.schedule = SteppedSchedule(fake)
        self.runtime = cast(Runtime, fake)
        self.notes: list[str] = []
        self.ensemble = Ensemble(
            self.schedule, Random(seed), servers=servers, timing=timing, note=self._note
        )
        self._hosts: dict[ZkClient, str] = {}

    def _note(self, line: str) -> None:
        self.notes.append(f"{self.schedule.now():.6f} {line}")

    def client(self) -> ZkClient:
        host = f"host-{len(self._hosts)}"
        made = library(self.ensemble, self.runtime, host)
        client = ZkClient("zk:2181/chroot", session_timeout_ms=4000, library=made)
        self._hosts[client] = host
        return client.start()

    def other(self) -> ZkClient:
        return self.client()

    def expire(self, client: ZkClient) -> None:
        self.ensemble.expire(client.session_id)

    def break_connection(self, client: ZkClient) -> None:
        self.ensemble.reset(self.host_of(client))

    def lose_answer(self, client: ZkClient, call: str) -> None:
        real.lose_next_answer(client, call)

    def host_of(self, client: ZkClient) -> str:
        return self._hosts[client]

    def server_of(self, client: ZkClient) -> Server:
        """The one that the client is connected to."""
        (found,) = [
            server
            for server in self.ensemble.servers
            for connection in server.connections
            if connection.client.host == self.host_of(client)
        ]
        return found

    def move(self, client: ZkClient, number: int) -> None:
        """Have the client connected to that server."""
        host = self.host_of(client)
        for server in self.ensemble.servers:
            if server.number != number:
                self.ensemble.cut(host, server.number)
        self.schedule.run_until(
            lambda: client.connected and self.server_of(client).number == number,
            60.0,
        )
        for server in self.ensemble.servers:
            server.lingering.clear()  # an attempt that arrived late would take the session away
        self.ensemble.heal(host)
