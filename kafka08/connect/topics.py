"""Checks that topics exist before tasks start to wait for them."""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.client.cluster import ClusterClient
from kafka08.client.retry import Retry
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

    def ask() -> None:
        cluster.refresh(names)
        for name in names:
            cluster.partitions(name)

    try:
        Retry(runtime, PAUSE_S, patience=WAIT_S, stopping=stopping).run(ask)
    except (OSError, KafkaError) as error:
        if not stopping.is_set():
            raise ConnectError(
                f"{option} has value {','.join(names)}, but some topics cannot be used: {error}"
            ) from error
