"""The client's side as its settings have it."""

from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.security.jaas import PLAIN_MODULE, SCRAM_MODULE, parse
from kafka08.security.sides import client_side

NAMED = 'required username="u" password="secret";'


def test_each_login_has_a_side_of_its_own() -> None:
    make = client_side("PLAIN", parse(f"{PLAIN_MODULE} {NAMED}"), "sasl.jaas.config")
    assert [make().answer(b""), make().answer(b"")] == [b"\0u\0secret"] * 2
    make = client_side("SCRAM-SHA-512", parse(f"{SCRAM_MODULE} {NAMED}"), "sasl.jaas.config")
    first, second = make().answer(b""), make().answer(b"")
    assert first is not None
    assert first.startswith(b"n,,n=u,r=")
    assert first != second


@pytest.mark.parametrize(
    ("mechanism", "text", "error"),
    [
        ("GSSAPI", f"{PLAIN_MODULE} {NAMED}", "sasl.mechanism is GSSAPI, which is not one of"),
        ("PLAIN", f"{SCRAM_MODULE} {NAMED}", "key has the login module .*, and PLAIN needs"),
        ("SCRAM-SHA-256", f"{PLAIN_MODULE} {NAMED}", "and SCRAM-SHA-256 needs"),
        ("PLAIN", f'{PLAIN_MODULE} required username="u";', "no username or no password"),
        ("PLAIN", f'{PLAIN_MODULE} required password="secret";', "no username or no password"),
        (
            "PLAIN",
            f'{PLAIN_MODULE} required username="u" password="secret\\0";',
            "key has a NUL in the username or the password",
        ),
    ],
)
def test_settings_that_cannot_log_in(mechanism: str, text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error) as raised:
        client_side(mechanism, parse(text), "key")
    assert "secret" not in str(raised.value)
