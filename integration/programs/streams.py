"""An application of Kafka Streams as a program, compiled against its own release.

``Application ADDRESS NAME STATE_DIRECTORY`` reads topics ``NAME-orders`` (values ``CUSTOMER
NUMBER``) and ``NAME-payments``, both by the same keys, and writes:

- ``NAME-numbers``: for each customer the set of its numbers, after a repartition.
- ``NAME-windows``: for ``KEY@BEGIN`` the set of the numbers of 10 s.
- ``NAME-paid``: ``ORDER PAYMENT`` of each key with at most 5 s between them.

It prints ``restored STORE PARTITION COUNT`` for each store that it restored from its changelog, and
``state NAME``. A message that it reads twice changes no result.
"""

from __future__ import annotations

import functools
from pathlib import Path

from integration import builds

SOURCE = Path(__file__).parent / "streams" / "Application.java"
VERSIONS = ("3.9.1", "4.4.0")
STORES = {"numbers", "windows", "paid-this-join-store", "paid-other-join-store"}


@functools.cache
def _command(version: str) -> list[str]:
    artifact = f"org.apache.kafka:kafka-streams:{version}"
    return builds.java("program-streams", [SOURCE], artifact)


def command(version: str, address: str, name: str, state: Path) -> list[str]:
    """MissingError when the application cannot run here."""
    return [*_command(version), "Application", address, name, str(state)]
