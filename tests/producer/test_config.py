from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.producer.config import ProducerConfig

BASE = {"metadata.broker.list": "b0:9090"}


def test_defaults() -> None:
    config = ProducerConfig.from_properties(BASE)
    assert (config.producer_type, config.request_required_acks) == ("sync", 0)
    assert config.key_serializer_class == config.serializer_class
    assert config.compression_codec == 0


@pytest.mark.parametrize(("text", "codec"), [("gzip", 1), ("SNAPPY", 2), ("3", 3), ("0", 0)])
def test_codecs(text: str, codec: int) -> None:
    config = ProducerConfig.from_properties({**BASE, "compression.codec": text})
    assert config.compression_codec == codec


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("request.required.acks", "2"),
        ("request.timeout.ms", "0"),
        ("producer.type", "maybe"),
        ("compression.codec", "zstd"),
    ],
)
def test_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        ProducerConfig.from_properties({**BASE, key: value})


def test_batch_has_to_fit_the_queue() -> None:
    small = {**BASE, "queue.buffering.max.messages": "10"}
    assert ProducerConfig.from_properties(small).batch_num_messages == 200
    with pytest.raises(ConfigError, match=r"batch\.num\.messages"):
        ProducerConfig.from_properties({**small, "producer.type": "async"})
