from __future__ import annotations

import pytest

from kafka08.rest.errors import RestError
from kafka08.rest.media import FORMATS, Media, chosen, media_of, offers, request_media, typed

METADATA = offers([1, 2])
MESSAGES = offers([1], FORMATS)


def test_names_of_types() -> None:
    assert typed(1) == "application/vnd.kafka.v1+json"
    assert typed(2, "json") == "application/vnd.kafka.json.v2+json"
    assert media_of("application/vnd.kafka.binary.v1+json")[1:] == ("binary", 1)
    assert media_of("Application/vnd.kafka+json")[1:] == ("", 0)
    assert media_of("application/json")[1:] == ("", 0)


@pytest.mark.scenario("ops-28")
@pytest.mark.parametrize(
    ("accept", "name"),
    [
        (None, "application/vnd.kafka.v1+json"),
        ("", "application/vnd.kafka.v1+json"),
        ("*/*", "application/vnd.kafka.v1+json"),
        ("application/*", "application/vnd.kafka.v1+json"),
        (
            "application/vnd.kafka.v1+json;q=0.8, application/vnd.kafka+json;q=0.9, "
            "application/json;q=0.7",
            "application/vnd.kafka+json",
        ),
        ("application/json", "application/json"),
        ("application/vnd.kafka.v2+json", "application/vnd.kafka.v2+json"),
        ("application/vnd.kafka.v1+json;q=0, */*", "application/vnd.kafka.v2+json"),
        ("text/plain, */*;q=0.1", "application/vnd.kafka.v1+json"),
    ],
)
def test_the_type_of_metadata(accept: str | None, name: str) -> None:
    found = chosen(accept, METADATA)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("accept", ["text/plain", "application/vnd.kafka.v3+json", "*/*;q=0"])
def test_types_that_are_not_served(accept: str) -> None:
    assert chosen(accept, METADATA) is None


@pytest.mark.parametrize(
    ("accept", "name", "data_format"),
    [
        (None, "application/vnd.kafka.binary.v1+json", "binary"),
        ("*/*", "application/vnd.kafka.binary.v1+json", "binary"),
        ("application/vnd.kafka.json.v1+json", "application/vnd.kafka.json.v1+json", "json"),
        ("application/json", "application/json", ""),
    ],
)
def test_the_type_of_messages(accept: str | None, name: str, data_format: str) -> None:
    found = chosen(accept, MESSAGES)
    assert found is not None
    assert (found.name, found.format) == (name, data_format)


def test_request_types() -> None:
    assert request_media("", [1]) == Media("")
    assert request_media("application/octet-stream", [1]).version == 0
    assert request_media("application/vnd.kafka.json.v1+json; charset=UTF-8", [1]).format == "json"


@pytest.mark.scenario("ops-28")
@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/vnd.kafka.v2+json",
        "application/json; charset=latin-1",
        "application/vnd.kafka.v1",
    ],
)
def test_request_types_that_are_not_taken(content_type: str) -> None:
    with pytest.raises(RestError) as caught:
        request_media(content_type, [1])
    assert (caught.value.status, caught.value.code) == (415, 415)
    assert caught.value.message == "HTTP 415 Unsupported Media Type"


@pytest.mark.scenario("ops-41")
def test_avro_is_refused_with_the_reason() -> None:
    with pytest.raises(RestError) as caught:
        request_media("application/vnd.kafka.avro.v1+json", [1])
    assert (caught.value.status, caught.value.code) == (415, 415)
    assert caught.value.message.startswith("Avro needs a registry of schemas, which is not here")
