"""The versions in which a client that asked for ApiVersions sends Produce, Fetch and ListOffsets.

0.8.2.2 closes the connection of a client that asks, as does a broker that is being stopped. So
clients ask only if configured to, and never guess which of the two it was: a client that fell
back to version 0 would silently drop timestamps and headers. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka08.errors import NO_ERROR, ProtocolError
from kafka08.protocol.admin_schemas import DescribeLogDirsRequest
from kafka08.protocol.later_schemas import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    InitProducerIdRequest,
)
from kafka08.protocol.registry import APIS, api_of
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.schemas import FetchRequest, ListOffsetsRequest, ProduceRequest
from kafka08.protocol.transaction_schemas import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from kafka08.protocol.types import Schema, Struct

# Version 0 is the only one that every broker with ApiVersions reads.
_ASKED_IN = 0
# The first versions with message format 2, and with the times of messages.
_NEEDED = ((ProduceRequest, 3), (FetchRequest, 4), (ListOffsetsRequest, 1))
# Requests that a broker need not serve. Of idempotent and transactional producers, the first
# versions in which a producer goes on after an error and offsets name a group's member, and the
# last ones that are for clients. Data directories come with their free space in the last version.
_OPTIONAL: dict[Schema, tuple[int, int]] = {
    InitProducerIdRequest: (3, 4),
    AddPartitionsToTxnRequest: (0, 3),
    AddOffsetsToTxnRequest: (0, 3),
    EndTxnRequest: (0, 3),
    TxnOffsetCommitRequest: (3, 3),
    DescribeLogDirsRequest: (0, 4),
}


class NoApiVersionsError(ProtocolError):
    """A broker did not say which versions it serves, or does not serve those that are needed."""

    text = "The broker does not serve the requests of later releases"


class NotServedError(ProtocolError):
    """A broker that said which versions it serves has none of a request that may be used."""

    text = "The broker does not serve this request"


class Negotiated(NamedTuple):
    """How a request is sent: its version, and the layout of its response."""

    version: int
    response: Struct


Versions = dict[Schema, Negotiated]


def question(client_id: str | None) -> bytes:
    """The framed request, with correlation id 0."""
    return b"".join(encode_request(ApiVersionsRequest(), 0, client_id, _ASKED_IN))


def answered(frame: bytes | bytearray | memoryview, name: str) -> Versions:
    """The meaning of the response of the broker ``name``, by request class.

    ``frame`` is without its size word. Raises ProtocolError, NoApiVersionsError.
    """
    correlation_id, response = decode_response(Struct(ApiVersionsResponse, _ASKED_IN), frame)
    if correlation_id != 0:
        raise ProtocolError(f"{name} answered {correlation_id} where 0 was due")
    if response.error != NO_ERROR:
        raise NoApiVersionsError(f"{name} answered ApiVersions with code {response.error}")
    served = {each.api_key: each for each in response.api_keys}
    versions: Versions = {}
    for request, least in _NEEDED:
        api = APIS[api_of(request)[0]]
        found = served.get(api.key)
        version = -1 if found is None else min(found.max_version, api.last)
        if found is None or version < max(least, found.min_version):
            there = "not" if found is None else f"{found.min_version} to {found.max_version}"
            raise NoApiVersionsError(
                f"{name} serves {api.name} {there}; {least} to {api.last} are needed"
            )
        versions[request] = Negotiated(version, Struct(api.response, version))
    for sent, (least, most) in _OPTIONAL.items():
        api = APIS[api_of(sent)[0]]
        found = served.get(api.key)
        version = -1 if found is None else min(found.max_version, most)
        if found is not None and version >= max(least, found.min_version):
            versions[sent] = Negotiated(version, Struct(api.response, version))
    return versions


def chosen(request: object, versions: Versions, version: int | None = None) -> Negotiated:
    """How a request is sent: in ``version``, or as negotiated, or in its usual version. No
    ``versions``: the broker was not asked.

    Raises NotServedError.
    """
    key, usual, response = api_of(request)
    if version is not None:
        return Negotiated(version, Struct(response.schema, version))
    negotiated = versions.get(type(request))
    if negotiated is None and versions and type(request) in _OPTIONAL:
        least, most = _OPTIONAL[type(request)]
        raise NotServedError(
            f"The broker does not serve {APIS[key].name} of a version from {least} to {most}"
        )
    return negotiated or Negotiated(usual, response)


def closed(name: str) -> NoApiVersionsError:
    """The error of a broker that closed the connection instead of answering."""
    return NoApiVersionsError(
        f"{name} closed the connection when asked for its versions. A broker of 0.8 or 0.9 does "
        "this, and kafka08 with api.versions.enable=false or beside a broker of 0.8.2.2: set "
        "api.versions.request=false for it. So does a broker that is stopping"
    )
