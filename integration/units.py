"""A unit of two brokers that one start script runs, from one server.properties."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from integration.harness import PORTS, Broker, free_port

CLASS = "kafka.server.UnitMember"


def free_ports(count: int) -> int:
    """The first of ports that follow each other and are free."""
    found: set[int] = set()
    for _ in PORTS:
        found.add(free_port())
        for first in found:
            if found.issuperset(range(first, first + count)):
                return first
    raise RuntimeError(f"no {count} ports beside each other are free in {PORTS}")


class Unit(Broker):
    """``pages``: the port of the unit's pages. The second broker has the next id and port."""

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        *,
        broker_id: int = 0,
        props: Mapping[str, object] | None = None,
    ) -> None:
        self.pages = free_ports(3)
        given = {"http.port": self.pages, "broker.processes": 2, **(props or {})}
        super().__init__(
            "ours", directory, zookeeper, broker_id=broker_id, port=free_ports(2), props=given
        )
        self.started = f"The unit of brokers {broker_id}, {broker_id + 1} has started"

    def begin(self) -> Unit:
        self.spawn()
        self.wait_for(self.started)
        return self

    def children(self) -> dict[int, int]:
        """The processes of the brokers, by broker id."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (path / "cmdline").read_bytes().decode().split("\0")
                if words[-4:-2] == [CLASS, str(self.config)]:
                    found[int(words[-2])] = int(path.name)
        return found

    def second(self) -> Broker:
        """The second broker, for its topics and its wire; it is not to be started."""
        return Broker(
            "ours",
            self.directory / "second",
            self.zookeeper,
            broker_id=self.broker_id + 1,
            port=self.port + 1,
        )
