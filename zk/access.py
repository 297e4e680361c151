"""How a session with ZooKeeper is secured: TLS, a login, and the ACLs of the nodes it creates.

With ``set_acl`` nodes belong to who creates them, and others may read them alone. Two parts differ:
consumers of 0.8 log in nowhere and keep their groups below /consumers, which stays open to all; and
what holds secrets is not for others to read.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple

Acl = tuple[int, str, str]
"""Permission bits, scheme, id."""

READ, ALL = 1, 31
OPEN: tuple[Acl, ...] = ((ALL, "world", "anyone"),)
# The server replaces it by the identities of the session.
_CREATOR: Acl = (ALL, "auth", "")
_WORLD_READS: Acl = (READ, "world", "anyone")

_OPEN_BELOW = "/consumers"
_SECRET = ("/config/users", "/config/brokers", "/config/made_up_salts", "/delegation_token/tokens")


class Hidden(str):
    """A text that logs do not show, although kazoo writes its requests there."""

    def __repr__(self) -> str:
        return "'[hidden]'"

    __str__ = __repr__


class NodeAccess(NamedTuple):
    """``context`` is asked for the TLS context of each connection. ``login`` is "user:password" for
    ZooKeeper's scheme digest."""

    context: Callable[[], ssl.SSLContext] | None = None
    login: Hidden | None = None
    set_acl: bool = False

    def acl(self, path: str) -> tuple[Acl, ...] | None:
        """The ACL of a new node; None: the default, which is open to all."""
        return acl_of(path) if self.set_acl else None


UNSECURED = NodeAccess()


def acl_of(path: str) -> tuple[Acl, ...]:
    """The ACL of a node in a secured tree; ``path`` is that below the chroot."""
    if _is_below(path, _OPEN_BELOW):
        return OPEN
    if any(_is_below(path, secret) for secret in _SECRET):
        return (_CREATOR,)
    return (_CREATOR, _WORLD_READS)


def is_secret(path: str) -> bool:
    """Whether a node holds credentials, or is below one that does, in a tree below any chroot."""
    return any(f"{secret}/" in f"{path}/" for secret in _SECRET)


def _is_below(path: str, parent: str) -> bool:
    return path == parent or path.startswith(f"{parent}/")
