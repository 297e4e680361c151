"""An application of Kafka Streams that counts each record once, with ``exactly_once_v2``.

``ExactlyOnce ADDRESS NAME STATE_DIRECTORY REPLICAS`` reads the topic ``NAME-orders`` (values
``CUSTOMER NUMBER``), and writes ``COUNT SUM`` of each customer's numbers to ``NAME-sums``, after a
repartition. A record that is read or written twice changes the results.
"""

from __future__ import annotations

import functools
from pathlib import Path

from integration import builds

SOURCE = Path(__file__).parent / "streams" / "ExactlyOnce.java"
VERSIONS = ("3.9.1", "4.4.0")


@functools.cache
def _command(version: str) -> list[str]:
    artifact = f"org.apache.kafka:kafka-streams:{version}"
    return builds.java("program-exactly-once", [SOURCE], artifact)


def command(version: str, address: str, name: str, state: Path, replicas: int) -> list[str]:
    """MissingError when the application cannot run here."""
    return [*_command(version), "ExactlyOnce", address, name, str(state), str(replicas)]
