"""The rights of clients: the credentials of their logins, and the access rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.network.peer import Session
from kafka08.runtime import Runtime, Scheduler
from kafka08.server import optional
from kafka08.server.apis import no_acls, scram_users
from kafka08.server.part import Part, Room
from kafka08.server.requests.dispatch import Handler
from kafka08.settings.broker import BrokerConfig
from zk import entities
from zk.client import ZkClient

if TYPE_CHECKING:
    from kafka08.server.access.logins import LoginSettings


class AccessControl(Room):
    """``logins``: those of the listeners. ``end`` ends sessions whose credentials have changed."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        zk: ZkClient,
        logins: LoginSettings | optional.NoLogins,
        end: Callable[[Collection[Session]], object],
    ) -> None:
        self._zk = zk
        self._authorization = optional.authorization_of(config, runtime, zk)
        self.credentials = logins.credentials(zk, end)

    def handlers(self) -> list[Handler]:
        rules = self._authorization
        acls = no_acls.handlers() if rules is None else rules.apis()
        return [*acls, *scram_users.handlers(self._zk)]

    def guard(self, handlers: list[Handler], cache: MetadataCache) -> list[Handler]:
        """The handlers, each of which serves what the sender of a request may do."""
        rules = self._authorization
        return handlers if rules is None else rules.guard(handlers, cache)

    def tasks(self, scheduler: Scheduler) -> Iterator[Part]:
        """Started before the first request is served."""
        rules = self._authorization
        if rules is not None:
            yield Part("the authorizer", rules.start, rules.stop)
            rules.schedule(scheduler)
        yield Part("credentials", self.load)

    def load(self) -> None:
        """Read the credentials. Raises ZkError."""
        if self.credentials is not None:
            self.credentials.load()

    def watched(self) -> list[tuple[str, Callable[[str], None]]]:
        """As ``Quotas.watched``."""
        return [] if self.credentials is None else [(entities.USERS, self.credentials.changed)]
