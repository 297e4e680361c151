"""API keys and versions of 0.8.2.2, and the schema classes they stand for.

Mirrors kafka.api.RequestKeys, and adds the administrative APIs of later releases that kafka08
serves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka08.errors import ProtocolError
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import schemas as s

Schema = type[Any]


class Api(NamedTuple):
    """``versions`` maps a version to (request class, response class).

    0.8.2.2 tests the version of an API only if ``checks_version`` is set. Otherwise any unknown
    version is read and answered as the highest known one.
    """

    key: int
    name: str
    versions: dict[int, tuple[Schema, Schema]]
    checks_version: bool = False


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        Api(0, "Produce", {0: (s.ProduceRequest, s.ProduceResponse)}),
        Api(1, "Fetch", {0: (s.FetchRequest, s.FetchResponse)}),
        Api(2, "Offsets", {0: (s.OffsetsRequest, s.OffsetsResponse)}),
        Api(3, "Metadata", {0: (s.MetadataRequest, s.MetadataResponse)}),
        Api(4, "LeaderAndIsr", {0: (s.LeaderAndIsrRequest, s.LeaderAndIsrResponse)}),
        Api(5, "StopReplica", {0: (s.StopReplicaRequest, s.StopReplicaResponse)}),
        Api(6, "UpdateMetadata", {0: (s.UpdateMetadataRequest, s.UpdateMetadataResponse)}),
        Api(
            7,
            "ControlledShutdown",
            {0: (s.ControlledShutdownRequest, s.ControlledShutdownResponse)},
        ),
        Api(
            8,
            "OffsetCommit",
            {
                0: (s.OffsetCommitRequestV0, s.OffsetCommitResponse),
                1: (s.OffsetCommitRequestV1, s.OffsetCommitResponse),
            },
            checks_version=True,
        ),
        Api(
            9,
            "OffsetFetch",
            {
                0: (s.OffsetFetchRequestV0, s.OffsetFetchResponse),
                1: (s.OffsetFetchRequest, s.OffsetFetchResponse),
            },
        ),
        Api(10, "ConsumerMetadata", {0: (s.ConsumerMetadataRequest, s.ConsumerMetadataResponse)}),
        Api(11, "JoinGroup", {0: (s.JoinGroupRequest, s.JoinGroupResponse)}),
        Api(12, "Heartbeat", {0: (s.HeartbeatRequest, s.HeartbeatResponse)}),
        Api(
            15,
            "DescribeGroups",
            {0: (a.DescribeGroupsRequest, a.DescribeGroupsResponse)},
            checks_version=True,
        ),
        Api(
            19,
            "CreateTopics",
            {
                0: (a.CreateTopicsRequestV0, a.CreateTopicsResponseV0),
                1: (a.CreateTopicsRequest, a.CreateTopicsResponse),
            },
            checks_version=True,
        ),
        Api(
            20,
            "DeleteTopics",
            {0: (a.DeleteTopicsRequest, a.DeleteTopicsResponse)},
            checks_version=True,
        ),
        Api(
            32,
            "DescribeConfigs",
            {0: (a.DescribeConfigsRequest, a.DescribeConfigsResponse)},
            checks_version=True,
        ),
        Api(
            33,
            "AlterConfigs",
            {0: (a.AlterConfigsRequest, a.AlterConfigsResponse)},
            checks_version=True,
        ),
        Api(
            37,
            "CreatePartitions",
            {0: (a.CreatePartitionsRequest, a.CreatePartitionsResponse)},
            checks_version=True,
        ),
    )
}

_BY_REQUEST: dict[Schema, tuple[int, int, Schema]] = {
    request: (api.key, version, response)
    for api in APIS.values()
    for version, (request, response) in api.versions.items()
}


def request_schema(key: int, version: int) -> Schema:
    """The class of a request; ProtocolError if 0.8.2.2 would close the connection."""
    api = APIS.get(key)
    if api is None:
        raise ProtocolError(f"Wrong request type {key}")
    if version not in api.versions:
        if api.checks_version:
            raise ProtocolError(f"Version {version} is invalid for {api.name}")
        version = max(api.versions)
    return api.versions[version][0]


def api_of(request: Any) -> tuple[int, int, Schema]:
    """(key, version, response class) of a request or of its class. KeyError for anything else."""
    return _BY_REQUEST[request if isinstance(request, type) else type(request)]
