"""zookeeper-security-migration: gives the nodes of a cluster ACLs, or takes them away.

Not of 0.8.2.2: the options of kafka.admin.ZkSecurityMigrator. It silently sets the ACLs that new
nodes have with zookeeper.set.acl=true, or opens the nodes to all. It creates no nodes, and leaves
/consumers and what is below alone: that is open in both cases. A failure exits 1; nodes before it
are done, and the tool can run again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing, suppress

from kafka08.errors import ConfigError, KafkaError
from tools import admin_command
from tools.options import OptionParser
from zk.access import OPEN, Acl, acl_of
from zk.client import ZkClient
from zk.errors import NoNodeError

SECURE, UNSECURE = "secure", "unsecure"
# The nodes that brokers of any release keep in ZooKeeper, but for /consumers.
ROOTS = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    "/controller",
    "/controller_epoch",
    "/delegation_token",
    "/feature",
    "/isr_change_notification",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended",
    "/kafka-acl-extended-changes",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
)
# The others are there only while a broker is, or with rules.
_NEVER_ABSENT = ("/admin", "/brokers", "/config")

PARSER = OptionParser(
    "ZooKeeper Migration Tool Help. This tool updates the ACLs of znodes as part of the process of "
    "setting up ZooKeeper authentication.",
    """
--zookeeper.acl <>  Indicates whether to make the Kafka znodes in ZooKeeper secure or unsecure. The
    options are 'secure' and 'unsecure'
--zookeeper.connect <>  Sets the ZooKeeper connect string (ensemble). This parameter takes a
    comma-separated list of host:port pairs. (default: localhost:2181)
--zookeeper.session.timeout <Integer>  Sets the ZooKeeper session timeout. (default: 30000)
--zookeeper.connection.timeout <Integer>  Sets the ZooKeeper connection timeout. (default: 30000)
--enable.path.check  Checks if the root paths of a cluster exist in ZooKeeper before migration. If
    not, exit the command.
--help  Print usage information.
""",
    admin_command.ZK_TLS_CONFIG_FILE,
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "zookeeper.acl")
    wanted = args.value("zookeeper.acl")
    if wanted not in (SECURE, UNSECURE):
        PARSER.usage_and_exit(f"--zookeeper.acl is {SECURE} or {UNSECURE}, not {wanted}")
    try:
        settings = admin_command.zookeeper_config(args)
        # Raises ConfigError without an identity.
        client = admin_command.zookeeper(
            args.value("zookeeper.connect"),
            settings.replace(zookeeper_set_acl=True),
            args.value("zookeeper.session.timeout"),
            args.value("zookeeper.connection.timeout"),
        ).start()
        with closing(client):
            if args.has("enable.path.check"):
                _check_paths(client)
            migrate(client, acl_of if wanted == SECURE else lambda path: OPEN)
        return 0
    except KafkaError as error:
        print(f"Error while migrating: {error}", file=sys.stderr)
        return 1


def migrate(client: ZkClient, acl: Callable[[str], tuple[Acl, ...]]) -> None:
    """Give each node of the cluster the ACL ``acl(path)``, a chroot too. Raises ZkError."""
    if "/" in client.connect:
        client.set_acl("/", acl("/"))
    for root in ROOTS:
        _migrate(client, root, acl)


def _migrate(client: ZkClient, path: str, acl: Callable[[str], tuple[Acl, ...]]) -> None:
    """Parents first: other clients cannot create children then."""
    with suppress(NoNodeError):  # it was deleted meanwhile
        client.set_acl(path, acl(path))
        for name in client.children(path):
            _migrate(client, f"{path}/{name}", acl)


def _check_paths(client: ZkClient) -> None:
    for path in _NEVER_ABSENT:
        if client.exists(path) is None:
            raise ConfigError(f"{path} does not exist, so {client.connect} is not a cluster")
