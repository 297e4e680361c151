from __future__ import annotations

import json
import sys

import pytest

from kafka08.connect.converters import ByteArrayConverter, JsonConverter, StringConverter
from kafka08.connect.interface import DataError
from kafka08.errors import ConfigError

STRING = StringConverter({}, "value.converter")
BYTES = ByteArrayConverter({}, "value.converter")
JSON = JsonConverter({"schemas.enable": "false"}, "value.converter")
ENVELOPE = JsonConverter({}, "value.converter")


@pytest.mark.parametrize("converter", [STRING, BYTES, JSON, ENVELOPE])
def test_null_stays_null(converter: StringConverter) -> None:
    assert converter.to_bytes(None) is None
    assert converter.from_bytes(None) is None


@pytest.mark.parametrize("data", [b"", "ä".encode(), b"\xff\x00"])
def test_strings_keep_any_bytes(data: bytes) -> None:
    assert STRING.to_bytes(STRING.from_bytes(memoryview(data))) == data
    assert BYTES.to_bytes(BYTES.from_bytes(memoryview(data))) == data


@pytest.mark.parametrize(
    "value", [1, 1.5, True, "x", [1, 2], {"a": 1, "b": {"c": ["d"]}}, {"n": None}]
)
def test_json_there_and_back(value: object) -> None:
    assert JSON.from_bytes(JSON.to_bytes(value)) == value
    assert ENVELOPE.from_bytes(ENVELOPE.to_bytes(value)) == value


def test_the_envelope_tells_bytes_from_strings() -> None:
    value = {"data": b"\xff", "list": [b"a"], "text": "b"}
    assert ENVELOPE.from_bytes(ENVELOPE.to_bytes(value)) == value


def test_the_envelope_of_a_struct() -> None:
    found = json.loads(ENVELOPE.to_bytes({"id": 7}) or b"")
    field = {"field": "id", "type": "int64", "optional": True}
    assert found["schema"] == {"type": "struct", "fields": [field], "optional": False}
    assert found["payload"] == {"id": 7}


@pytest.mark.parametrize("data", [b"{", b"\xff", b"1", b'{"payload": 1}', b'{"a": 1}'])
def test_what_is_no_envelope(data: bytes) -> None:
    with pytest.raises(DataError):
        ENVELOPE.from_bytes(data)


@pytest.mark.parametrize(
    "document",
    [
        {"schema": {"type": "bytes"}, "payload": 1},
        {"schema": {"type": "struct"}, "payload": {}},
        {"schema": {"type": "struct", "fields": [{"field": "a"}]}, "payload": 1},
        {"schema": {"type": "array", "items": {"type": "bytes"}}, "payload": 5},
    ],
)
def test_a_payload_that_does_not_fit(document: object) -> None:
    with pytest.raises(DataError):
        ENVELOPE.from_bytes(json.dumps(document).encode())


def test_values_without_a_place_in_json() -> None:
    for converter in (JSON, ENVELOPE):
        with pytest.raises(DataError):
            converter.to_bytes({"a": object()})


def test_bytes_only() -> None:
    with pytest.raises(DataError):
        BYTES.to_bytes(1)


def test_schemas_enable_is_a_boolean() -> None:
    with pytest.raises(ConfigError, match=r"key\.converter\.schemas\.enable has value maybe"):
        JsonConverter({"schemas.enable": "maybe"}, "key.converter")


@pytest.mark.parametrize("converter", [JSON, ENVELOPE])
def test_json_nested_too_deep_is_bad_data(converter: JsonConverter) -> None:
    depth = 100_000  # some versions of Python take several thousands
    nested = b"[" * depth + b"]" * depth
    for data in (nested, b'{"schema":null,"payload":%b}' % nested):
        with pytest.raises(DataError, match=r"Converting bytes to JSON failed|schemas\.enable"):
            converter.from_bytes(data)
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    with pytest.raises(DataError, match="Converting to JSON failed"):
        converter.to_bytes(value)


def test_a_schema_nested_too_deep_is_bad_data() -> None:
    # JSON itself takes this much; from 3.12 on it does not count Python's frames
    depth = 400 if sys.version_info < (3, 12) else 2000
    schema = b'{"type":"array","items":' * depth + b"null" + b"}" * depth
    payload = b"[" * depth + b"]" * depth
    data = b'{"schema":%b,"payload":%b}' % (schema, payload)

    def below(frames: int) -> object:
        return below(frames - 1) if frames else ENVELOPE.from_bytes(data)

    with pytest.raises(DataError, match="Converting bytes to JSON failed"):
        below(sys.getrecursionlimit() - 500)
