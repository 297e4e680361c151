"""Checks that topics exist before tasks start to wait for them."""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.client.cluster import ClusterClient
from kafka08.connect.interface import ConnectError
from kafka08.errors import KafkaError
from kafka08.runtime import Event, Runtime

WAIT_S = 10.0
PAUSE_S = 0.2


def await_topics(
    cluster: ClusterClient, topics: Iterable[str], option: str, stopping: Event, runtime: Runtime
) -> None:
    """Request the topics' metadata, by which brokers may create them, until they exist.

    Raises ConnectError, which names option and value.
    """
    names = list(topics)
    deadline = runtime.clock.monotonic() + WAIT_S
    while not stopping.is_set():
        try:
            cluster.refresh(names)
            for name in names:
                cluster.partitions(name)
            return
        except (OSError, KafkaError) as error:
            if runtime.clock.monotonic() >= deadline:
                raise ConnectError(
                    f"{option} has value {','.join(names)}, but some topics cannot be used: {error}"
                ) from error
        stopping.wait(PAUSE_S)
