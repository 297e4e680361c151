"""A job of Flink whose ``KafkaSink`` writes ``EXACTLY_ONCE``: a local cluster in one process.

``Copy ADDRESS NAME CHECKPOINTS INTERVAL_MS`` copies the values of the topic ``NAME-in`` to
``NAME-out``, at most 2,000 in a second. A transaction is what comes between two checkpoints. It
goes on from the last checkpoint in the directory ``CHECKPOINTS``.
"""

from __future__ import annotations

import functools
from pathlib import Path

from integration import builds

VERSION = "1.20.2"
ARTIFACTS = (
    f"org.apache.flink:flink-clients:{VERSION}",
    f"org.apache.flink:flink-connector-base:{VERSION}",
    "org.apache.flink:flink-connector-kafka:3.4.0-1.20",
    "org.slf4j:slf4j-reload4j:1.7.36",
)
SOURCE = Path(__file__).parent / "flink" / "Copy.java"
# Flink looks into classes of Java's own for its serializers.
_OPENS = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
)


@functools.cache
def _command() -> list[str]:
    java, *rest = builds.java("program-flink", [SOURCE], *ARTIFACTS)
    return [java, *_OPENS, *rest]


def command(address: str, name: str, checkpoints: Path, interval_ms: int, log4j: Path) -> list[str]:
    """MissingError when the job cannot run here."""
    java, *rest = _command()
    words = ["Copy", address, name, str(checkpoints), str(interval_ms)]
    return [java, f"-Dlog4j.configuration=file:{log4j}", *rest, *words]
