"""A broker that acknowledges before anything is replicated, to show that the checker notices.

Its followers dawdle, too: harmless in itself, it gives a kill the time to hit.
Run in the place of kafka.Kafka: ``python -m integration.faults.broken server.properties``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from kafka08 import log4j
from kafka08.cluster.partition import Partition
from kafka08.server.main import main
from kafka08.server.replication.fetchers import ReplicaFetcher

DAWDLE_S = 0.2


def _acknowledged_at_once(partition: Partition, offset: int, acks: int) -> bool:
    partition.leader_log()
    return True


def _dawdling(step: Callable[[ReplicaFetcher], None]) -> Callable[[ReplicaFetcher], None]:
    def slow_step(fetcher: ReplicaFetcher) -> None:
        if not fetcher.stopping.wait(DAWDLE_S):
            step(fetcher)

    return slow_step


if __name__ == "__main__":
    Partition.check_enough_replicas_reach_offset = _acknowledged_at_once  # type: ignore[method-assign]
    ReplicaFetcher.step = _dawdling(ReplicaFetcher.step)  # type: ignore[method-assign]
    log4j.configure()
    sys.exit(main(sys.argv[1:]))
