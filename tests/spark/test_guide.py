"""docs/spark.md names every option that there is, and none that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.spark.structured import source_options as module
from kafka08.spark.structured.source_options import source_options

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
BASE = {"kafka.bootstrap.servers": "one:9092", "subscribe": "t"}
VALUES = {
    "kafka.isolation.level": "read_committed",
    "assign": '{"t":[0]}',
    "startingOffsets": "earliest",
    "endingOffsets": "latest",
    "maxTriggerDelay": "15m",
    "failOnDataLoss": "true",
    "kafka.bootstrap.servers": "one:9092",
    "kafka.client.id": "me",
    "kafka.api.versions.request": "true",
    "includeHeaders": "true",
    "unknownOptions": "warn",
    "timeOfReading": "false",
    "startingOffsetsByTimestamp": '{"t":{"0":1}}',
    "endingOffsetsByTimestamp": '{"t":{"0":1}}',
    "startingOffsetsByTimestampStrategy": "latest",
}


def documented() -> list[str]:
    """The first cells of the source's table."""
    section = TEXT.partition("### The source")[2].partition("### The sink")[0]
    cells = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]


def test_every_option_is_documented() -> None:
    assert [name for name in module._KNOWN.values() if f"`{name}`" not in TEXT] == []
    assert len(documented()) > 15


@pytest.mark.parametrize("name", documented())
def test_every_documented_option_is_taken(name: str) -> None:
    options = {**BASE, "kafka.api.versions.request": "true", name: VALUES.get(name, "10")}
    if name in ("subscribePattern", "assign"):
        del options["subscribe"]
    source_options(options, streaming=False)


@pytest.mark.parametrize("name", sorted(module._REFUSED))
def test_what_is_refused_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(name)} has value 7, "):
        source_options({**BASE, name: "7"}, streaming=True)


def test_settings_of_dstreams_are_those_of_the_code() -> None:
    section = TEXT.partition("### The direct stream")[2].partition("### The stream of a group")[0]
    code = "".join(
        (ROOT / "kafka08" / "spark" / name).read_text(encoding="utf-8")
        for name in ("direct.py", "params.py", "streams.py")
    )
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    names = [name for cell in rows for name in re.findall(r"`([\w.]+[\w])[.*]*`", cell)]
    assert len(names) >= 7
    for name in names:
        assert name == "kafkaParams" or name in code, name
