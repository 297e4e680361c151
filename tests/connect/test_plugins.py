from __future__ import annotations

import pytest

from kafka08.connect.converters import Converter, StringConverter
from kafka08.connect.file import FileStreamSink, FileStreamSource
from kafka08.connect.interface import Connector
from kafka08.connect.plugins import CONNECTORS, CONVERTERS, find
from kafka08.errors import ConfigError


@pytest.mark.parametrize(
    "name",
    [
        "FileStreamSource",
        "FileStreamSourceConnector",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "kafka08.connect.file.FileStreamSource",
    ],
)
def test_names_of_a_connector(name: str) -> None:
    assert find("connector.class", name, CONNECTORS, Connector) is FileStreamSource


def test_names_of_a_converter() -> None:
    for name in ("string", "org.apache.kafka.connect.storage.StringConverter"):
        assert find("key.converter", name, CONVERTERS, Converter) is StringConverter


@pytest.mark.parametrize(
    "name", ["", "x", "no.such.Thing", "os.path", "os.sep", "json.JSONDecoder"]
)
def test_what_is_no_connector(name: str) -> None:
    with pytest.raises(ConfigError, match=r"connector\.class has value"):
        find("connector.class", name, CONNECTORS, Connector)


def test_another_base_class() -> None:
    with pytest.raises(ConfigError, match="not a Converter"):
        find("key.converter", "FileStreamSink", CONNECTORS, Converter)
    assert find("x", "FileStreamSink", CONNECTORS, Connector) is FileStreamSink
