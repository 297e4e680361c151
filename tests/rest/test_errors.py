from __future__ import annotations

import pytest

from kafka08.client.admin import AdminNotServedError, RemoteError
from kafka08.client.cluster import NoBrokerError
from kafka08.errors import (
    ConfigError,
    LaterCode,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
)
from kafka08.rest.errors import illegal_state, kafka_error, plain
from zk.errors import ZkConnectionError


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ZkConnectionError("gone"), 50001, "Zookeeper error: gone"),
        (OffsetOutOfRangeError("far"), 50002, "Kafka error: far"),
        (NotLeaderForPartitionError("moved"), 50003, "Retriable Kafka error: moved"),
        (ConnectionResetError("reset"), 50003, "Retriable Kafka error: reset"),
        (ConfigError("bad"), 50002, "Kafka error: bad"),
        (NoBrokerError("none"), 50003, "Retriable Kafka error: none"),
        (RemoteError(-1, "a fault", ""), 50002, "Kafka error: a fault"),
        (RemoteError(7, "late", ""), 50003, "Retriable Kafka error: late"),
    ],
)
def test_errors_of_zookeeper_and_brokers(error: Exception, code: int, text: str) -> None:
    found = kafka_error(error)
    assert (found.status, found.code, found.message) == (500, code, text)
    assert found.body == {"error_code": code, "message": text}


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RemoteError(LaterCode.CLUSTER_AUTHORIZATION_FAILED, "text", ""), 403, 40301),
        (RemoteError(LaterCode.SECURITY_DISABLED, "text", ""), 400, 40002),
        (RemoteError(LaterCode.INVALID_CONFIG, "text", ""), 400, 40002),
        (AdminNotServedError("text"), 400, 40002),
    ],
)
def test_refusals_of_brokers(error: Exception, status: int, code: int) -> None:
    found = kafka_error(error)
    assert (found.status, found.code, found.message) == (status, code, "text")


def test_errors_of_the_api() -> None:
    assert illegal_state("x").message == "Illegal state: x"
    assert plain(404, "x").code == 404
