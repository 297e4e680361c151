"""API keys and versions, and the schema classes they stand for.

``APIS`` is every API and version that kafka08 can serve. ``ORIGINAL_APIS`` is what it serves with
``api.versions.enable`` off: the keys and versions of kafka.api.RequestKeys in 0.8.2.2, and some
administrative APIs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka08.errors import ProtocolError
from kafka08.protocol import acl_schemas as acls
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import later_schemas as later
from kafka08.protocol import schemas as s
from kafka08.protocol import scram_schemas as scram
from kafka08.protocol.types import Struct

Schema = type[Any]

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
    original: int | None = None
    checks_version: bool = True
    flexible: int = 0x7FFF
    most_elements: int = MANY

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

APIS: Apis = {
    api.key: api
    for api in (
        Api(0, "Produce", s.ProduceRequest, s.ProduceResponse, 8, 0),
        Api(1, "Fetch", s.FetchRequest, s.FetchResponse, 11, 0),
        Api(2, "Offsets", s.OffsetsRequest, s.OffsetsResponse, 5, 0),
        Api(3, "Metadata", s.MetadataRequest, s.MetadataResponse, 8, 0),
        Api(4, "LeaderAndIsr", s.LeaderAndIsrRequest, s.LeaderAndIsrResponse, 0, 0),
        Api(5, "StopReplica", s.StopReplicaRequest, s.StopReplicaResponse, 0, 0),
        Api(6, "UpdateMetadata", s.UpdateMetadataRequest, s.UpdateMetadataResponse, 0, 0),
        Api(
            7, "ControlledShutdown", s.ControlledShutdownRequest, s.ControlledShutdownResponse, 0, 0
        ),
        Api(8, "OffsetCommit", s.OffsetCommitRequest, s.OffsetCommitResponse, 7, 1),
        Api(9, "OffsetFetch", s.OffsetFetchRequest, s.OffsetFetchResponse, 5, 1),
        Api(10, "ConsumerMetadata", s.ConsumerMetadataRequest, s.ConsumerMetadataResponse, 2, 0),
        Api(11, "JoinGroup", g.JoinGroupRequest, g.JoinGroupResponse, 5, most_elements=FEW),
        Api(12, "Heartbeat", g.HeartbeatRequest, g.HeartbeatResponse, 3, 0),
        Api(13, "LeaveGroup", g.LeaveGroupRequest, g.LeaveGroupResponse, 3, most_elements=FEW),
        Api(14, "SyncGroup", g.SyncGroupRequest, g.SyncGroupResponse, 3, most_elements=FEW),
        Api(
            15,
            "DescribeGroups",
            a.DescribeGroupsRequest,
            a.DescribeGroupsResponse,
            4,
            0,
            most_elements=FEW,
        ),
        Api(16, "ListGroups", g.ListGroupsRequest, g.ListGroupsResponse, 2),
        Api(
            SASL_HANDSHAKE,
            "SaslHandshake",
            later.SaslHandshakeRequest,
            later.SaslHandshakeResponse,
            1,
        ),
        Api(
            API_VERSIONS,
            "ApiVersions",
            later.ApiVersionsRequest,
            later.ApiVersionsResponse,
            3,
            flexible=3,
        ),
        Api(19, "CreateTopics", a.CreateTopicsRequest, a.CreateTopicsResponse, 4, 1),
        Api(20, "DeleteTopics", a.DeleteTopicsRequest, a.DeleteTopicsResponse, 3, 0),
        Api(21, "DeleteRecords", a.DeleteRecordsRequest, a.DeleteRecordsResponse, 1),
        Api(22, "InitProducerId", later.InitProducerIdRequest, later.InitProducerIdResponse, 1),
        Api(
            23,
            "OffsetForLeaderEpoch",
            later.OffsetForLeaderEpochRequest,
            later.OffsetForLeaderEpochResponse,
            3,
        ),
        Api(29, "DescribeAcls", acls.DescribeAclsRequest, acls.DescribeAclsResponse, 1),
        Api(
            30, "CreateAcls", acls.CreateAclsRequest, acls.CreateAclsResponse, 1, most_elements=FEW
        ),
        Api(
            31, "DeleteAcls", acls.DeleteAclsRequest, acls.DeleteAclsResponse, 1, most_elements=FEW
        ),
        Api(
            32,
            "DescribeConfigs",
            a.DescribeConfigsRequest,
            a.DescribeConfigsResponse,
            3,
            0,
            most_elements=FEW,
        ),
        Api(
            33,
            "AlterConfigs",
            a.AlterConfigsRequest,
            a.AlterConfigsResponse,
            1,
            0,
            most_elements=FEW,
        ),
        Api(35, "DescribeLogDirs", a.DescribeLogDirsRequest, a.DescribeLogDirsResponse, 1),
        Api(
            SASL_AUTHENTICATE,
            "SaslAuthenticate",
            later.SaslAuthenticateRequest,
            later.SaslAuthenticateResponse,
            1,
        ),
        Api(37, "CreatePartitions", a.CreatePartitionsRequest, a.CreatePartitionsResponse, 1, 0),
        Api(
            42, "DeleteGroups", g.DeleteGroupsRequest, g.DeleteGroupsResponse, 1, most_elements=FEW
        ),
        Api(
            43, "ElectLeaders", a.ElectLeadersRequest, a.ElectLeadersResponse, 1, most_elements=FEW
        ),
        Api(
            44,
            "IncrementalAlterConfigs",
            a.IncrementalAlterConfigsRequest,
            a.IncrementalAlterConfigsResponse,
            0,
            most_elements=FEW,
        ),
        Api(47, "OffsetDelete", g.OffsetDeleteRequest, g.OffsetDeleteResponse, 0),
        Api(
            50,
            "DescribeUserScramCredentials",
            scram.DescribeUserScramCredentialsRequest,
            scram.DescribeUserScramCredentialsResponse,
            0,
            flexible=0,
            most_elements=FEW,
        ),
        Api(
            51,
            "AlterUserScramCredentials",
            scram.AlterUserScramCredentialsRequest,
            scram.AlterUserScramCredentialsResponse,
            0,
            flexible=0,
            most_elements=FEW,
        ),
    )
}

_JOIN_GROUP_STUB = Api(
    11, "JoinGroup", g.JoinGroupStubRequest, g.JoinGroupStubResponse, 0, 0, checks_version=False
)
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
