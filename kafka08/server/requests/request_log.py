"""Lines of kafka-request.log: every request as it begins (TRACE) and once it is answered (DEBUG).

The texts are those of kafka.server.KafkaApis and of ``describe`` in kafka.api. At TRACE they name
each partition. Knows nothing of how requests are served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from kafka08.common import TRACE, TopicPartition
from kafka08.protocol import group_schemas, schemas
from kafka08.protocol.schemas import Message, PartitionStateInfo, RequestHeader
from kafka08.protocol.types import fields_of

apis_logger = logging.getLogger("kafka.server.KafkaApis")
request_logger = logging.getLogger("kafka.request.logger")

Field = tuple[str, object]


def is_wanted() -> bool:
    """Whether either logger would write a line; asked once, when a broker is built."""
    return apis_logger.isEnabledFor(TRACE) or request_logger.isEnabledFor(logging.DEBUG)


def begun(header: RequestHeader, request: Message, address: str) -> None:
    """``request`` of the client at ``address`` is about to be served."""
    if apis_logger.isEnabledFor(TRACE):
        text = describe(header, request, details=True)
        apis_logger.log(TRACE, "[KafkaApi] Handling request: %s from client: /%s", text, address)


def completed(header: RequestHeader, request: Message, address: str, seconds: float) -> None:
    """``request`` was served within ``seconds``, all of which count as local time."""
    details = request_logger.isEnabledFor(TRACE)
    if details or request_logger.isEnabledFor(logging.DEBUG):
        millis = int(seconds * 1000)
        request_logger.log(
            TRACE if details else logging.DEBUG,
            "Completed request:%s from client /%s;totalTime:%d,requestQueueTime:0,localTime:%d,"
            "remoteTime:0,responseQueueTime:0,sendTime:0",
            *(describe(header, request, details), address, millis, millis),
        )


def describe(header: RequestHeader, request: Message, details: bool) -> str:
    """``request`` on one line; its partitions only with ``details``. Messages are never shown."""
    kind = type(request)
    of_controller = kind in (schemas.LeaderAndIsrRequest, schemas.UpdateMetadataRequest)
    between, after = (";", ":") if of_controller else ("; ", ": ")
    name = _NAMES.get(kind, kind.__name__)
    fields = _FIELDS.get(kind)
    shown: list[Field] = [
        ("Name", name if fields else name.removesuffix("Request")),
        ("Version", header.api_version),
    ]
    if of_controller:
        shown.append(("Controller", request.controller_id))
        shown.append(("ControllerEpoch", request.controller_epoch))
    shown.append(("CorrelationId", header.correlation_id))
    if kind is not schemas.ControlledShutdownRequest:
        shown.append(("ClientId", "null" if header.client_id is None else header.client_id))
    if fields:
        shown += fields(request, details)
    else:
        shown.append(_body(request, header.api_version))
    return between.join(f"{key}{after}{value}" for key, value in shown)


def _body(request: Message, version: int) -> Field:
    names = [field.name for field in fields_of(request.__class__, version)]
    return "Body", f"{{{','.join(f'{name}={getattr(request, name)}' for name in names)}}}"


def _partitions(topics: Iterable[Message]) -> Iterator[tuple[TopicPartition, Message]]:
    for topic in topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.topic, partition.partition), partition


def _map(pairs: Iterable[tuple[object, object]]) -> str:
    return ",".join(f"{key} -> {value}" for key, value in pairs)


def _list(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


def _produce(request: schemas.ProduceRequest, details: bool) -> Iterator[Field]:
    yield "RequiredAcks", request.acks
    yield "AckTimeoutMs", f"{request.timeout_ms} ms"
    if details:
        sizes = ((key, len(each.message_set)) for key, each in _partitions(request.topics))
        yield "TopicAndPartition", _map(sizes)


def _fetch(request: schemas.FetchRequest, details: bool) -> Iterator[Field]:
    yield "ReplicaId", request.replica_id
    yield "MaxWait", f"{request.max_wait_ms} ms"
    yield "MinBytes", f"{request.min_bytes} bytes"
    if details:
        asked = (
            (key, f"PartitionFetchInfo({each.offset},{each.max_bytes})")
            for key, each in _partitions(request.topics)
        )
        yield "RequestInfo", _map(asked)


def _offsets(request: schemas.OffsetsRequest, details: bool) -> Iterator[Field]:
    yield "ReplicaId", request.replica_id
    if details:
        asked = (
            (key, f"PartitionOffsetRequestInfo({each.time},{each.max_num_offsets})")
            for key, each in _partitions(request.topics)
        )
        yield "RequestInfo", _map(asked)


def _metadata(request: schemas.MetadataRequest, details: bool) -> Iterator[Field]:
    if details:
        yield "Topics", _list(request.topics or ())


def _leader_and_isr(request: schemas.LeaderAndIsrRequest, details: bool) -> Iterator[Field]:
    yield "Leaders", _brokers(request.leaders)
    if details:
        states = ((f"({each[0]},{each[1]})", _state(each)) for each in request.partitions)
        yield "PartitionState", _map(states)


def _update_metadata(request: schemas.UpdateMetadataRequest, details: bool) -> Iterator[Field]:
    yield "AliveBrokers", _brokers(request.live_brokers)
    if details:
        states = ((TopicPartition(*each[:2]), _state(each)) for each in request.partitions)
        yield "PartitionState", _map(states)


def _brokers(brokers: Iterable[schemas.BrokerEndpoint]) -> str:
    return _list(f"id:{each.node_id},host:{each.host},port:{each.port}" for each in brokers)


def _state(state: PartitionStateInfo) -> str:
    return (
        f"(LeaderAndIsrInfo:(Leader:{state.leader},ISR:{_list(state.isr)},"
        f"LeaderEpoch:{state.leader_epoch},ControllerEpoch:{state.controller_epoch}),"
        f"ReplicationFactor:{len(state.replicas)}),AllReplicas:{_list(state.replicas)})"
    )


def _stop_replica(request: schemas.StopReplicaRequest, details: bool) -> Iterator[Field]:
    yield "DeletePartitions", str(request.delete_partitions).lower()
    yield "ControllerId", request.controller_id
    yield "ControllerEpoch", request.controller_epoch
    if details:
        yield "Partitions", _list(TopicPartition(*each) for each in request.partitions)


def _controlled_shutdown(
    request: schemas.ControlledShutdownRequest, details: bool
) -> Iterator[Field]:
    yield "BrokerId", request.broker_id


def _commit(request: schemas.OffsetCommitRequest, details: bool) -> Iterator[Field]:
    yield "GroupId", request.group
    yield "GroupGenerationId", request.generation
    yield "ConsumerId", request.member_id
    if details:
        commits = ((key, _committed(each)) for key, each in _partitions(request.topics))
        yield "RequestInfo", _map(commits)


def _committed(commit: schemas.OffsetCommitPartition) -> str:
    time = "" if commit.timestamp == schemas.NO_TIMESTAMP else f",{commit.timestamp}"
    return f"OffsetAndMetadata[{commit.offset},{commit.metadata or 'NO_METADATA'}{time}]"


def _offset_fetch(request: schemas.OffsetFetchRequest, details: bool) -> Iterator[Field]:
    yield "GroupId", request.group
    if details:
        topics = request.topics or ()
        yield "RequestInfo", _list(TopicPartition(t.topic, p) for t in topics for p in t.partitions)


def _consumer_metadata(request: schemas.ConsumerMetadataRequest, details: bool) -> Iterator[Field]:
    yield "Group", request.group


_FIELDS: dict[type[Message], Callable[[Message, bool], Iterator[Field]]] = {
    schemas.ProduceRequest: _produce,
    schemas.FetchRequest: _fetch,
    schemas.OffsetsRequest: _offsets,
    schemas.MetadataRequest: _metadata,
    schemas.LeaderAndIsrRequest: _leader_and_isr,
    schemas.StopReplicaRequest: _stop_replica,
    schemas.UpdateMetadataRequest: _update_metadata,
    schemas.ControlledShutdownRequest: _controlled_shutdown,
    schemas.OffsetCommitRequest: _commit,
    schemas.OffsetFetchRequest: _offset_fetch,
    schemas.ConsumerMetadataRequest: _consumer_metadata,
}

# The original's class names where they differ.
_NAMES: dict[type[Message], str] = {
    schemas.ProduceRequest: "ProducerRequest",
    schemas.OffsetsRequest: "OffsetRequest",
    schemas.MetadataRequest: "TopicMetadataRequest",
    group_schemas.JoinGroupStubRequest: "JoinGroupRequest",
}
