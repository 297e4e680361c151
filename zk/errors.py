"""The errors of ZooKeeper calls. Does not know kazoo.

``java_class`` is the exception that 0.8.2.2 shows for it (org.I0Itec.zkclient).
"""

from __future__ import annotations

from typing import ClassVar

from kafka08.errors import KafkaError


class ZkError(KafkaError):
    """Base. ``path`` is the node concerned, "" if none.

    ``after_loss``: a connection loss interrupted an earlier try of the same call, so that try may
    have succeeded and caused this failure.
    """

    java_class = "org.I0Itec.zkclient.exception.ZkException"
    keeper_code: ClassVar[str] = "SystemError"

    def __init__(self, message: str = "", *, path: str = "", after_loss: bool = False) -> None:
        code, where = self.keeper_code, f" for {path}" if path else ""
        text = f"KeeperException${code}Exception: KeeperErrorCode = {code}{where}"
        super().__init__(message or f"org.apache.zookeeper.{text}")
        self.path = path
        self.after_loss = after_loss


class NoNodeError(ZkError):
    keeper_code = "NoNode"
    java_class = "org.I0Itec.zkclient.exception.ZkNoNodeException"


class NoAuthError(ZkError):
    """The ACL of the node, or of the parent of one to be created or deleted, does not allow it."""

    keeper_code = "NoAuth"


class NodeExistsError(ZkError):
    keeper_code = "NodeExists"
    java_class = "org.I0Itec.zkclient.exception.ZkNodeExistsException"


class BadVersionError(ZkError):
    keeper_code = "BadVersion"
    java_class = "org.I0Itec.zkclient.exception.ZkBadVersionException"


class NotEmptyError(ZkError):
    """The node has children."""

    keeper_code = "NotEmpty"


class DataTooLargeError(ZkError):
    """A request larger than a ZooKeeper server accepts. It was not sent."""

    keeper_code = "MarshallingError"


class EphemeralParentError(ZkError):
    """Ephemeral nodes cannot have children."""

    keeper_code = "NoChildrenForEphemerals"


class ZkConnectionError(ZkError):
    """No answer arrived in time. A write may or may not have been carried out."""

    keeper_code = "ConnectionLoss"

    java_class = "org.I0Itec.zkclient.exception.ZkTimeoutException"


class ZkClosedError(ZkConnectionError):
    """The client was closed, before the call or during it."""


class SessionExpiredError(ZkError):
    """The session in which the call began has ended, and all its ephemeral nodes with it."""

    keeper_code = "SessionExpired"


class DuplicateBrokerError(ZkError):
    """Another live broker is registered under our id."""

    java_class = "java.lang.RuntimeException"
