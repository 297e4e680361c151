"""Keeps the access rules of a broker as ZooKeeper has them.

A writer that changes the rules of a resource leaves a notice. One task for each of the two kinds of
notices reads the rules that are named. All rules are read at the start, in a new session, and every
now and then, in case a notice was missed. While ZooKeeper cannot be reached the last known rules
hold. A resource whose rules cannot be read is refused to all but super users.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from kafka08.runtime import Runtime
from kafka08.security import acl_nodes
from kafka08.security.acl_store import AclStore, read_or_refuse
from kafka08.security.acls import DENY_ALL, Acl, AclIndex, PatternType, Resource
from kafka08.security.authorizer import AclAuthorizer
from kafka08.server.cluster_view.watched_children import NOTICE_EXPIRY_MS, WatchedChildren
from zk.client import SessionState, ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.security.authorizer.AclAuthorizer")

REFRESH_MS = 60_000
# All rules are read again after that many times the time it took, if that is later.
_REST = 50


class AclChanges:
    """Gives ``authorizer`` the rules."""

    def __init__(
        self, runtime: Runtime, zk: ZkClient, store: AclStore, authorizer: AclAuthorizer
    ) -> None:
        self._clock = runtime.clock
        self._zk = zk
        self._store = store
        self._authorizer = authorizer
        self._lock = runtime.lock()  # the tasks read one after the other
        # How often all rules were to be read, and the count at the last time that was done.
        self._wanted, self._done = 1, 0
        self._rested = 0.0
        self._unreadable: dict[Resource, str] = {}
        # The notices that have been seen: name -> time of creation, ms.
        self._seen: dict[PatternType, dict[str, int]] = {each: {} for each in PatternType}
        self.notices = [
            WatchedChildren(
                runtime,
                zk,
                acl_nodes.CHANGES[pattern],
                f"acl-changes-{pattern.label.lower()}",
                partial(self._follow, pattern),
                logger,
                "The access rules were not read, the last known ones hold",
            )
            for pattern in PatternType
        ]
        zk.on_state(self._state_changed)

    def start(self) -> None:
        """Read all rules, and follow changes. Raises ZkError."""
        self._store.ensure_paths()
        for each in self.notices:
            each.start()

    def stop(self) -> None:
        for each in self.notices:
            each.stop()

    def _state_changed(self, state: SessionState) -> None:
        """In a new session watches are gone, and notices may be: read everything again."""
        if state is SessionState.EXPIRED:
            self._wanted += 1
            for each in self.notices:
                each.session_expired()

    def refresh(self) -> None:
        """Read everything again, unless that was done a short time ago."""
        if self._wanted == self._done and self._clock.monotonic() >= self._rested:
            self._wanted += 1
            self.notices[0].session_expired()

    def _follow(self, pattern: PatternType, names: Sequence[str]) -> None:
        with self._lock:
            if self._wanted != self._done:
                self._read_all()
            self._see(pattern, names)

    def _read_all(self) -> None:
        began, wanted = self._clock.monotonic(), self._wanted
        found = {resource: self._read(resource) for resource in self._store.resources()}
        self._authorizer.replace(AclIndex(found))
        self._done = wanted
        ended = self._clock.monotonic()
        self._rested = ended + _REST * (ended - began)

    def _read(self, resource: Resource) -> tuple[Acl, ...]:
        found = read_or_refuse(self._store, resource)
        if not isinstance(found, MalformedNodeError):
            self._unreadable.pop(resource, None)
            return found
        if self._unreadable.get(resource) != str(found):
            self._unreadable[resource] = str(found)
            logger.error("%s is refused to all but super users: %s", resource, found)
        return DENY_ALL

    def _see(self, pattern: PatternType, names: Sequence[str]) -> None:
        """Read what new notices name; remove notices that every broker has had time to see."""
        seen = self._seen[pattern]
        for gone in seen.keys() - set(names):
            del seen[gone]
        are_understood = True
        for name in sorted(set(names) - seen.keys()):
            path = acl_nodes.change_path(pattern, name)
            found = self._zk.get_if_exists(path)
            if found is not None:
                are_understood &= self._apply(pattern, path, found[0])
                seen[name] = found[1].ctime
        if not are_understood:
            self._read_all()
        for name, created in seen.items():
            if self._clock.millis() - created > NOTICE_EXPIRY_MS:
                self._zk.delete_if_exists(acl_nodes.change_path(pattern, name))

    def _apply(self, pattern: PatternType, path: str, data: bytes) -> bool:
        """Read what a notice names; False if the notice cannot be read."""
        try:
            resource = acl_nodes.decode_change(pattern, path, data)
        except MalformedNodeError as error:
            logger.warning("All access rules are read again: %s", error)
            return False
        acls = self._read(resource)
        self._authorizer.put(resource, acls)
        logger.info("Processed a change of the access rules of %s: %d rules", resource, len(acls))
        return True
