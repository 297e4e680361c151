from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kafka08.metrics import client_names as names
from kafka08.metrics.clients import ClientCollector, Count
from kafka08.metrics.meters import Histogram
from kafka08.metrics.registry import Series, series


class SizesClient:
    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.sizes = Histogram()
        self.read = 0

    def series(self) -> Iterator[Series]:
        self.read += 1
        yield series(names.MESSAGES_SENT, Count(3), self.client_id)
        yield series(names.MESSAGES_SENT, Count(2), self.client_id, "t")
        yield series(names.SEND_SIZES, self.sizes, self.client_id)


def shown(collector: ClientCollector) -> dict[tuple[str, str, str], float]:
    """Values by name, client and topic."""
    registry = CollectorRegistry()
    registry.register(collector)
    text = generate_latest(registry).decode()
    assert text.count("# TYPE kafka_producer_producertopicmetrics_messages_total") <= 1
    return {
        (sample.name, sample.labels["clientId"], sample.labels.get("topic", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.scenario("ops-19")
def test_clients_share_a_family_and_come_and_go() -> None:
    one, two = SizesClient("one"), SizesClient('a "quoted\\" {é}')
    collector = ClientCollector(one)
    collector.add(two)
    name = "kafka_producer_producertopicmetrics_messages_total"
    assert shown(collector) == {
        (name, client, topic): count
        for client in (one.client_id, two.client_id)
        for topic, count in (("", 3), ("t", 2))
    }
    collector.remove(one)
    assert {client for _, client, _ in shown(collector)} == {two.client_id}


@pytest.mark.scenario("ops-19")
def test_a_distribution_appears_with_its_first_value() -> None:
    client = SizesClient("c")
    client.sizes.update(100)
    found = shown(ClientCollector(client))
    assert found["kafka_producer_producerrequestmetrics_producerrequestsize_sum", "c", ""] == 100


def test_registering_reads_no_client() -> None:
    client = SizesClient("c")
    CollectorRegistry().register(ClientCollector(client))
    assert client.read == 0
