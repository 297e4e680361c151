"""KafkaProducer with api.versions.request: records have timestamps and may have headers."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import (
    ConfigError,
    MessageSizeTooLargeError,
    ProtocolError,
    UnsupportedForMessageFormatError,
)
from kafka08.message.scan import iter_entries
from kafka08.producer.errors import DeliveryTimeoutError, SerializationError
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.producer.fake_producer import ProducerDriver, failing, threaded

HEADERS = [("a", b"1"), ("b", None), ("a", b"")]


def timed(**settings: Any) -> ProducerDriver:
    return ProducerDriver(api_versions_request=True, **settings)


def test_a_record_has_the_time_of_its_send_unless_it_brings_one() -> None:
    driver = timed(linger_ms=1000)
    driver.producer.partitions_for("one")  # which waits for metadata
    sent_at = driver.now_ms
    first = driver.producer.send("one", b"now")
    driver.pass_time(7)
    driver.producer.send("one", b"later", b"k")
    driver.producer.send("one", b"then", timestamp=5, headers=HEADERS)
    driver.pass_time(1000)
    driver.run()
    assert first.result().offset == 0
    found = driver.cluster.messages("one", 0)
    assert [(m.value, m.timestamp) for m in found] == [
        (b"now", sent_at),
        (b"later", sent_at + 7),
        (b"then", 5),
    ]
    assert [m.headers for m in found] == [(), (), tuple(HEADERS)]
    assert [m.key for m in found] == [None, b"k", None]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(codec: str) -> None:
    driver = timed(compression_type=codec)
    driver.producer.send("one", b"x" * 100, headers=HEADERS)
    driver.run()
    (found,) = driver.cluster.messages("one", 0)
    assert (found.magic, found.value, found.headers) == (2, b"x" * 100, tuple(HEADERS))


def test_several_batches_of_a_partition_are_one_record_batch() -> None:
    driver = timed(batch_size=64)
    for number in range(9):
        headers = HEADERS if number in (4, 5) else None
        driver.producer.send("one", b"%d" % number, b"k" if number == 7 else None, headers=headers)
    driver.run()
    (request,) = driver.produced
    data = request.topics[0].partitions[0].message_set
    assert len(list(iter_entries(data))) == 1
    found = driver.cluster.messages("one", 0)
    assert [m.value for m in found] == [b"%d" % number for number in range(9)]
    assert [m.offset for m in found if m.headers] == [4, 5]
    assert [m.offset for m in found if m.key] == [7]


def test_a_batch_refused_for_its_size_is_sent_again_in_parts() -> None:
    driver = timed(batch_size=100, retries=1)
    driver.cluster.script = failing(MessageSizeTooLargeError.code)
    futures = [driver.producer.send("one", b"x" * 70) for _ in range(3)]
    for _ in range(4):
        driver.run()
    assert [future.result().offset for future in futures] == [0, 1, 2]
    counts = [
        len(list(iter_entries(r.topics[0].partitions[0].message_set))) for r in driver.produced
    ]
    assert counts == [1, 1, 1, 1]


def test_send_many() -> None:
    driver = timed()
    driver.producer.send_many("one", [b"a", b"b"])
    driver.producer.send_many(
        "one", [b"c", b"d"], timestamps=[3, None], headers=[None, HEADERS], keys=[b"k", None]
    )
    driver.run()
    found = driver.cluster.messages("one", 0)
    now = driver.now_ms
    assert [(m.value, m.timestamp, m.headers) for m in found] == [
        (b"a", now, ()),
        (b"b", now, ()),
        (b"c", 3, ()),
        (b"d", now, tuple(HEADERS)),
    ]


def test_send_many_to_the_partitions_of_keys() -> None:
    driver = timed()
    keys = [b"k%d" % number for number in range(20)]
    stamps = list(range(20))
    heads = [[("n", key)] for key in keys]
    driver.producer.send_many("t", keys, keys, timestamps=stamps, headers=heads)
    driver.run()
    found = driver.cluster.messages("t", 0) + driver.cluster.messages("t", 1)
    assert sorted((m.timestamp, m.value, m.headers) for m in found) == [
        (number, key, (("n", key),)) for number, key in enumerate(keys)
    ]


@pytest.mark.parametrize("given", [{"timestamp": 1}, {"headers": HEADERS}, {"headers": []}])
def test_without_the_setting_nothing_is_dropped_silently(given: dict[str, Any]) -> None:
    driver = ProducerDriver()
    with pytest.raises(UnsupportedForMessageFormatError, match=r"api\.versions\.request=true"):
        driver.producer.send("one", b"v", **given)
    name = {"timestamp": "timestamps"}.get(*given, "headers")
    with pytest.raises(UnsupportedForMessageFormatError):
        driver.producer.send_many("one", [b"v"], **{name: [None]})
    assert not driver.produced


def test_bad_timestamps_and_headers() -> None:
    driver = timed()
    with pytest.raises(ValueError, match="Invalid timestamp: -1"):
        driver.producer.send("one", b"v", timestamp=-1)
    with pytest.raises(SerializationError):
        driver.producer.send("one", b"v", headers=[("a", 1)])  # type: ignore[list-item]


def test_headers_count_as_bytes_of_the_record() -> None:
    driver = timed(max_request_size=1000)
    future = driver.producer.send("one", b"v", headers=[("a", b"x" * 1000)])
    assert isinstance(future.exception(), MessageSizeTooLargeError)


def test_a_broker_that_does_not_answer_is_tried_until_the_delivery_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver = timed(delivery_timeout_ms=1000)
    driver.sender._connect = _refused
    future = driver.producer.send("one", b"v")
    driver.write()
    assert "an original" in caplog.text
    driver.pass_time(2000)
    driver.sender.sweep()
    assert isinstance(future.exception(), DeliveryTimeoutError)


def _refused(node: int) -> Any:
    raise ProtocolError("an original")


def test_bytes_without_the_setting_are_those_of_0_8() -> None:
    cluster = FakeCluster()
    cluster.create("one", 1)
    producer, _ = threaded(cluster)
    with producer:
        producer.send("one", b"v", b"k").result(5)
    (request,) = cluster.sent(schemas.ProduceRequest)
    assert bytes(request.topics[0].partitions[0].message_set)[16] == 0


def test_settings() -> None:
    servers = {"bootstrap.servers": "h:1"}
    assert not KafkaProducerConfig.of(servers).api_versions_request
    with pytest.raises(ConfigError, match=r"needs api\.versions\.request"):
        KafkaProducerConfig.of({**servers, "compression.type": "zstd"})
