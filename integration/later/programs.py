"""Clients of later releases as programs: their names, their builds, their actions.

The source of each program is beside this module, in the language of the client. A program is made
once, into a directory below ~/.cache/kafka08 whose name has a digest of its sources. Its
dependencies come from the package registry of the language by name and version; Python's clients
are the newest. Knows nothing of pytest or brokers.

A program is called with ACTION ADDRESS and these arguments, and prints lines:

- ``write TOPIC CODECS COUNT IDEMPOTENT``: for each codec, ``COUNT`` messages with acks all into
  partition 0, as ``sent`` has them; prints their offsets.
- ``read TOPIC COUNT ...``: partitions 0 from their beginning, messages as ``Message.line`` is.
- ``times TOPIC TIME ...``: the first offset, the last, and those of times; -1 is none.
- ``member GROUP TOPIC [NAME=VALUE ...]``: ``assigned P,P``, ``revoked``, ``message P OFFSET``;
  commits after each poll, leaves and prints ``closed`` when its standard input ends.
- ``admin TOPIC``: creates, lists, changes, grows and deletes a topic, and prints what it saw.
- ``send TOPIC PARTITION CODEC REQUEST_TIMEOUT_MS [NAME=VALUE ...]``: Java and franz-go, which has
  no settings; an idempotent producer of the values in standard input, in hex, one a line, and
  behind it the value of a header, if any. Prints ``NUMBER OFFSET``, or ``NUMBER -1 ERROR``.
- ``delete TOPIC OFFSET``: kafkajs alone; the records of partition 0 below the offset. Prints the
  first offset then, and the next.
- kafka-go can only ``read``.
- ``transactions ID TOPIC GROUP COUNT``: each with a message ``ID NUMBER`` to partition 0 and an
  offset of the group there, one above the number; aborts every third. Prints ``done``.
- ``committed TOPIC COUNT ...``: as ``read``, committed transactions only.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from integration import builds
from integration.builds import MissingError
from integration.clients import Record

HERE = Path(__file__).parent
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
JAVA = ("3.9.1", "4.3.0")
PYTHON_CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka")
PYTHON_PACKAGES = (*PYTHON_CLIENTS, "python-snappy", "lz4", "zstandard", "cramjam")
RUN_TIMEOUT_S = 180
FIRST_TIME = 1_600_000_000_000


class Message(NamedTuple):
    """A message as readers print it. ``time`` in ms, -1 for none; headers as ``name=value,...``."""

    offset: int
    time: int
    key: str
    value: str
    headers: str

    def line(self, topic: str) -> str:
        return "\t".join((topic, *map(str, self)))


def sent(codecs: Iterable[str], count: int) -> list[Message]:
    """The messages that ``write`` leaves in an empty partition."""
    return [
        Message(at * count + n, FIRST_TIME + n, f"key {n}", f"{codec} {n}", f"codec={codec},empty=")
        for at, codec in enumerate(codecs)
        for n in range(count)
    ]


def records(messages: Iterable[Message]) -> list[Record]:
    return [Record(each.key.encode(), each.value.encode()) for each in messages]


class Client(NamedTuple):
    name: str
    make: Callable[[], list[str]]  # the command, without arguments
    codecs: tuple[str, ...] = CODECS


def _java(version: str) -> list[str]:
    artifact = f"org.apache.kafka:kafka-clients:{version}"
    return [*builds.java("later-java", [HERE / "LaterClient.java"], artifact), "LaterClient"]


def _go(name: str) -> list[str]:
    builds.need("go")
    sources = [HERE / name / file for file in ("main.go", "go.mod", "go.sum")]
    build = ["go", "build", "-o", "program"]
    made = builds.made(f"later-{name}", sources, lambda directory: builds.run(build, directory))
    return [str(made / "program")]


def _kafkajs() -> list[str]:
    builds.need("node")
    builds.need("npm")
    sources = [HERE / "kafkajs" / file for file in ("client.js", "package.json")]
    install = ["npm", "install", "--no-audit", "--no-fund", "--loglevel", "error"]
    made = builds.made("later-kafkajs", sources, lambda directory: builds.run(install, directory))
    return ["node", str(made / "client.js")]


@functools.cache
def _python_environment() -> str:
    """An interpreter of its own, made for each run: its packages are the newest."""
    directory = tempfile.TemporaryDirectory(prefix="kafka08-later-")
    _environments.append(directory)
    return builds.python_environment(Path(directory.name), *PYTHON_PACKAGES)


_environments: list[tempfile.TemporaryDirectory[str]] = []  # removed when the interpreter ends


def _python(name: str) -> list[str]:
    return [_python_environment(), str(HERE / "python_client.py"), name]


CLIENTS = {
    client.name: client
    for client in (
        *(Client(f"java-{version}", functools.partial(_java, version)) for version in JAVA),
        *(Client(name, functools.partial(_python, name)) for name in PYTHON_CLIENTS),
        Client("franz-go", lambda: _go("franz")),
        Client("sarama", lambda: _go("sarama")),
        Client("kafkajs", _kafkajs, ("none", "gzip", "snappy")),
    )
}
# Those that can ``read``.
READERS = {**CLIENTS, "kafka-go": Client("kafka-go", lambda: _go("segmentio"))}


@functools.cache
def _command(name: str) -> list[str] | MissingError:
    return builds.attempted(READERS[name].make)


def missing(name: str) -> str:
    """Why a client cannot run here; empty when it can. Makes its program."""
    found = _command(name)
    return f"{name}: {found}" if isinstance(found, MissingError) else ""


def command(name: str, *args: object) -> list[str]:
    """MissingError when the client cannot run here."""
    found = _command(name)
    if isinstance(found, MissingError):
        raise found
    return [*found, *map(str, args)]


def run(name: str, *args: object, timeout: float = RUN_TIMEOUT_S, **env: str) -> list[str]:
    """The lines that an action prints. AssertionError if it fails."""
    done = subprocess.run(
        command(name, *args),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, f"{name} {args}: {done.stderr[-3000:]}"
    return done.stdout.splitlines()


def tools_class_path(version: str = JAVA[-1]) -> str:
    """For `java -cp`: the command line tools of a later release. MissingError without them."""
    artifacts = (f"kafka-tools:{version}", f"kafka_2.13:{version}")
    return os.pathsep.join(f"{builds.jars(f'org.apache.kafka:{each}')}/*" for each in artifacts)


if __name__ == "__main__":
    for each in READERS:
        print(missing(each) or each, file=sys.stderr)
