"""APIs 29 to 31 of later releases where no authorizer is set: there are no access rules (code 54).

``acls`` has the APIs of a broker with an authorizer. It differs in what is done with a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka08.errors import LaterCode
from kafka08.protocol import acl_schemas as a
from kafka08.protocol.schemas import RequestHeader
from kafka08.server.apis.outcomes import Outcome

_DISABLED = Outcome(LaterCode.SECURITY_DISABLED, "No Authorizer is configured.")


class DescribeAclsApi:
    key = 29
    last_version = 1

    def handle(
        self, header: RequestHeader, request: a.DescribeAclsRequest
    ) -> a.DescribeAclsResponse:
        return a.DescribeAclsResponse(0, *_DISABLED, [])

    def failure(
        self, header: RequestHeader, request: a.DescribeAclsRequest, code: int
    ) -> a.DescribeAclsResponse:
        return a.DescribeAclsResponse(0, code, None, [])


class CreateAclsApi:
    key = 30
    last_version = 1

    def handle(self, header: RequestHeader, request: a.CreateAclsRequest) -> a.CreateAclsResponse:
        return created([_DISABLED] * len(request.creations))

    def failure(
        self, header: RequestHeader, request: a.CreateAclsRequest, code: int
    ) -> a.CreateAclsResponse:
        return created([Outcome(code)] * len(request.creations))


class DeleteAclsApi:
    key = 31
    last_version = 1

    def handle(self, header: RequestHeader, request: a.DeleteAclsRequest) -> a.DeleteAclsResponse:
        return deleted([(_DISABLED, [])] * len(request.filters))

    def failure(
        self, header: RequestHeader, request: a.DeleteAclsRequest, code: int
    ) -> a.DeleteAclsResponse:
        return deleted([(Outcome(code), [])] * len(request.filters))


def created(outcomes: Sequence[Outcome]) -> a.CreateAclsResponse:
    """An outcome for each rule."""
    return a.CreateAclsResponse(0, [a.CreatedAcl(*outcome) for outcome in outcomes])


def deleted(results: Sequence[tuple[Outcome, list[a.DeletedAcl]]]) -> a.DeleteAclsResponse:
    """An outcome for each filter, and the rules that it took."""
    return a.DeleteAclsResponse(0, [a.DeletedAcls(*outcome, gone) for outcome, gone in results])


def handlers() -> list[Any]:
    return [DescribeAclsApi(), CreateAclsApi(), DeleteAclsApi()]
