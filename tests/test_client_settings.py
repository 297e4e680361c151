"""Every client setting of 0.8.2.2 is taken, with its default, and read by somebody.

golden/configs.csv lists the settings of that release: scope, name, type, default, range.
"""

from __future__ import annotations

import csv
import logging
import re
from pathlib import Path

import pytest

from kafka08.consumer.config import ConsumerConfig
from kafka08.errors import ConfigError
from kafka08.producer.config import ProducerConfig
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.settings.settings import Settings

ROOT = Path(__file__).parent.parent
SOURCES = {
    "consumer": ["consumer"],
    "producer-scala": ["producer/producer.py", "producer/event_handler.py"],
    "producer-java": [
        "producer/kafka_producer.py",
        "producer/kafka_config.py",
        "producer/accumulator.py",
        "producer/encoding.py",
        "producer/metadata.py",
        "producer/sender.py",
    ],
}
CLASSES: dict[str, type[Settings]] = {
    "consumer": ConsumerConfig,
    "producer-scala": ProducerConfig,
    "producer-java": KafkaProducerConfig,
}
REQUIRED = {
    "consumer": {"group.id": "g", "zookeeper.connect": "z"},
    "producer-scala": {"metadata.broker.list": "b:1"},
    "producer-java": {"bootstrap.servers": "b:1"},
}
# Arguments of KafkaProducer, which takes them as settings too.
SERIALIZERS = {"key.serializer", "value.serializer"}
# Of SyncProducer, which sends to one broker: a Channel here. ProducerConfig warns of them.
ONE_BROKER = {"host", "port"}
# Defaults that the list gives in words -> the value here.
WORDS = {"(empty)": "", "(null)": "None", "true": "True", "false": "False"}
DERIVED = {
    "client.id": "g",
    "rebalance.backoff.ms": "2000",
    "zookeeper.connection.timeout.ms": "6000",
    "dual.commit.enabled": "False",
    "key.serializer.class": "kafka.serializer.DefaultEncoder",
}


def listed() -> list[tuple[str, dict[str, str]]]:
    with (ROOT / "tests" / "golden" / "configs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = [(row["scope"], row) for row in rows if row["scope"] in CLASSES]
    shared = [
        r for r in rows if r["scope"] == "zookeeper" and "consumer" in r["meaning_in_few_words"]
    ]
    return found + [("consumer", row) for row in shared]


LISTED = listed()
IDS = [f"{scope}-{row['name']}" for scope, row in LISTED]


def attribute_of(scope: str, key: str) -> str | None:
    for attribute, described in CLASSES[scope].settings().items():
        if described.key == key:
            return attribute
    return None


def test_the_list_is_whole() -> None:
    counts = {scope: sum(s == scope for s, _ in LISTED) for scope in CLASSES}
    assert counts == {"consumer": 29, "producer-scala": 21, "producer-java": 23}


@pytest.mark.parametrize(("scope", "row"), LISTED, ids=IDS)
def test_it_is_known(scope: str, row: dict[str, str]) -> None:
    if row["name"] not in SERIALIZERS | ONE_BROKER:
        assert attribute_of(scope, row["name"]) is not None


@pytest.mark.parametrize(("scope", "row"), LISTED, ids=IDS)
def test_its_default_is_that_of_0822(scope: str, row: dict[str, str]) -> None:
    attribute = attribute_of(scope, row["name"])
    if attribute is None or "required" in row["default"]:
        return
    config = CLASSES[scope].from_properties(REQUIRED[scope])
    default = row["default"]
    expected = WORDS.get(default, default)
    if default.startswith("(") and default not in WORDS:
        expected = DERIVED[row["name"]]
    value = getattr(config, attribute)
    found = ",".join(value) if isinstance(value, tuple) else str(value)
    assert found == expected or (row["type"], expected, value) == ("codec", "none", 0)


@pytest.mark.parametrize(("scope", "row"), LISTED, ids=IDS)
def test_a_bad_value_is_refused_by_name(scope: str, row: dict[str, str]) -> None:
    bad = {"int": "many", "long": "1.5", "short": "x", "boolean": "yes", "codec": "rar"}
    if row["type"] in bad and attribute_of(scope, row["name"]):
        with pytest.raises(ConfigError, match=f"{re.escape(row['name'])} has value .* not"):
            CLASSES[scope].from_properties({**REQUIRED[scope], row["name"]: bad[row["type"]]})


@pytest.mark.parametrize(("scope", "row"), LISTED, ids=IDS)
def test_somebody_reads_it(scope: str, row: dict[str, str]) -> None:
    attribute = attribute_of(scope, row["name"])
    # It is only where rebalance.backoff.ms comes from, in 0.8.2.2 too.
    if attribute is None or attribute == "zookeeper_sync_time_ms":
        return
    if (scope, attribute) == ("producer-java", "compression_type"):
        attribute = "codec_of"  # which goes by the topic too
    if (scope, attribute) == ("producer-java", "metadata_fetch_timeout_ms"):
        attribute = "block_s"  # for those who do not set max.block.ms
    files: list[Path] = []
    for source in SOURCES[scope]:
        path = ROOT / "kafka08" / source
        files += [path] if path.is_file() else sorted(path.glob("*.py"))
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert re.search(rf"config\.{attribute}\b", text)


@pytest.mark.parametrize("scope", ["consumer", "producer-scala"])
@pytest.mark.parametrize("key", ["host", "port", "no.such.setting"])
def test_what_nobody_knows_is_warned_of(
    scope: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    CLASSES[scope].from_properties({**REQUIRED[scope], key: "1", "external.thing": "1"})
    warned = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert warned == [f"Property {key} is not valid"]


def test_what_the_new_producer_does_not_know(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"bootstrap.servers": "b:1", "no.such": 1, "metric.reporters": "a.b.C"}
    KafkaProducer({**settings, **dict.fromkeys(SERIALIZERS, "builtins.bytes")}).close(0)
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == [
        "The configuration no.such = 1 was supplied but isn't a known config.",
        "metric.reporters names JVM classes, which are not run: use metrics() instead",
    ]
    with pytest.raises(ConfigError, match="no setting no_such"):
        KafkaProducer({"bootstrap.servers": "b:1"}, no_such=1)
