"""Lets a handler see the allowed part of a request, and answers the rest with refusals.

Without an authorizer no handler is guarded, and requests take the way they always took. ``rules``
has the rule of each API. The sender is the peer of the current connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kafka08.common import ANONYMOUS
from kafka08.network.peer import current_peer
from kafka08.protocol.registry import APIS
from kafka08.protocol.schemas import Message, RequestHeader
from kafka08.runtime import Runtime
from kafka08.security.acls import CLUSTER, Operation, ResourceType
from kafka08.security.authorizer import AclAuthorizer, Requester
from kafka08.server.requests.dispatch import Handler
from kafka08.server.requests.long_work import in_turns_if_many

_UNKNOWN = Requester(ANONYMOUS, "")


class Check:
    """One request on its way to the handler, and the authorizer, asked about it."""

    __slots__ = ("_authorizer", "_began", "_requester", "_runtime", "handler", "header")

    def __init__(
        self, runtime: Runtime, authorizer: AclAuthorizer, handler: Handler, header: RequestHeader
    ) -> None:
        self._runtime = runtime
        self._authorizer = authorizer
        self._requester = _requester()
        self._began = authorizer.changes
        self.handler = handler
        self.header = header

    def handle(self, request: Message) -> Message:
        """The handler's answer to the allowed part of the request."""
        return self.handler.handle(self.header, request)

    def failure(self, request: Message, code: int) -> Message:
        return self.handler.failure(self.header, request, code)

    def allows(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """The decision, which goes into the audit log."""
        api = APIS[self.handler.key].name
        return self._authorizer.authorize(self._requester, operation, kind, name, api)

    def allows_on_cluster(self, operation: Operation) -> bool:
        return self.allows(operation, CLUSTER.type, CLUSTER.name)

    def allows_on_any(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether it is allowed on something of the type. Not logged."""
        return self._authorizer.is_allowed_on_any(self._requester, operation, kind)

    def is_broker(self) -> bool:
        """Whether the sender may act as a broker. Not logged."""
        authorizer, broker = self._authorizer, Operation.CLUSTER_ACTION
        return authorizer.is_allowed(self._requester, broker, CLUSTER.type, CLUSTER.name)

    def refused(
        self, operation: Operation, kind: ResourceType, names: Iterable[str]
    ) -> frozenset[str]:
        """The names on which the operation is not allowed."""
        return self._chosen(names, lambda name: not self.allows(operation, kind, name))

    def visible(
        self, operation: Operation, kind: ResourceType, names: Iterable[str]
    ) -> frozenset[str]:
        """The names on which the operation is allowed. For lists: not logged."""
        is_allowed, requester = self._authorizer.is_allowed, self._requester
        return self._chosen(names, lambda name: is_allowed(requester, operation, kind, name))

    def _chosen(self, names: Iterable[str], choose: Callable[[str], bool]) -> frozenset[str]:
        asked = dict.fromkeys(names)
        return frozenset(filter(choose, in_turns_if_many(self._runtime, asked)))

    def is_outdated(self) -> bool:
        """Whether rules have changed since the request came."""
        return self._authorizer.changes != self._began


Rule = Callable[[Check, Message], Message]
"""Serves a request with the API's handler, as far as that is allowed; returns the answer."""


class Guarded:
    """The handler of an API with its rule before it."""

    def __init__(
        self, handler: Handler, rule: Rule, runtime: Runtime, authorizer: AclAuthorizer
    ) -> None:
        self.key = handler.key
        self.last_version = handler.last_version
        self._handler = handler
        self._rule = rule
        self._runtime = runtime
        self._authorizer = authorizer

    def handle(self, header: RequestHeader, request: Message) -> Message:
        return self._rule(Check(self._runtime, self._authorizer, self._handler, header), request)

    def failure(self, header: RequestHeader, request: Message, code: int) -> Message:
        return self._handler.failure(header, request, code)


def guarded(
    handlers: Iterable[Handler],
    rules: Mapping[int, Rule],
    runtime: Runtime,
    authorizer: AclAuthorizer,
) -> list[Handler]:
    """The handlers behind their rules. KeyError for an API without a rule."""
    return [Guarded(each, rules[each.key], runtime, authorizer) for each in handlers]


def _requester() -> Requester:
    peer = current_peer.get()
    return _UNKNOWN if peer is None else Requester(peer.principal, peer.host)
