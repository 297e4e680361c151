"""Containers as hosts: one per process, with a file system and an address of its own.

The image is empty but for mount points: this machine's /usr, the interpreter, the checkout and
the original's jars are mounted read-only, and a process' own directory is all it can write.
With no engine answering, one of our own is started in a network namespace, so that its bridge
is in there too. Signals go to the container's first process by its id on this machine.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import docker
import docker.errors
import docker.types

from integration import original
from integration.cluster.hosts import Host, Namespaces
from integration.harness import HOME, environment

IMAGE = "kafka08-test"
_SUBNET = "10.89.0.0/16"
_LINKS = ("bin", "sbin", "lib", "lib64")
_START_TIMEOUT_S = 60


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
        probe.connect(path)
        return True
    return False


class Contained:
    """A started container with the face of a `subprocess.Popen`."""

    def __init__(self, container: Any) -> None:
        self._container = container
        container.start()
        container.reload()
        self.pid: int = container.attrs["State"]["Pid"]
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self._container.reload()
            state = self._container.attrs["State"]
            if state["Status"] == "exited":
                self._ended(state["ExitCode"])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (timeout or 1e9)
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self._container.name, timeout or 0)
            time.sleep(0.05)
        assert self.returncode is not None
        return self.returncode

    def _ended(self, code: int) -> None:
        self.returncode = code
        with contextlib.suppress(docker.errors.APIError):
            self._container.remove(force=True)

    def run(self, *command: str) -> None:
        done = self._container.exec_run(list(command))
        if done.exit_code:
            raise RuntimeError(f"{' '.join(command)}: {done.output.decode()}")


class Containers:
    kind = "containers"
    no_cuts = ""

    def __init__(self) -> None:
        self._outer: Namespaces | None = None
        self._daemon: subprocess.Popen[bytes] | None = None
        self._directory = Path(tempfile.mkdtemp(prefix="kafka08-engine-"))
        self._number = 0
        self._current: dict[str, Contained] = {}
        self._cut: set[str] = set()
        atexit.register(self.close)
        self._client = self._running_engine() or self._own_engine()
        self._make_image()
        pool = docker.types.IPAMPool(subnet=_SUBNET)
        self._name = f"kafka08-{os.getpid()}"
        self._network = self._client.networks.create(
            self._name, driver="bridge", ipam=docker.types.IPAMConfig(pool_configs=[pool])
        )

    @staticmethod
    def _running_engine() -> Any:
        if "DOCKER_HOST" in os.environ or _listens("/var/run/docker.sock"):
            return docker.from_env()
        return None

    def _own_engine(self) -> Any:
        """Started with the namespaces' bridge for a neighbour, reached through a socket file."""
        if shutil.which("dockerd") is None or shutil.which("nsenter") is None:
            raise RuntimeError("no container engine answers and there is no dockerd to start")
        self._outer = Namespaces()
        address = f"unix://{self._directory}/docker.sock"
        command = ["nsenter", f"--net=/var/run/netns/{self._outer.outer}", "dockerd"]
        command += ["--iptables=false", "--bridge=none", "-H", address]
        for option, name in (("data-root", "data"), ("exec-root", "exec"), ("pidfile", "pid")):
            command.append(f"--{option}={self._directory / name}")
        with (self._directory / "log").open("wb") as log:
            self._daemon = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not _listens(f"{self._directory}/docker.sock"):
            if time.monotonic() > deadline or self._daemon.poll() is not None:
                tail = (self._directory / "log").read_text()[-2000:]
                raise RuntimeError(f"dockerd does not start:\n{tail}")
            time.sleep(0.1)
        return docker.DockerClient(base_url=address)

    def _make_image(self) -> None:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            for name in ("usr", "etc", "tmp", "proc", "sys", "dev", "var", "root"):
                entry = tarfile.TarInfo(name)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
                tar.addfile(entry)
            for name in _LINKS:
                if Path("/", name).is_symlink():
                    entry = tarfile.TarInfo(name)
                    entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(f"/{name}")
                    tar.addfile(entry)
        self._client.api.import_image_from_data(data.getvalue(), repository=IMAGE, tag="latest")

    def _volumes(self, directory: Path) -> dict[str, dict[str, str]]:
        shared = {"/usr", "/etc", str(HOME), sys.prefix, sys.base_prefix}
        shared |= {f"/{name}" for name in _LINKS if not Path("/", name).is_symlink()}
        if original.available():
            shared.add(str(original.directory()))
        found = {
            os.path.realpath(path): {"bind": path, "mode": "ro"}
            for path in sorted(shared)
            if Path(path).exists()
        }
        return {**found, str(directory): {"bind": str(directory), "mode": "rw"}}

    def add(self) -> Host:
        self._number += 1
        name = f"{self._name}-{self._number}"
        address = f"10.89.{self._number // 250 + 1}.{self._number % 250 + 1}"

        def popen(command: list[str], directory: Path, log: Path) -> Contained:
            return self._start(name, address, command, directory, log)

        return Host(name, address, popen=popen)

    def _start(
        self, name: str, address: str, command: list[str], directory: Path, log: Path
    ) -> Contained:
        script = 'log=$0; exec "$@" >> "$log" 2>&1 < /dev/null'
        container = self._client.containers.create(
            IMAGE,
            ["/bin/sh", "-c", script, str(log), *command],
            name=f"{name}-{time.monotonic_ns()}",
            hostname=name,
            environment=environment(directory),
            volumes=self._volumes(directory),
            working_dir=str(directory),
            network=self._name,
            networking_config={
                self._name: self._client.api.create_endpoint_config(ipv4_address=address)
            },
            cap_add=["NET_ADMIN"],
        )
        self._current[name] = Contained(container)
        return self._current[name]

    def port(self, wanted: int) -> int:
        return wanted

    def remove(self, host: Host) -> None:
        self._current.pop(host.name, None)
        self._cut.discard(host.name)

    def cut(self, host: Host, others: Iterable[Host]) -> None:
        self._cut.add(host.name)
        for other in others:
            for chain, flag in (("INPUT", "-s"), ("OUTPUT", "-d")):
                rule = ["-A", chain, flag, other.address, "-j", "DROP"]
                self._current[host.name].run("iptables", "-w", *rule)

    def heal(self) -> None:
        for name in self._cut:
            if self._current[name].poll() is None:
                self._current[name].run("iptables", "-w", "-F")
        self._cut.clear()

    def inside(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._outer is None else self._outer.inside()

    def close(self) -> None:
        """Every container, the network, and the engine if it is ours."""
        if not self._directory.exists():
            return
        with contextlib.suppress(docker.errors.DockerException, AttributeError, OSError):
            for container in self._client.containers.list(all=True, filters={"name": self._name}):
                container.remove(force=True)
            self._network.remove()
            self._client.close()
        if self._daemon is not None:
            self._daemon.terminate()
            self._daemon.wait(_START_TIMEOUT_S)
        if self._outer is not None:
            self._outer.close()
        shutil.rmtree(self._directory, ignore_errors=True)
