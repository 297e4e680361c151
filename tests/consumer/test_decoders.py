from __future__ import annotations

import pytest

from kafka08.consumer.decoders import decoder_named, string_decoder
from kafka08.errors import ConfigError


def test_by_name() -> None:
    assert decoder_named("kafka.serializer.DefaultDecoder") is None
    text = decoder_named("kafka.serializer.StringDecoder", "ISO-8859-1")
    assert text is not None and text(b"gr\xf6\xdfe") == "größe"
    assert decoder_named("builtins.int") is int


def test_what_is_no_text_is_replaced() -> None:
    assert string_decoder()(b"a\xff") == "a\ufffd"


@pytest.mark.parametrize("name", ["NoSuch", "no.such.thing", "builtins.no_such"])
def test_unknown(name: str) -> None:
    with pytest.raises(ConfigError, match=f"ClassNotFoundException: {name}"):
        decoder_named(name)
    with pytest.raises(ConfigError, match=r"serializer\.encoding has value UTF-99"):
        string_decoder("UTF-99")
