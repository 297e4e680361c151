"""A broker that acknowledges before anything is replicated, to show that the checker notices.

Run in the place of kafka.Kafka: ``python -m integration.faults.broken server.properties``.
"""

from __future__ import annotations

import sys

from kafka08.cluster.partition import Partition
from tools.run_class import main


def _acknowledged_at_once(partition: Partition, offset: int, acks: int) -> bool:
    partition.leader_log()
    return True


if __name__ == "__main__":
    Partition.acks_reached = _acknowledged_at_once  # type: ignore[method-assign]
    sys.exit(main(["kafka.Kafka", *sys.argv[1:]]))
