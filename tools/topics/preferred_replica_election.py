"""kafka-preferred-replica-election: let the first replica of each partition lead again.

Mirrors kafka.admin.PreferredReplicaLeaderElectionCommand. The tool only asks; the controller
elects, where the preferred replica is alive and in sync.
"""

from __future__ import annotations

from kafka08 import admin
from kafka08.topics.elections import parse_partitions, scala_set, start
from tools import admin_command
from tools.options import Arguments, OptionParser

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
    args = PARSER.parse_command(argv, "zookeeper")
    return admin_command.run(lambda: _run(args), "Failed to start preferred replica election")


def _run(args: Arguments) -> None:
    with admin_command.session(args) as client:
        if args.has("path-to-json-file"):
            path = args.value("path-to-json-file")
            partitions = parse_partitions(path, admin_command.read_file(path))
        else:
            partitions = list(admin.fetch_assignments(client, admin.list_topics(client)))
        start(client, partitions)
    print(f"Successfully started preferred replica election for partitions {scala_set(partitions)}")
