"""PLAIN: tokens as Kafka 2.8.2 takes and refuses them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.security.mechanisms import LoginRefusedError
from kafka08.security.plain import PlainClient, PlainServer

PASSWORDS = {"alice": "alice-secret", "bob": "b", "nobody": ""}


def server() -> PlainServer:
    return PlainServer(PASSWORDS)


@pytest.mark.parametrize(
    "token",
    ["00616c69636500616c6963652d736563726574", "616c69636500616c69636500616c6963652d736563726574"],
)
def test_the_right_password(token: str) -> None:
    side = server()
    assert side.answer(bytes.fromhex(token)) == b""
    assert side.is_done
    assert side.user == "alice"


@pytest.mark.parametrize(
    ("token", "error"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0eve\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0x", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0alice-secret", "Authentication failed: Client requested an authorization"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0\0alice-secret", "no username or no password"),
        (b"\0alice\0", "no username or no password"),
        (b"\0nobody\0", "no username or no password"),
        (b"alice\0alice-secret", "not three texts"),
        (b"\0alice\0alice-secret\0", "not three texts"),
        (b"\0alice\0\xff", "not three texts"),
        (b"", "not three texts"),
    ],
)
def test_refused_tokens(token: bytes, error: str) -> None:
    side = server()
    with pytest.raises(LoginRefusedError, match=error) as raised:
        side.answer(token)
    assert side.user == ""
    assert raised.value.reveal == error.startswith("Auth")


@given(st.binary())
def test_no_other_token_logs_in(token: bytes) -> None:
    side = server()
    try:
        side.answer(token)
    except LoginRefusedError:
        assert side.user == ""
    else:
        assert f"{side.user}\0{PASSWORDS[side.user]}" in token.decode()


def test_the_clients_token() -> None:
    client = PlainClient("alice", "alice-secret")
    assert client.answer(b"") == b"\0alice\0alice-secret"
    assert client.answer(b"") is None
    assert client.is_done


def test_a_nul_in_a_name_would_make_another_user() -> None:
    with pytest.raises(LoginRefusedError, match="NUL"):
        PlainClient("alice\0alice", "x")
