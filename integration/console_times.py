"""How long the console's pages take over many topics: `python -m integration.console_times`.

400 topics of 20 partitions and 40 groups, in memory, so that the console's own work counts, and
that of the fakes: most of the pages of messages and of ZooKeeper is theirs. Each page is asked
three times; the shortest CPU time and its size are printed.
"""

from __future__ import annotations

import sys
import time

from tests.console.scene import ConsoleScene
from zk import znodes
from zk.znodes import PartitionStateNode

TOPICS, PARTITIONS, GROUPS = 400, 20, 40
LIMIT_S = 0.5
PATHS = (
    "/",
    "/brokers",
    "/brokers/1",
    "/brokers/1/what-if",
    "/topics",
    "/topics?sort=-messages",
    "/topics/topic-7",
    "/topics/topic-7/3",
    "/topics/topic-7/settings",
    "/topics/topic-7/messages",
    "/topics/topic-7/messages/all",
    "/groups",
    "/group?name=group-1",
    "/transactions",
    "/events",
    "/migration",
    "/elect",
    "/reassign",
    "/quotas",
    "/zookeeper/brokers/topics",
)


def scene() -> ConsoleScene:
    found = ConsoleScene(read_only=False)
    for at in range(TOPICS):
        name = f"topic-{at}"
        assignment = {number: [1, 2] for number in range(PARTITIONS)}
        found.server.put(znodes.topic_path(name), znodes.encode_topic(assignment))
        found.cluster.create(name, PARTITIONS, 1)
        for number in range(PARTITIONS):
            state = PartitionStateNode(1, 0, 3, (1,) if number == 0 else (1, 2))
            path = znodes.partition_state_path(name, number)
            found.server.put(path, znodes.encode_partition_state(state))
            found.cluster.append(name, number, b'{"a": 1}')
    for at in range(GROUPS):
        for number in range(PARTITIONS):
            path = znodes.consumer_offset_path(f"group-{at}", f"topic-{at}", number)
            found.server.put(path, b"0")
    found.look()
    found.runtime.clock.advance(60)
    found.look()
    return found


def main() -> int:
    found = scene()
    slow = 0
    for path in PATHS:
        taken = []
        for _ in range(3):
            found.runtime.clock.advance(2)
            begin = time.process_time()
            answer = found.get(path)
            taken.append(time.process_time() - begin)
        slow += min(taken) > LIMIT_S
        print(
            f"{min(taken) * 1000:6.0f} ms {len(answer.data):>9,} bytes {answer.status_code} {path}"
        )
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
