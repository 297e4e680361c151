"""API keys and versions, and the schema classes they stand for.

``APIS`` is every API and version that kafka08 can serve. ``ORIGINAL_APIS`` is what it serves with
``api.versions.enable`` off: the keys and versions of kafka.api.RequestKeys in 0.8.2.2, and some
administrative APIs.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from kafka08.errors import ProtocolError
from kafka08.protocol import acl_schemas as acls
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import later_schemas as later
from kafka08.protocol import schemas as s
from kafka08.protocol import scram_schemas as scram
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.types import Schema, Struct

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36

# How many elements all arrays of a request may have together. Decoded, one takes some hundred
# bytes, and its answer more. An UpdateMetadata of 70,000 partitions with three replicas has MANY.
MANY, FEW = 500_000, 50_000


class Api(NamedTuple):
    """Versions 0 to ``last`` of an API. Those from ``flexible`` on have request header 2. The
    tagged fields of their response header are the first field of the response.

    ``original`` is the last version in ``ORIGINAL_APIS``; None if the API is not there.
    A version above ``last`` is an error if ``checks_version``. Otherwise it is read and answered
    as ``last``, as 0.8.2.2 does. A request may have ``most_elements`` in its arrays.
    """

    key: int
    name: str
    request: Schema
    response: Schema
    last: int
    original: int | None
    checks_version: bool
    flexible: int
    most_elements: int

    @property
    def versions(self) -> range:
        return range(self.last + 1)

    def version_read(self, version: int) -> int:
        """The version in which a request of ``version`` is read; ProtocolError to close."""
        if version in self.versions:
            return version
        if self.checks_version:
            raise ProtocolError(f"Version {version} is invalid for {self.name}")
        return self.last


Apis = dict[int, Api]


def _api(
    key: int,
    name: str,
    schemas: ModuleType,
    last: int,
    original: int | None = None,
    most_elements: int = MANY,
    flexible: int = 0x7FFF,
) -> Api:
    """The classes of requests and responses have the name of the API."""
    request, response = getattr(schemas, f"{name}Request"), getattr(schemas, f"{name}Response")
    return Api(key, name, request, response, last, original, True, flexible, most_elements)


APIS: Apis = {
    api.key: api
    for api in (
        _api(0, "Produce", s, 8, 0),
        _api(1, "Fetch", s, 11, 0),
        _api(2, "Offsets", s, 5, 0),
        _api(3, "Metadata", s, 8, 0),
        _api(4, "LeaderAndIsr", s, 0, 0),
        _api(5, "StopReplica", s, 0, 0),
        _api(6, "UpdateMetadata", s, 0, 0),
        _api(7, "ControlledShutdown", s, 0, 0),
        _api(8, "OffsetCommit", s, 7, 1),
        _api(9, "OffsetFetch", s, 7, 1, flexible=6),
        _api(10, "ConsumerMetadata", s, 2, 0),
        _api(11, "JoinGroup", g, 5, most_elements=FEW),
        _api(12, "Heartbeat", g, 3, 0),
        _api(13, "LeaveGroup", g, 3, most_elements=FEW),
        _api(14, "SyncGroup", g, 3, most_elements=FEW),
        _api(15, "DescribeGroups", a, 4, 0, most_elements=FEW),
        _api(16, "ListGroups", g, 2),
        _api(SASL_HANDSHAKE, "SaslHandshake", later, 1),
        _api(API_VERSIONS, "ApiVersions", later, 3, flexible=3),
        _api(19, "CreateTopics", a, 4, 1),
        _api(20, "DeleteTopics", a, 3, 0),
        _api(21, "DeleteRecords", a, 1),
        _api(22, "InitProducerId", later, 4, flexible=2),
        _api(23, "OffsetForLeaderEpoch", later, 3),
        _api(24, "AddPartitionsToTxn", t, 5, most_elements=FEW, flexible=3),
        _api(25, "AddOffsetsToTxn", t, 3, flexible=3),
        _api(26, "EndTxn", t, 3, flexible=3),
        _api(27, "WriteTxnMarkers", t, 1, flexible=1),
        _api(28, "TxnOffsetCommit", t, 3, flexible=3),
        _api(29, "DescribeAcls", acls, 1),
        _api(30, "CreateAcls", acls, 1, most_elements=FEW),
        _api(31, "DeleteAcls", acls, 1, most_elements=FEW),
        _api(32, "DescribeConfigs", a, 3, 0, most_elements=FEW),
        _api(33, "AlterConfigs", a, 1, 0, most_elements=FEW),
        _api(35, "DescribeLogDirs", a, 4, flexible=2),
        _api(SASL_AUTHENTICATE, "SaslAuthenticate", later, 1),
        _api(37, "CreatePartitions", a, 1, 0),
        _api(42, "DeleteGroups", g, 1, most_elements=FEW),
        _api(43, "ElectLeaders", a, 1, most_elements=FEW),
        _api(44, "IncrementalAlterConfigs", a, 0, most_elements=FEW),
        _api(47, "OffsetDelete", g, 0),
        _api(50, "DescribeUserScramCredentials", scram, 0, flexible=0, most_elements=FEW),
        _api(51, "AlterUserScramCredentials", scram, 0, flexible=0, most_elements=FEW),
        _api(61, "DescribeProducers", t, 0, flexible=0, most_elements=FEW),
        _api(65, "DescribeTransactions", t, 0, flexible=0, most_elements=FEW),
        _api(66, "ListTransactions", t, 1, flexible=0, most_elements=FEW),
    )
}

_JOIN_GROUP_STUB = _api(11, "JoinGroupStub", g, 0, 0)._replace(name="JoinGroup")
# 0.8.2.2 checks no other; those after it are not of 0.8.2.2.
_CHECKS_VERSION = (8, *range(15, 48))

ORIGINAL_APIS: Apis = {
    key: api._replace(last=api.original, checks_version=key in _CHECKS_VERSION)
    for key, api in {**APIS, 11: _JOIN_GROUP_STUB}.items()
    if api.original is not None
}

_SENT_AS: dict[Schema, tuple[int, int, Struct]] = {
    api.request: (api.key, version, Struct(api.response, version))
    for api in (_JOIN_GROUP_STUB, *APIS.values())
    for version in (api.original or 0,)
} | {
    subclass: (key, version, Struct(APIS[key].response, version))
    for key, version, subclass in (
        (2, 1, s.ListOffsetsRequest),
        (8, 0, s.OffsetCommitRequestV0),
        (9, 0, s.OffsetFetchRequestV0),
        (19, 0, a.CreateTopicsRequestV0),
        (29, 1, acls.DescribeAclsRequest),
        (30, 1, acls.CreateAclsRequest),
        (31, 1, acls.DeleteAclsRequest),
        (32, 1, a.DescribeConfigsRequestV1),
    )
}


def served_by(apis: Apis, last_versions: dict[int, int]) -> Apis:
    """The part of ``apis`` for which there are handlers: ``last_versions`` by API key."""
    return {
        key: api._replace(last=min(api.last, last_versions[key]))
        for key, api in apis.items()
        if key in last_versions
    }


def find_api(apis: Apis, key: int) -> Api:
    """The API of a key; ProtocolError if it is not one of ``apis``."""
    api = apis.get(key)
    if api is None:
        raise ProtocolError(f"Wrong request type {key}")
    return api


def api_of(request: object) -> tuple[int, int, Struct]:
    """(key, version, layout of the response) with which clients of kafka08 send a request.

    The version is the highest that every broker with that API understands. The classes that end
    in V0 and V1 are for that version; ListOffsetsRequest is for version 1. Not every broker serves
    version 1.
    ``request`` may be a class. KeyError for anything else.
    """
    return _SENT_AS[request if isinstance(request, type) else type(request)]
