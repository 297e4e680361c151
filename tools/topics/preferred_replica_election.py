"""kafka-preferred-replica-election: let the first replica of each partition lead again.

Mirrors kafka.admin.PreferredReplicaLeaderElectionCommand. The tool only asks; the controller
elects, where the preferred replica is alive and in sync.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from contextlib import closing

from kafka08 import admin
from kafka08.admin import AdminCommandFailedError
from kafka08.common import TopicPartition
from kafka08.errors import AdminOperationError
from tools import admin_command
from tools.options import Arguments, OptionParser, run_tool
from zk import znodes
from zk.client import ZkClient
from zk.errors import NodeExistsError
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.admin.PreferredReplicaLeaderElectionCommand")

PARSER = OptionParser(
    "This tool causes leadership for each partition to be transferred back to the "
    "'preferred replica', it can be used to balance leadership among the servers.",
    """
--path-to-json-file <list of partitions for which preferred replica leader election needs to be
    triggered>  A file of the partitions to elect leaders for, in this form:
    |{"partitions":
    |\t[{"topic": "foo", "partition": 1},
    |\t {"topic": "foobar", "partition": 2}]
    |}
    |Without it all partitions are meant.
--zookeeper <urls>  REQUIRED: Where ZooKeeper is: host:port, several separated by commas, a chroot
    at the end.
""",
    later=admin_command.ZK_TLS_CONFIG_FILE,
)


def main(argv: list[str]) -> int:
    """Exit status; raises UsageError and OptionError for run_tool to print."""
    args = PARSER.parse_command(argv, "zookeeper")
    return admin_command.run(lambda: _run(args), "Failed to start preferred replica election")


def _run(args: Arguments) -> None:
    settings = admin_command.zookeeper_config(args)
    with closing(admin_command.connect(args.value("zookeeper"), settings)) as client:
        if args.has("path-to-json-file"):
            path = args.value("path-to-json-file")
            partitions = parse_partitions(path, admin_command.read_file(path))
        else:
            partitions = list(admin.fetch_assignments(client, admin.list_topics(client)))
        start(client, partitions)
    print(
        f"Successfully started preferred replica election for partitions {_scala_set(partitions)}"
    )


def parse_partitions(path: str, data: bytes) -> list[TopicPartition]:
    """The partitions of a file. Raises AdminOperationError, MalformedNodeError."""
    try:
        node = znodes.decode_json(path, data)
    except MalformedNodeError:
        node = None
    if node is None or (isinstance(node, dict) and "partitions" not in node):
        raise AdminOperationError("Preferred replica election data is empty")
    partitions = znodes.decode_partitions(path, data)
    if len(partitions) != len(node["partitions"]):
        listed = [TopicPartition(e["topic"], e["partition"]) for e in node["partitions"]]
        twice = [str(tp) for tp in partitions if listed.count(tp) > 1]
        raise AdminOperationError(
            f"Preferred replica election data contains duplicate partitions: {','.join(twice)}"
        )
    return partitions


def start(client: ZkClient, partitions: Iterable[TopicPartition]) -> None:
    """Hand those that exist to the controller. Raises AdminCommandFailedError."""
    listed = list(partitions)
    try:
        existing = admin.fetch_assignments(client, dict.fromkeys(tp.topic for tp in listed))
        for tp in listed:
            if tp not in existing:
                logger.error(
                    "Skipping preferred replica leader election for partition %s "
                    "since it doesn't exist",
                    tp,
                )
        _write(client, [tp for tp in listed if tp in existing])
    except Exception as error:
        raise AdminCommandFailedError("Admin command failed") from error


def _write(client: ZkClient, partitions: list[TopicPartition]) -> None:
    try:
        admin.start_preferred_election(client, partitions)
    except NodeExistsError:
        pending = admin.fetch_preferred_elections(client)
        raise AdminOperationError(
            "Preferred replica leader election currently in progress for "
            f"{_scala_set(pending)}. Aborting operation"
        ) from None


def _scala_set(partitions: Iterable[TopicPartition]) -> str:
    return f"Set({', '.join(map(str, partitions))})"


if __name__ == "__main__":
    sys.exit(run_tool(main))
