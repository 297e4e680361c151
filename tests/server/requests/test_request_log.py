"""kafka-request.log: the original's lines at the original's levels, and no work without them."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.common import TRACE
from kafka08.protocol import group_schemas, schemas
from kafka08.protocol.schemas import BrokerEndpoint, PartitionStateInfo, RequestHeader
from kafka08.server.requests import request_log
from kafka08.server.requests.dispatch import Dispatcher
from kafka08.server.requests.request_log import describe
from tests.fakes.runtime import FakeRuntime

ADDRESS = "10.0.0.7:40001"
OPENING = "Version: 0; CorrelationId: 5; ClientId: c"
STATE = PartitionStateInfo("t", 0, 3, 1, 2, [1, 2], 4, [1, 2])
PRINTED = (
    "(LeaderAndIsrInfo:(Leader:1,ISR:1,2,LeaderEpoch:2,ControllerEpoch:3),"
    "ReplicationFactor:2),AllReplicas:1,2)"
)


def header(key: int = 0) -> RequestHeader:
    return RequestHeader(key, 0, 5, "c")


@pytest.fixture
def levels() -> Iterator[Any]:
    """Sets the level of a logger, and takes it back in the end."""
    touched: list[tuple[logging.Logger, int]] = []

    def set_level(logger: logging.Logger, level: int) -> None:
        touched.append((logger, logger.level))
        logger.setLevel(level)

    yield set_level
    for logger, level in touched:
        logger.setLevel(level)


class SlowHandler:
    """Answers ConsumerMetadata after a quarter of a second."""

    key = 10
    last_version = 0

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime = runtime

    def handle(self, header: RequestHeader, request: Any) -> Any:
        self.runtime.clock.now += 0.25
        return schemas.ConsumerMetadataResponse(0, 1, "h", 9092)

    def failure(self, header: RequestHeader, request: Any, code: int) -> Any:
        raise AssertionError(code)


def served(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int, str]]:
    runtime = FakeRuntime()
    frame = struct.pack(">hhih1sh1s", 10, 0, 5, 1, b"c", 1, b"g")
    assert Dispatcher(runtime, [SlowHandler(runtime)]).handle(memoryview(frame), ADDRESS)
    return caplog.record_tuples


def test_a_request_has_a_line_when_it_begins_and_one_when_it_is_answered(
    levels: Any, caplog: pytest.LogCaptureFixture
) -> None:
    levels(request_log.apis_logger, TRACE)
    levels(request_log.request_logger, TRACE)
    text = f"Name: ConsumerMetadataRequest; {OPENING}; Group: g"
    assert served(caplog) == [
        (
            "kafka.server.KafkaApis",
            TRACE,
            f"[KafkaApi] Handling request: {text} from client: /{ADDRESS}",
        ),
        (
            "kafka.request.logger",
            TRACE,
            f"Completed request:{text} from client /{ADDRESS};totalTime:250,requestQueueTime:0,"
            "localTime:250,remoteTime:0,responseQueueTime:0,sendTime:0",
        ),
    ]


def test_at_debug_only_the_completed_line(levels: Any, caplog: pytest.LogCaptureFixture) -> None:
    levels(request_log.apis_logger, logging.INFO)
    levels(request_log.request_logger, logging.DEBUG)
    [(name, level, _)] = served(caplog)
    assert (name, level) == ("kafka.request.logger", logging.DEBUG)


def test_nothing_is_looked_at_at_the_shipped_levels(
    levels: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels(request_log.apis_logger, logging.INFO)
    levels(request_log.request_logger, logging.WARNING)
    for name in ("begun", "completed", "describe"):
        monkeypatch.delattr(request_log, name)
    assert served(caplog) == []


@pytest.mark.parametrize(
    ("request_", "brief", "details"),
    [
        (
            schemas.ProduceRequest(
                -1,
                500,
                [
                    schemas.ProduceTopic(
                        "t",
                        [
                            schemas.ProducePartition(0, memoryview(b"123")),
                            schemas.ProducePartition(1, memoryview(b"")),
                        ],
                    )
                ],
            ),
            f"Name: ProducerRequest; {OPENING}; RequiredAcks: -1; AckTimeoutMs: 500 ms",
            "; TopicAndPartition: [t,0] -> 3,[t,1] -> 0",
        ),
        (
            schemas.FetchRequest(
                -1, 100, 1, [schemas.FetchTopic("t", [schemas.FetchPartition(0, 7, 1024)])]
            ),
            f"Name: FetchRequest; {OPENING}; ReplicaId: -1; MaxWait: 100 ms; MinBytes: 1 bytes",
            "; RequestInfo: [t,0] -> PartitionFetchInfo(7,1024)",
        ),
        (
            schemas.OffsetsRequest(
                -1, [schemas.OffsetsTopic("t", [schemas.OffsetsPartition(0, -1, 2)])]
            ),
            f"Name: OffsetRequest; {OPENING}; ReplicaId: -1",
            "; RequestInfo: [t,0] -> PartitionOffsetRequestInfo(-1,2)",
        ),
        (
            schemas.MetadataRequest(["t", "u"]),
            f"Name: TopicMetadataRequest; {OPENING}",
            "; Topics: t,u",
        ),
        (
            schemas.StopReplicaRequest(1, 3, True, [schemas.StopReplicaPartition("t", 0)]),
            f"Name: StopReplicaRequest; {OPENING}; DeletePartitions: true; ControllerId: 1; "
            "ControllerEpoch: 3",
            "; Partitions: [t,0]",
        ),
        (
            schemas.LeaderAndIsrRequest(1, 3, [STATE], [BrokerEndpoint(1, "h", 9092)]),
            "Name:LeaderAndIsrRequest;Version:0;Controller:1;ControllerEpoch:3;CorrelationId:5;"
            "ClientId:c;Leaders:id:1,host:h,port:9092",
            f";PartitionState:(t,0) -> {PRINTED}",
        ),
        (
            schemas.UpdateMetadataRequest(1, 3, [STATE], [BrokerEndpoint(1, "h", 9092)]),
            "Name:UpdateMetadataRequest;Version:0;Controller:1;ControllerEpoch:3;CorrelationId:5;"
            "ClientId:c;AliveBrokers:id:1,host:h,port:9092",
            f";PartitionState:[t,0] -> {PRINTED}",
        ),
        (
            schemas.ControlledShutdownRequest(2),
            "Name: ControlledShutdownRequest; Version: 0; CorrelationId: 5; BrokerId: 2",
            "",
        ),
        (
            schemas.OffsetCommitRequest(
                "g",
                [schemas.OffsetCommitTopic("t", [schemas.OffsetCommitPartition(0, 9, "")])],
            ),
            f"Name: OffsetCommitRequest; {OPENING}; GroupId: g; GroupGenerationId: -1; "
            "ConsumerId: ",
            "; RequestInfo: [t,0] -> OffsetAndMetadata[9,NO_METADATA]",
        ),
        (
            schemas.OffsetCommitRequest(
                "g",
                [schemas.OffsetCommitTopic("t", [schemas.OffsetCommitPartition(0, 9, "x", 1000)])],
                4,
                "m",
            ),
            f"Name: OffsetCommitRequest; {OPENING}; GroupId: g; GroupGenerationId: 4; "
            "ConsumerId: m",
            "; RequestInfo: [t,0] -> OffsetAndMetadata[9,x,1000]",
        ),
        (
            schemas.OffsetFetchRequest("g", [schemas.OffsetFetchTopic("t", [0, 1])]),
            f"Name: OffsetFetchRequest; {OPENING}; GroupId: g",
            "; RequestInfo: [t,0],[t,1]",
        ),
        (
            group_schemas.HeartbeatRequest("g", 1, "m"),
            f"Name: Heartbeat; {OPENING}; Body: {{group=g,generation=1,member_id=m}}",
            "",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, tuple) else "",
)
def test_requests_are_described_in_the_originals_words(
    request_: Any, brief: str, details: str
) -> None:
    assert describe(header(), request_, details=False) == brief
    assert describe(header(), request_, details=True) == brief + details


def test_a_client_without_a_name() -> None:
    nameless = RequestHeader(10, 0, 5, None)
    text = describe(nameless, schemas.ConsumerMetadataRequest("g"), details=True)
    assert "; ClientId: null; " in text
