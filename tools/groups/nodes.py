"""Changes to a group's nodes in ZooKeeper that tools make before and after they consume."""

from __future__ import annotations

from contextlib import closing

from kafka08.settings.zookeeper import UNSECURED, ZooKeeperSecurity
from tools.admin_command import zookeeper
from zk import znodes
from zk.errors import ZkError


def has_offsets(connect: str, group: str, security: ZooKeeperSecurity = UNSECURED) -> bool:
    """Also False if it cannot be determined."""
    with closing(zookeeper(connect, security)) as client:
        try:
            return client.start().exists(znodes.consumer_offsets_path(group)) is not None
        except ZkError:
            return False


def delete_group(
    connect: str,
    group: str,
    security: ZooKeeperSecurity = UNSECURED,
    timeout_s: float | None = None,
) -> bool:
    """False if that failed: what remains is clutter (ZkUtils.maybeDeletePath).

    ``timeout_s``: give up on a ZooKeeper that does not answer for so long.
    """
    with closing(zookeeper(connect, security)) as client:
        if timeout_s is not None:
            client.hurry(timeout_s)
        try:
            client.start().delete_recursive(znodes.group_path(group))
            return True
        except ZkError:
            return False
