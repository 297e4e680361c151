"""The descriptions of v3, by the names of its routes."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.rest.openapi.operations import ApiOperation, QueryParameter
from kafka08.rest.openapi.schemas import (
    ANYTHING,
    FLAG,
    INT,
    LONG,
    TEXT,
    Schema,
    answered,
    asked,
    list_of,
    nullable,
    one_of,
    ref,
)
from kafka08.security.acl_filters import PatternFilter
from kafka08.security.acls import Operation, PatternType, Permission, ResourceType

_LINK = ref("Relationship")
_VALUE: Schema = {"description": "a string, a number or a boolean"}
_OPERATION = nullable(one_of(["SET", "DELETE"]))
_CHANGES = asked(
    {
        "data": list_of(
            asked({"name": TEXT}, {"value": _VALUE, "operation": _OPERATION}), filled=True
        )
    },
    {"validate_only": nullable(FLAG)},
)
_NEW_VALUE = asked({"value": _VALUE})
_PART = nullable(asked({"type": TEXT}, {"data": ANYTHING}))
_SIZE = nullable(answered(type=one_of(["BINARY", "JSON", "STRING"]), size=LONG))
_TIME: Schema = {"type": "string", "format": "date-time"}


def _kind(kind: str) -> dict[str, Schema]:
    return {"kind": one_of([kind]), "metadata": ref("Metadata"), "cluster_id": TEXT}


def _both(kind: str, **fields: Schema) -> dict[str, Schema]:
    """A resource, and the collection of it."""
    listed = answered(
        kind=one_of([f"{kind}List"]),
        metadata=ref("CollectionMetadata"),
        data=list_of(ref(kind)),
    )
    return {kind: answered(**_kind(kind), **fields), f"{kind}List": listed}


_CONFIG: dict[str, Schema] = {
    "name": TEXT,
    "value": nullable(TEXT),
    "is_default": FLAG,
    "is_read_only": FLAG,
    "is_sensitive": FLAG,
    "source": TEXT,
    "synonyms": list_of(answered(name=TEXT, value=nullable(TEXT), source=TEXT)),
}
_TP: dict[str, Schema] = {"topic_name": TEXT, "partition_id": INT}
_GROUP: dict[str, Schema] = {"consumer_group_id": TEXT}


def _rule(
    types: Schema, patterns: Schema, operations: Schema, permissions: Schema
) -> dict[str, Schema]:
    return {
        "resource_type": types,
        "resource_name": TEXT,
        "pattern_type": patterns,
        "principal": TEXT,
        "host": TEXT,
        "operation": operations,
        "permission": permissions,
    }


_RULE = _rule(
    one_of(ResourceType.__members__),
    one_of(PatternType.__members__),
    one_of(Operation.__members__),
    one_of(Permission.__members__),
)


def _rule_filter(*needed: str) -> tuple[QueryParameter, ...]:
    words = (ResourceType, PatternFilter, Operation, Permission)
    schemas = [one_of(dict.fromkeys(["ANY", *each.__members__])) for each in words]
    return tuple(
        QueryParameter(name, schema, "Of the rules.", name in needed)
        for name, schema in _rule(*schemas).items()
    )


_PRODUCED = answered(
    error_code=INT,
    cluster_id=TEXT,
    **_TP,
    offset=LONG,
    timestamp=nullable(_TIME),
    key=_SIZE,
    value=_SIZE,
)

SCHEMAS_V3: Mapping[str, Schema] = {
    "Relationship": answered(related=TEXT),
    "Metadata": answered(self=TEXT, resource_name=TEXT),
    "CollectionMetadata": answered(self=TEXT, next=nullable(TEXT)),
    **_both(
        "KafkaCluster",
        controller=nullable(_LINK),
        acls=_LINK,
        brokers=_LINK,
        broker_configs=_LINK,
        topics=_LINK,
        consumer_groups=_LINK,
        partition_reassignments=_LINK,
    ),
    **_both("KafkaBroker", broker_id=INT, host=TEXT, port=INT, rack=nullable(TEXT), configs=_LINK),
    **_both("KafkaBrokerConfig", broker_id=INT, **_CONFIG),
    **_both("KafkaClusterConfig", config_type=one_of(["BROKER"]), **_CONFIG),
    **_both(
        "KafkaTopic",
        topic_name=TEXT,
        is_internal=FLAG,
        replication_factor=INT,
        partitions_count=INT,
        partitions=_LINK,
        configs=_LINK,
        partition_reassignments=_LINK,
    ),
    **_both("KafkaTopicConfig", topic_name=TEXT, **_CONFIG),
    **_both("KafkaPartition", **_TP, leader=nullable(_LINK), replicas=_LINK, reassignment=_LINK),
    **_both("KafkaReplica", **_TP, broker_id=INT, is_leader=FLAG, is_in_sync=FLAG, broker=_LINK),
    **_both(
        "KafkaReassignment",
        **_TP,
        adding_replicas=list_of(INT),
        removing_replicas=list_of(INT),
        replicas=_LINK,
    ),
    **_both(
        "KafkaConsumerGroup",
        **_GROUP,
        is_simple=FLAG,
        partition_assignor=TEXT,
        state=TEXT,
        coordinator=nullable(_LINK),
        consumers=_LINK,
        lag_summary=_LINK,
    ),
    **_both(
        "KafkaConsumer",
        **_GROUP,
        consumer_id=TEXT,
        instance_id=nullable(TEXT),
        client_id=TEXT,
        assignments=_LINK,
    ),
    **_both(
        "KafkaConsumerAssignment", **_GROUP, consumer_id=TEXT, **_TP, partition=_LINK, lag=_LINK
    ),
    **_both(
        "KafkaConsumerLag",
        **_GROUP,
        **_TP,
        current_offset=LONG,
        log_end_offset=LONG,
        lag=LONG,
        consumer_id=TEXT,
        instance_id=nullable(TEXT),
        client_id=TEXT,
    ),
    "KafkaConsumerGroupLagSummary": answered(
        **_kind("KafkaConsumerGroupLagSummary"),
        **_GROUP,
        max_lag_consumer_id=TEXT,
        max_lag_instance_id=nullable(TEXT),
        max_lag_client_id=TEXT,
        max_lag_topic_name=TEXT,
        max_lag_partition_id=INT,
        max_lag=LONG,
        total_lag=LONG,
    ),
    **_both("KafkaAcl", **_RULE),
    "KafkaAcl": answered(**{**_kind("KafkaAcl"), "metadata": answered(self=TEXT)}, **_RULE),
    "NewAcl": asked(_RULE),
    "NewRecord": asked(
        {},
        {
            "partition_id": nullable(INT),
            "headers": nullable(list_of(asked({"name": TEXT}, {"value": nullable(TEXT)}))),
            "key": _PART,
            "value": _PART,
            "timestamp": nullable(_TIME),
        },
    ),
    "ProducedRecord": {"anyOf": [_PRODUCED, ref("Error")]},
}


def _configs(name: str, of: str, kind: str) -> dict[str, ApiOperation]:
    return {
        f"v3.{name}.configs.list": ApiOperation(f"The settings of {of}.", ref(f"{kind}List")),
        f"v3.{name}.configs.get": ApiOperation(f"A setting of {of}.", ref(kind)),
        f"v3.{name}.configs.update": ApiOperation(
            f"Set a setting of {of}.", body=_NEW_VALUE, status=204
        ),
        f"v3.{name}.configs.reset": ApiOperation(
            f"Remove a setting of {of}, for which its default holds then.", status=204
        ),
        f"v3.{name}.configs.alter": ApiOperation(
            f"Set and remove settings of {of}.", body=_CHANGES, status=204
        ),
    }


OPERATIONS_V3: Mapping[str, ApiOperation] = {
    "v3.clusters.list": ApiOperation("The one cluster.", ref("KafkaClusterList")),
    "v3.clusters.get": ApiOperation("The cluster.", ref("KafkaCluster")),
    "v3.brokers.list": ApiOperation("The live brokers.", ref("KafkaBrokerList")),
    "v3.brokers.get": ApiOperation("A live broker.", ref("KafkaBroker")),
    "v3.brokers.configs.list": ApiOperation(
        "The settings of each live broker.", ref("KafkaBrokerConfigList")
    ),
    **_configs("broker", "a broker", "KafkaBrokerConfig"),
    **_configs("cluster", "all brokers together", "KafkaClusterConfig"),
    "v3.topics.list": ApiOperation("The topics.", ref("KafkaTopicList")),
    "v3.topics.create": ApiOperation(
        "Make a topic.",
        ref("KafkaTopic"),
        asked(
            {"topic_name": TEXT},
            {
                "partitions_count": nullable(INT),
                "replication_factor": nullable(INT),
                "replicas_assignments": nullable(
                    list_of(asked({"partition_id": INT, "broker_ids": list_of(INT, filled=True)}))
                ),
                "configs": nullable(list_of(asked({"name": TEXT, "value": _VALUE}))),
                "validate_only": nullable(FLAG),
            },
        ),
        status=201,
    ),
    "v3.topics.get": ApiOperation("A topic.", ref("KafkaTopic")),
    "v3.topics.delete": ApiOperation("Delete a topic.", status=204),
    "v3.topics.update": ApiOperation(
        "Add partitions to a topic.", ref("KafkaTopic"), asked({"partitions_count": INT})
    ),
    **_configs("topic", "a topic", "KafkaTopicConfig"),
    "v3.partitions.list": ApiOperation("The partitions of a topic.", ref("KafkaPartitionList")),
    "v3.partitions.get": ApiOperation("A partition.", ref("KafkaPartition")),
    "v3.replicas.list": ApiOperation("The replicas of a partition.", ref("KafkaReplicaList")),
    "v3.replicas.get": ApiOperation("A replica.", ref("KafkaReplica")),
    "v3.reassignments.get": ApiOperation("How a partition moves.", ref("KafkaReassignment")),
    "v3.reassignments.list": ApiOperation(
        "How the partitions of a topic move, of all topics with - for its name.",
        ref("KafkaReassignmentList"),
    ),
    "v3.acls.list": ApiOperation(
        "The access rules that a filter takes.", ref("KafkaAclList"), query=_rule_filter()
    ),
    "v3.acls.create": ApiOperation("Add an access rule.", body=ref("NewAcl"), status=201),
    "v3.acls.create.batch": ApiOperation(
        "Add access rules. Others than one that is refused may have been added.",
        body=asked({"data": list_of(ref("NewAcl"), filled=True)}),
        status=201,
    ),
    "v3.acls.delete": ApiOperation(
        "Delete the access rules that a filter takes.",
        answered(data=list_of(ref("KafkaAcl"))),
        query=_rule_filter("resource_type", "pattern_type", "operation", "permission"),
    ),
    "v3.groups.list": ApiOperation("The consumer groups.", ref("KafkaConsumerGroupList")),
    "v3.groups.get": ApiOperation("A consumer group.", ref("KafkaConsumerGroup")),
    "v3.consumers.list": ApiOperation("The members of a group.", ref("KafkaConsumerList")),
    "v3.consumers.get": ApiOperation("A member of a group.", ref("KafkaConsumer")),
    "v3.consumers.assignments": ApiOperation(
        "The partitions of a member.", ref("KafkaConsumerAssignmentList")
    ),
    "v3.lags.list": ApiOperation("The lags of a group.", ref("KafkaConsumerLagList")),
    "v3.lags.get": ApiOperation("The lag of a group in a partition.", ref("KafkaConsumerLag")),
    "v3.lags.summary": ApiOperation(
        "The largest lag of a group, and the sum.", ref("KafkaConsumerGroupLagSummary")
    ),
    "v3.records.produce": ApiOperation(
        "Write a record, or many that follow one another in the body. The answer has an object for "
        "each, on lines of their own; its status is that of the record if there is one alone.",
        ref("ProducedRecord"),
        ref("NewRecord"),
    ),
}
