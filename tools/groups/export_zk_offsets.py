"""ExportZkOffsets: the offsets that groups keep in ZooKeeper, into a file.

Mirrors kafka.tools.ExportZkOffsets: a line ``/consumers/g/offsets/t/0:42`` for each partition,
which ImportZkOffsets reads. Unlike there, without ``--group`` a group that has no offsets in
ZooKeeper is passed over. Knows nothing of offsets kept in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tools import admin_command
from tools.options import OptionParser
from zk import znodes
from zk.client import ZkClient

logger = logging.getLogger("kafka.tools.ExportZkOffsets$")

PARSER = OptionParser(
    "Export consumer offsets to an output file.",
    """
--zkconnect <>  ZooKeeper connect string. (default: localhost:2181)
--group <>  Consumer group.
--output-file <>  Output file
--help  Print this message.
""",
    later=admin_command.ZK_TLS_CONFIG_FILE,
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "zkconnect", "output-file")
    groups = args.values("group")
    with (
        open(args.value("output-file"), "w", encoding="utf-8") as file,
        admin_command.session(args, "zkconnect") as client,
    ):
        for line in export(client, groups):
            file.write(line)
    return 0


def export(client: ZkClient, groups: list[str]) -> Iterator[str]:
    """The lines of these groups, of all groups if none is named.

    Raises NoNodeError for a named group without offsets.
    """
    for group in groups or client.children(znodes.CONSUMERS):
        path = znodes.consumer_offsets_path(group)
        topics = client.children(path) if groups else client.children_if_exists(path)
        for topic in topics:
            of_topic = znodes.consumer_topic_offsets_path(group, topic)
            for partition in client.children_if_exists(of_topic):
                yield from _line(client, f"{of_topic}/{partition}")


def _line(client: ZkClient, path: str) -> Iterator[str]:
    found = client.get_if_exists(path)
    if found is None:
        logger.error("Could not retrieve offset value from %s", path)
        return
    offset = found[0].decode(errors="replace")
    yield f"{path}:{offset}\n"
    logger.debug("%s => %s", path, offset)
