"""Java's clients of 0.9 to 2.8 as programs, each compiled against its own release.

A program is called as ``command`` says, and prints lines:

- ``Client write ADDRESS TOPIC WRITER CODECS COUNT IDEMPOTENT``: for each codec, ``COUNT`` messages
  with acks all into partition 0, as ``sent`` has them; prints their offsets.
- ``Client read ADDRESS TOPIC COUNT``: partition 0 from its beginning, as ``shown`` has it.
- ``Client member ADDRESS GROUP TOPIC``: as the members of ``later.programs``.
- ``Times ADDRESS TOPIC TIME ...``, since 0.10.1: the first offset, the next, and for each time
  ``OFFSET TIME`` or ``none``.
- ``Administration ADDRESS TOPIC``, since 0.11.
"""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable
from pathlib import Path

from integration import builds
from integration.later.programs import FIRST_TIME, Message

SOURCES = Path(__file__).parent / "java"
VERSIONS = ("0.9.0.1", "0.10.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1", "2.3.1", "2.8.2")
RUN_TIMEOUT_S = 180


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def has_times(version: str) -> bool:
    return number(version) >= (0, 10)


def has_lookups_by_time(version: str) -> bool:
    return number(version) >= (0, 10, 1)


def has_headers(version: str) -> bool:
    """And idempotent producers, and an administrator's client."""
    return number(version) >= (0, 11)


def codecs(version: str) -> tuple[str, ...]:
    return ("none", "gzip", "snappy", "lz4", *(["zstd"] if number(version) >= (2, 1) else []))


def _sources(version: str) -> list[Path]:
    generation = (
        "from_0_11"
        if has_headers(version)
        else "from_0_10"
        if has_times(version)
        else "from_0_9"
    )  # fmt: skip
    found = [SOURCES / "Client.java", SOURCES / generation / "Records.java"]
    if has_lookups_by_time(version):
        found.append(SOURCES / "Times.java")
    if has_headers(version):
        found.append(SOURCES / "Administration.java")
    return found


@functools.cache
def _command(version: str) -> list[str]:
    artifact = f"org.apache.kafka:kafka-clients:{version}"
    return builds.java("program-java-client", _sources(version), artifact)


def command(version: str, *words: object) -> list[str]:
    """MissingError when the client cannot run here."""
    return [*_command(version), *map(str, words)]


def run(version: str, *words: object) -> list[str]:
    """The lines that a program prints. AssertionError if it fails."""
    done = subprocess.run(
        command(version, *words),
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{version} {words}: {done.stderr[-3000:]}"
    return done.stdout.splitlines()


def sent(version: str, writer: str, used: Iterable[str], count: int, start: int) -> list[Message]:
    """The messages that ``write`` of a version appends at the offset ``start``."""
    pairs = [(codec, n) for codec in used for n in range(count)]
    return [
        Message(
            offset,
            FIRST_TIME + n if has_times(version) else -1,
            f"key {n}",
            f"{writer} {codec} {n}",
            f"key=key {n},empty=" if has_headers(version) else "",
        )
        for offset, (codec, n) in enumerate(pairs, start)
    ]


def shown(version: str, message: Message) -> str:
    """How ``read`` of a version prints a message."""
    if not has_times(version):
        message = message._replace(time=-1)
    if not has_headers(version):
        message = message._replace(headers="")
    return "\t".join(map(str, message))
