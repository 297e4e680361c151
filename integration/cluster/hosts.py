"""Where the processes of a cluster run, and how a host is cut off from others.

Three places behind one interface: `Namespaces`, network namespaces of our own, each with an
address on a bridge that is itself in a namespace, so that nothing outside ever sees a packet;
`Loopback`, plain processes on 127.0.0.1, where nothing can be cut; and `containers.Containers`.
Knows nothing of brokers or pytest.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from integration.harness import free_port

_CLONE_NEWNET = 0x40000000
_NETWORK = "10.88"
_SERIAL = itertools.count(1)  # of the networks of this process
_NOBODY = ("lladdr", "02:00:00:00:00:00", "dev", "eth0", "nud", "permanent")


class Host(NamedTuple):
    """A place for one process. `prefix` opens the command lines that run there.

    Where that is not enough, `popen(command, directory, log file)` starts the process.
    """

    name: str
    address: str
    prefix: tuple[str, ...] = ()
    popen: Callable[[list[str], Path, Path], Any] | None = None


class Hosts(Protocol):
    """`no_cuts` says why `cut` is impossible; it is empty where it works."""

    kind: str
    no_cuts: str

    def add(self) -> Host: ...

    def port(self, wanted: int) -> int:
        """`wanted` where a host has an address of its own, else any free port."""
        ...

    def remove(self, host: Host) -> None: ...

    def cut(self, host: Host, others: Iterable[Host]) -> None:
        """No packet passes between `host` and `others` from now on."""
        ...

    def heal(self) -> None:
        """Undo every cut."""
        ...

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """The calling thread, and threads and processes it starts, can reach the hosts."""
        ...

    def close(self) -> None: ...


class Loopback:
    kind = "loopback"
    no_cuts = "processes on loopback cannot be cut off from each other"

    def __init__(self) -> None:
        self._number = 0

    def add(self) -> Host:
        self._number += 1
        return Host(f"h{self._number}", "127.0.0.1")

    def port(self, wanted: int) -> int:
        return free_port()

    def remove(self, host: Host) -> None:
        pass

    def cut(self, host: Host, others: Iterable[Host]) -> None:
        raise RuntimeError(self.no_cuts)

    def heal(self) -> None:
        pass

    def inside(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def close(self) -> None:
        pass


class Namespaces:
    """One network namespace per host, veth pairs, and a bridge in a namespace between them.

    Both sides of a cut are given a link address of the other that nobody has. Packets get lost, as
    on a broken link: connections stay open and silent. Needs root and iproute2.
    """

    kind = "namespaces"
    no_cuts = ""

    def __init__(self) -> None:
        self._prefix = f"k8-{os.getpid()}-{next(_SERIAL)}"
        self.outer = f"{self._prefix}-net"
        self._number = 0
        self._cut: set[tuple[str, str]] = set()  # (namespace, address it cannot reach)
        self._hosts: set[str] = set()
        _run("ip", "netns", "add", self.outer)
        atexit.register(self.close)
        self._ip(self.outer, "link", "set", "lo", "up")
        self._ip(self.outer, "link", "add", "bridge", "type", "bridge")
        self._ip(self.outer, "link", "set", "bridge", "up")
        self._ip(self.outer, "addr", "add", f"{_NETWORK}.255.254/16", "dev", "bridge")

    @staticmethod
    def missing() -> str:
        """Why there can be none here; empty when there can."""
        if os.geteuid() != 0:
            return "network namespaces need root"
        if shutil.which("ip") is None:
            return "network namespaces need ip (package iproute2)"
        probe = f"k8-{os.getpid()}-probe"
        try:
            _run("ip", "netns", "add", probe)
        except RuntimeError as error:
            return str(error)
        finally:
            subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
        return ""

    @staticmethod
    def _ip(namespace: str, *args: str) -> None:
        _run("ip", "-n", namespace, *args)

    def add(self) -> Host:
        self._number += 1
        name = f"{self._prefix}-{self._number}"
        address = f"{_NETWORK}.{self._number // 250}.{self._number % 250 + 1}"
        link = f"host{self._number}"
        _run("ip", "netns", "add", name)
        self._hosts.add(name)
        self._ip(
            self.outer, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name
        )
        self._ip(self.outer, "link", "set", link, "master", "bridge", "up")
        self._ip(name, "link", "set", "lo", "up")
        self._ip(name, "addr", "add", f"{address}/16", "dev", "eth0")
        self._ip(name, "link", "set", "eth0", "up")
        return Host(name, address, ("ip", "netns", "exec", name))

    def port(self, wanted: int) -> int:
        return wanted

    def remove(self, host: Host) -> None:
        self._cut = {each for each in self._cut if each[0] != host.name}
        self._hosts.discard(host.name)
        subprocess.run(["ip", "netns", "del", host.name], capture_output=True, check=False)

    def cut(self, host: Host, others: Iterable[Host]) -> None:
        for other in others:
            for one, lost in ((host, other), (other, host)):
                self._ip(one.name, "neigh", "replace", lost.address, *_NOBODY)
                self._cut.add((one.name, lost.address))

    def heal(self) -> None:
        for name, address in self._cut:
            self._ip(name, "neigh", "del", address, "dev", "eth0")
        self._cut.clear()

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        with Path("/proc/thread-self/ns/net").open() as before:
            with Path("/var/run/netns", self.outer).open() as outer:
                _enter(outer.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def close(self) -> None:
        for name in [*self._hosts, self.outer]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self._hosts.clear()


def _enter(descriptor: int) -> None:
    """setns(2), which Python itself offers from 3.12 on. Concerns the calling thread alone."""
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
