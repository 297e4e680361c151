"""VerifyConsumerRebalance: does every partition a group subscribed to have a live owner?

Mirrors kafka.tools.VerifyConsumerRebalance, but for its two comparisons of text with something
else, which let it report a failure for every live group. Each fault is logged; the verdict is
printed. Exits 0 for both verdicts, or 1 for a failure with KAFKA_TOOLS_STRICT_EXIT=1.
"""

from __future__ import annotations

import logging

from kafka08.groups.members import GroupMembers, read_group
from tools import admin_command
from tools.options import OptionParser
from zk.client import ZkClient

logger = logging.getLogger("kafka.tools.VerifyConsumerRebalance$")

PARSER = OptionParser(
    "Validate that all partitions have a consumer for a given consumer group.",
    """
--zookeeper.connect <>  ZooKeeper connect string. (default: localhost:2181)
--group <>  Consumer group.
--help  Print this message.
""",
    later=admin_command.ZK_TLS_CONFIG_FILE,
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "group")
    with admin_command.session(args, "zookeeper.connect") as client:
        try:
            successful = verify(client, args.value("group"))
        except Exception:
            logger.exception("Error while verifying current rebalancing operation")
            return admin_command.failure_status()
    print(f"Rebalance operation {'successful' if successful else 'failed'} !")
    return 0 if successful else admin_command.failure_status()


def verify(client: ZkClient, group: str) -> bool:
    """Whether the group is at rest with an owner for each partition; what is not is logged."""
    found = read_group(client, group, exclude_internal=False)
    for tp in found.misplaced():
        owner = found.owners.get(tp)
        if owner is None:
            logger.error("No owner for partition %s", tp)
        else:
            logger.error(
                "Owner %s for partition %s is not a valid member of consumer group %s",
                owner,
                tp,
                group,
            )
    _log_idle_topics(found)
    return not found.misplaced()


def _log_idle_topics(found: GroupMembers) -> None:
    owned = {tp.topic for tp in found.owners}
    for topic, partitions in found.partitions.items():
        if partitions and topic not in owned:
            logger.error("No owners for any partitions for topic %s", topic)
