"""The authorizer of a broker: its rules, how they are kept up to date, and its audit log."""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.runtime import Runtime, Scheduler
from kafka08.security.acl_store import AclStore
from kafka08.security.audit import AuditLog
from kafka08.security.authorizer import AclAuthorizer
from kafka08.server.access.acl_changes import REFRESH_MS, AclChanges
from kafka08.server.access.guard import guarded
from kafka08.server.access.rules import rules
from kafka08.server.apis import acls
from kafka08.server.requests.dispatch import Handler
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient

_AUDIT_FLUSH_MS = 10_000


class Authorization:
    """Started before the first request is served, so that none is judged without the rules."""

    def __init__(self, config: BrokerConfig, runtime: Runtime, zk: ZkClient) -> None:
        self._config = config
        self._runtime = runtime
        self._audit = AuditLog(runtime.clock)
        self._authorizer = AclAuthorizer(
            config.super_principals, config.allow_everyone_if_no_acl_found, self._audit
        )
        self._store = AclStore(zk, runtime.sleep)
        self._changes = AclChanges(runtime, zk, self._store, self._authorizer)

    def apis(self) -> list[Handler]:
        """The APIs that read and change the rules."""
        return acls.handlers(self._store)

    def guard(self, handlers: Iterable[Handler], cache: MetadataCache) -> list[Handler]:
        """The handlers, each of which serves what the sender of a request may do."""
        creates_topics = self._config.auto_create_topics_enable
        return guarded(handlers, rules(cache, creates_topics), self._runtime, self._authorizer)

    def start(self) -> None:
        """Read the rules, and follow their changes. Raises ZkError."""
        self._changes.start()

    def schedule(self, scheduler: Scheduler) -> None:
        scheduler.every("acl-refresh", REFRESH_MS, self._changes.refresh, delay_ms=REFRESH_MS)
        scheduler.every("audit-log", _AUDIT_FLUSH_MS, self._audit.flush, delay_ms=_AUDIT_FLUSH_MS)

    def stop(self) -> None:
        self._changes.stop()
        self._audit.flush()
