"""kafka08.console.migration.reports."""

from __future__ import annotations

import json

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.console.brokers.http_pages import BrokerPages
from kafka08.console.cluster_state import BrokerView
from kafka08.console.config import ConsoleConfig
from kafka08.console.migration import reports
from kafka08.console.migration.reports import decode
from kafka08.network.peer import Peer
from kafka08.server.requests.heard import Speaker, Spoken
from kafka08.server.requests.spoken import described
from tests.console.migration.uses import NEW, OLD, fetch, page, produce, report
from tests.fakes.cluster import FakeCluster
from tests.fakes.http_pages import ServedPages, answer
from tests.fakes.runtime import FakeRuntime

REPORT = report(produce(OLD, 0, "t"), fetch(NEW, 4, "t"), broker_id=2, forgotten=3)


def test_a_page_and_what_it_means() -> None:
    assert decode(page(REPORT)) == REPORT


def test_a_broker_says_it_in_the_same_names() -> None:
    peer = Peer("10.0.0.5:1")
    speaker = Speaker("new", peer.host, peer.principal, ("librdkafka", "2.5"))
    about = json.loads(page(report()))
    about["heard"] = described([(Spoken(speaker, 0, 3, "t", 2), 1_000)])
    [use] = decode(json.dumps(about).encode()).uses
    assert use == produce(NEW, 3, "t", 2)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        page(REPORT).replace(b'"version": 0', b'"version": "0"'),
        page(REPORT).replace(b'"last_ms": 1000', b'"last_ms": null'),
        page(REPORT).replace(b'"topic"', b'"other"'),
        page(REPORT).replace(b'"forgotten": 3', b'"forgotten": "x"'),
        json.dumps(json.loads(page(REPORT)) | {"heard": [1]}).encode(),
        json.dumps(json.loads(page(REPORT)) | {"heard": None}).encode(),
    ],
)
def test_what_is_not_a_page_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="its answer is not a page of clients"):
        decode(body)


def test_all_brokers_are_asked_and_errors_are_kept() -> None:
    runtime = FakeRuntime()
    pages = ServedPages(runtime)
    config = ConsoleConfig(
        zookeeper_connect="zk", broker_http=tuple(f"{id_}=b{id_}:9404" for id_ in range(1, 5))
    )
    cluster = ClusterClient([], runtime=runtime, channel=FakeCluster().channel)
    pages.answers["b1", 9404] = answer(b"x")
    pages.answers["b2", 9404] = pages.answers["b3", 9404] = answer(page(REPORT))
    live = [BrokerView(id_, True) for id_ in (4, 3, 2, 1)]
    found = reports.read(live, BrokerPages(cluster, config, runtime), runtime)
    assert found.brokers == {2: REPORT}
    assert found.errors == {
        1: "its answer is not a page of clients",
        3: "the page at its address is of broker 2",
        4: "refused",
    }
    assert list(found.errors) == [1, 3, 4]
    assert pages.asked[0][1].startswith(b"GET /clients ")
    assert len(runtime.tasks) == 4
