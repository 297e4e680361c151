"""A console whose broker 1 keeps access rules and SCRAM users, by the real handlers of a broker."""

from __future__ import annotations

import json
from typing import Any

from kafka08.protocol import admin_schemas as a
from kafka08.protocol.registry import api_of
from kafka08.protocol.schemas import RequestHeader
from kafka08.security.acl_store import AclStore
from kafka08.security.acls import Acl, Operation, Permission, Resource, ResourceType
from kafka08.server.apis import acls, no_acls, scram_users
from tests.console.scene import ConsoleScene

TOPIC = Resource(ResourceType.TOPIC, "orders")
ANN = "User:ann"


def allow(principal: str = ANN, operation: Operation = Operation.READ, host: str = "*") -> Acl:
    return Acl(principal, Permission.ALLOW, operation, host)


def deny(principal: str = ANN, operation: Operation = Operation.READ, host: str = "*") -> Acl:
    return Acl(principal, Permission.DENY, operation, host)


class AccessScene(ConsoleScene):
    """``opened``: the broker's allow.everyone.if.no.acl.found, which it does not say if that is
    None. ``refuses``: the code with which it refuses requests, 0 for none."""

    def __init__(self, *, has_authorizer: bool = True, **settings: Any) -> None:
        super().__init__(**settings)
        zk: Any = self.session
        self.store = AclStore(zk, self.runtime.sleep)
        rules = acls.handlers(self.store) if has_authorizer else no_acls.handlers()
        self._handlers = {each.key: each for each in (*rules, *scram_users.handlers(zk))}
        self.opened: bool | None = False
        self.refuses = 0
        self.cluster.script = self._answer
        self.look()

    def _answer(self, port: int, request: Any) -> Any:
        if isinstance(request, a.DescribeConfigsRequest) and self.opened is not None:
            entry = a.ConfigEntry("allow.everyone.if.no.acl.found", str(self.opened).lower(), True)
            return a.DescribeConfigsResponse(0, [a.ResourceConfig(0, None, 4, "1", [entry])])
        handler: Any = self._handlers.get(api_of(request)[0])
        if handler is None or port != 9091:
            return None
        header = RequestHeader(api_of(request)[0], 0, 1, "tests")
        if self.refuses:
            return handler.failure(header, request, self.refuses)
        return handler.handle(header, request)

    def only_originals(self) -> None:
        """Broker 1 goes: broker 2 is of 0.8.2.2."""
        self.server.remove("/brokers/ids/1")
        self.look()

    def json(self, path: str) -> Any:
        answer = self.client.get(path, headers={"Accept": "application/json"})
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text)

    @property
    def audited(self) -> list[dict[str, Any]]:
        with open(self.config.audit_file, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
