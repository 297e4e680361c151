"""The parameters that the old API took."""

from __future__ import annotations

import pickle

import pytest

from kafka08.client.security import PLAIN
from kafka08.spark import params
from kafka08.spark.errors import JobError
from kafka08.spark.params import SourceParams, endpoints_in, source_params
from kafka08.spark.planner import Range
from tests.fakes import transactional_log
from tests.spark.cluster import ONE, T, cluster_of, stamped


@pytest.mark.scenario("spark-2")
@pytest.mark.parametrize("key", ["metadata.broker.list", "bootstrap.servers"])
def test_parameters(key: str) -> None:
    found = source_params(
        {key: "a:1,b:2", "auto.offset.reset": "Smallest", "fetch.message.max.bytes": "77"}
    )
    assert found.endpoints == (("a", 1), ("b", 2))
    assert found.from_smallest
    assert found.fetch_bytes == 77
    for reset in ("largest", "earliest", ""):
        assert not source_params({key: "a:1", "auto.offset.reset": reset}).from_smallest


@pytest.mark.scenario("spark-input-7")
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "Must specify metadata.broker.list or bootstrap.servers"),
        ({"metadata.broker.list": "a"}, r"Broker not in the correct format of <host>:<port> \[a\]"),
        (
            {"metadata.broker.list": "a:1", "fetch.message.max.bytes": "x"},
            "fetch.message.max.bytes",
        ),
        (
            {"metadata.broker.list": "a:1", "security.protocol": "TLS"},
            "security.protocol TLS is not one of",
        ),
        (
            {"metadata.broker.list": "a:1", "fetch.message.max.bytes": "0"},
            "fetch.message.max.bytes",
        ),
    ],
)
def test_bad_parameters(given: dict[str, str], text: str) -> None:
    with pytest.raises(JobError, match=text):
        source_params(given)


def test_security_is_for_executors_too() -> None:
    assert source_params({"bootstrap.servers": "a:1"}).security == PLAIN
    found = source_params({"bootstrap.servers": "a:1", "security.protocol": "SSL"})
    assert found.security.security_protocol == "SSL"
    assert pickle.loads(pickle.dumps(found)) == found


def test_brokers_with_blanks_and_addresses_in_brackets() -> None:
    assert endpoints_in(" a:1 ,, [::1]:2,") == (("a", 1), ("::1", 2))
    assert endpoints_in("") == ()
    for word in ("a", ":1", "a:b", "a:-1"):
        with pytest.raises(JobError, match="host"):
            endpoints_in(f"ok:1,{word}")


def test_the_option_that_named_the_brokers() -> None:
    """The first counts if both are there, as long as it says something."""
    both = {"metadata.broker.list": "a:1", "bootstrap.servers": "b:2"}
    assert source_params(both)[0] == (("a", 1),)
    assert source_params(both).option == "metadata.broker.list"
    found = source_params({**both, "metadata.broker.list": ""})
    assert (found.endpoints, found.option) == ((("b", 2),), "bootstrap.servers")


def test_connections_end_with_the_use_of_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of({T: stamped([1])})
    monkeypatch.setattr(params, "Channel", cluster.channel)
    source = SourceParams(((ONE.host, ONE.port),), client_id="job", timeout_ms=7)
    with source.offset_reader() as offsets:
        assert offsets.latest([T]) == {T: 1}
        assert any(channel.connected for channel in cluster.channels)
    assert not any(channel.connected for channel in cluster.channels)
    with source.range_reader(0) as ranges:
        assert [len(part) for part in ranges.read(Range(*T, 0, 1))] == [1]
        assert any(channel.connected for channel in cluster.channels)
    assert not any(channel.connected for channel in cluster.channels)
    assert {name for name, _ in cluster.called} == {"job"}
    assert {each["timeout_ms"] for each in cluster.options} == {7}


def test_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = cluster_of({T: b""})
    transactional_log.fill(cluster, T)
    monkeypatch.setattr(params, "Channel", cluster.channel)
    given = {"bootstrap.servers": f"{ONE.host}:{ONE.port}"}
    for level, end in (("read_committed", transactional_log.STABLE), ("", transactional_log.END)):
        source = source_params({**given, "isolation.level": level} if level else given)
        with source.offset_reader() as offsets:
            assert offsets.latest([T]) == {T: end}
        with source.range_reader(0) as ranges:
            found = [m.offset for part in ranges.read(Range(*T, 0, end)) for m in part]
            assert (len(found) == len(transactional_log.COMMITTED)) == bool(level)
        assert cluster.options[-1]["api_versions"] == bool(level)
    with pytest.raises(JobError, match=r"isolation\.level has value committed"):
        source_params({**given, "isolation.level": "committed"})
