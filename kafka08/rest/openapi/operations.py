"""How an operation is described, and the descriptions of v1, v2 and what has no version.

They have the names of routes, from which paths, methods and types come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka08.rest.media import FORMATS, typed
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
    map_of,
    nullable,
    one_of,
    ref,
)


class QueryParameter(NamedTuple):
    name: str
    schema: Schema
    about: str
    needed: bool = False


class ApiOperation(NamedTuple):
    """``answer`` None: without content. ``statuses``: those of errors beside the common ones.
    ``formats``: those of records in the body. ``media``: the types of the answer if they are not
    negotiated."""

    about: str
    answer: Schema | None = None
    body: Schema | None = None
    needs_body: bool = True
    query: tuple[QueryParameter, ...] = ()
    status: int = 200
    statuses: tuple[int, ...] = ()
    formats: tuple[str, ...] = ()
    media: tuple[str, ...] = ()


_DATA: Schema = {"description": "base64 in the format binary, any value in the format json"}
_NO_ID: Schema = {**nullable(INT), "description": "null: there is no registry of schemas"}
_SCHEMAS: dict[str, Schema] = {
    "key_schema": nullable(TEXT),
    "key_schema_id": nullable(INT),
    "value_schema": nullable(TEXT),
    "value_schema_id": nullable(INT),
}
_PLACE: dict[str, Schema] = {"topic": TEXT, "partition": INT}
_PARTITIONS = asked({"partitions": list_of(ref("TopicPartition"), filled=True)})
_NEXT = list_of(
    asked({**_PLACE, "offset": LONG}, {"metadata": nullable(TEXT)}),
    filled=True,
)
_MAX_BYTES = QueryParameter("max_bytes", LONG, "The most bytes of keys and values to return.")
_NUMBER: Schema = {"anyOf": [INT, TEXT], "nullable": True}


def _records(*optional: str) -> Schema:
    fields = {"key": _DATA, "value": _DATA, "partition": nullable(INT)}
    record = asked({}, {name: fields[name] for name in optional})
    return asked({"records": list_of(record, filled=True)}, _SCHEMAS)


SCHEMAS: Mapping[str, Schema] = {
    "Error": answered(error_code=INT, message=TEXT),
    "TopicPartition": asked(_PLACE),
    "Replica": answered(broker=INT, leader=FLAG, in_sync=FLAG),
    "Partition": answered(partition=INT, leader=INT, replicas=list_of(ref("Replica"))),
    "Topic": answered(name=TEXT, configs=map_of(TEXT), partitions=list_of(ref("Partition"))),
    "Produced": answered(
        offsets=list_of(
            answered(
                partition=nullable(INT),
                offset=nullable(LONG),
                error_code=nullable(INT),
                error=nullable(TEXT),
            )
        ),
        key_schema_id=_NO_ID,
        value_schema_id=_NO_ID,
    ),
    "Message": answered(key=_DATA, value=_DATA, partition=INT, offset=LONG),
    "TopicMessage": answered(topic=TEXT, key=_DATA, value=_DATA, partition=INT, offset=LONG),
    "NewInstance": asked(
        {},
        {
            "id": nullable(TEXT),
            "name": nullable(TEXT),
            "format": nullable(TEXT),
            "auto.offset.reset": nullable(TEXT),
            "auto.commit.enable": {"anyOf": [FLAG, TEXT], "nullable": True},
            "fetch.min.bytes": _NUMBER,
            "consumer.request.timeout.ms": _NUMBER,
            "isolation.level": nullable(one_of(["read_committed", "read_uncommitted"])),
        },
    ),
}

OPERATIONS: Mapping[str, ApiOperation] = {
    "root.get": ApiOperation("Nothing, as a sign of life.", answered()),
    "root.post": ApiOperation("Nothing, as a sign of life.", answered(), ANYTHING, False),
    "brokers.list": ApiOperation("The ids of the live brokers.", answered(brokers=list_of(INT))),
    "topics.list": ApiOperation("The names of all topics.", list_of(TEXT)),
    "topic.get": ApiOperation("A topic, its own settings and its partitions.", ref("Topic")),
    "topic.produce": ApiOperation(
        "Write records to a topic.",
        ref("Produced"),
        _records("key", "value", "partition"),
        formats=FORMATS,
    ),
    "partitions.list": ApiOperation("The partitions of a topic.", list_of(ref("Partition"))),
    "partition.get": ApiOperation("A partition.", ref("Partition")),
    "partition.produce": ApiOperation(
        "Write records to a partition.",
        ref("Produced"),
        _records("key", "value"),
        formats=FORMATS,
    ),
    "partition.offsets": ApiOperation(
        "The first offset of a partition, and its end.",
        answered(beginning_offset=LONG, end_offset=LONG),
        statuses=(503,),
    ),
    "partition.consume": ApiOperation(
        "The messages of a partition from an offset on.",
        list_of(ref("Message")),
        query=(
            QueryParameter("offset", LONG, "Where to begin; 0 if it is not given."),
            QueryParameter("count", INT, "How many to return at most; 1 if it is not given."),
        ),
        statuses=(503,),
    ),
    "consumer.create": ApiOperation(
        "Make a consumer instance.",
        answered(instance_id=TEXT, base_uri=TEXT),
        ref("NewInstance"),
        False,
        statuses=(409, 429, 503),
        media=(typed(1), typed(2)),
    ),
    "consumer.delete": ApiOperation("End a consumer instance.", status=204),
    "consumer.topic.read": ApiOperation(
        "The next messages of a topic for an instance of v1.",
        list_of(ref("Message")),
        query=(_MAX_BYTES,),
        statuses=(409, 429),
    ),
    "consumer.subscribe": ApiOperation(
        "Subscribe an instance to topics, or to those that match a pattern.",
        body=asked(
            {},
            {"topics": nullable(list_of(TEXT, filled=True)), "topic_pattern": nullable(TEXT)},
        ),
        status=204,
        statuses=(409,),
    ),
    "consumer.subscription": ApiOperation(
        "The topics that an instance is subscribed to.", answered(topics=list_of(TEXT))
    ),
    "consumer.unsubscribe": ApiOperation("End the subscription.", status=204),
    "consumer.assign": ApiOperation(
        "Have an instance read these partitions.", body=_PARTITIONS, status=204, statuses=(409,)
    ),
    "consumer.assignment": ApiOperation(
        "The partitions of an instance.",
        answered(partitions=list_of(answered(topic=TEXT, partition=INT))),
    ),
    "consumer.seek-to-offset": ApiOperation(
        "Read on from these offsets.",
        body=asked({"offsets": _NEXT}),
        status=204,
        statuses=(409,),
    ),
    "consumer.seek-to-beginning": ApiOperation(
        "Read on from the first offsets.", body=_PARTITIONS, status=204, statuses=(409, 503)
    ),
    "consumer.seek-to-end": ApiOperation(
        "Read on from the ends.", body=_PARTITIONS, status=204, statuses=(409, 503)
    ),
    "consumer.records.read": ApiOperation(
        "The next messages for an instance of v2.",
        list_of(ref("TopicMessage")),
        query=(
            QueryParameter("timeout", INT, "How long to wait, in ms."),
            _MAX_BYTES,
        ),
        statuses=(409, 429),
    ),
    "consumer.commit": ApiOperation(
        "Store offsets: in v1 those of what was returned; in v2 these, or the same without a body. "
        "An answer of v2 is an empty list.",
        list_of(answered(topic=TEXT, partition=INT, consumed=LONG, committed=LONG)),
        asked({}, {"offsets": nullable(_NEXT)}),
        False,
    ),
    "consumer.committed": ApiOperation(
        "The stored offsets of the partitions that the body of the request names.",
        answered(offsets=list_of(answered(topic=TEXT, partition=INT, offset=LONG, metadata=TEXT))),
        _PARTITIONS,
    ),
    "metrics": ApiOperation(
        "Metrics for Prometheus.",
        TEXT,
        media=("text/plain", "application/openmetrics-text"),
    ),
    "openapi": ApiOperation("This document.", ANYTHING, media=("application/json",)),
}
