"""APIs 29 to 31 of later releases where no authorizer is set: there are no access rules (code 54).

``acls`` has what is done with a request on a broker with an authorizer.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka08.errors import LaterCode
from kafka08.protocol import acl_schemas as a
from kafka08.protocol.schemas import Message, RequestHeader
from kafka08.server.apis.outcomes import AdminOutcome
from kafka08.server.requests.dispatch import Handler

_DISABLED = AdminOutcome(LaterCode.SECURITY_DISABLED, "No Authorizer is configured.")

DESCRIBE, CREATE, DELETE = 29, 30, 31


def _described(request: a.DescribeAclsRequest, outcome: AdminOutcome) -> a.DescribeAclsResponse:
    return a.DescribeAclsResponse(0, *outcome, [])


def _created(request: a.CreateAclsRequest, outcome: AdminOutcome) -> a.CreateAclsResponse:
    return a.CreateAclsResponse(0, [a.CreatedAcl(*outcome)] * len(request.creations))


def _deleted(request: a.DeleteAclsRequest, outcome: AdminOutcome) -> a.DeleteAclsResponse:
    return a.DeleteAclsResponse(0, [a.DeletedAcls(*outcome, [])] * len(request.filters))


# The answers that give each part of a request the same outcome.
_ANSWERS: dict[int, Callable[[Message, AdminOutcome], Message]] = {
    DESCRIBE: _described,
    CREATE: _created,
    DELETE: _deleted,
}


class AclApi:
    """One of these APIs. Without ``serve`` each request is answered that there are no rules."""

    last_version = 1

    def __init__(self, key: int, serve: Callable[[Message], Message] | None = None) -> None:
        self.key = key
        self._serve = serve

    def handle(self, header: RequestHeader, request: Message) -> Message:
        if self._serve is None:
            return _ANSWERS[self.key](request, _DISABLED)
        return self._serve(request)

    def failure(self, header: RequestHeader, request: Message, code: int) -> Message:
        return _ANSWERS[self.key](request, AdminOutcome(code))


def handlers() -> list[Handler]:
    return [AclApi(key) for key in _ANSWERS]
