"""SCRAM: the conversations that Kafka 2.8.2 and this machine agreed on, and broken ones."""

from __future__ import annotations

import base64
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.security.mechanisms import LoginRefusedError
from kafka08.security.scram import (
    Credential,
    ScramClient,
    ScramServer,
    Shape,
    credential_of,
    decode_credential,
    encode_credential,
    made_up_credential,
    nonce_of,
    shape_of,
)

CLIENT_NONCE = "fyko+d2lbbFgONRv9qkxdawL"
# Mechanism: the server's nonce, then the messages after the client's first, as captured.
CAPTURED = {
    "SCRAM-SHA-256": (
        "35nocisqsvfjmi8tmf4m2v2vp",
        f"r={CLIENT_NONCE}35nocisqsvfjmi8tmf4m2v2vp,s=OG5jaGx4cWp5YjJ2ZW9mOHFuaGt4cXBheQ==,i=4096",
        f"c=biws,r={CLIENT_NONCE}35nocisqsvfjmi8tmf4m2v2vp,"
        "p=8a/LNpKotfBFdE/gZ8Syi2Iqy7fxG764Az5k1HE5EXQ=",
        "v=nK3R+5kZ51gjrbwWzCT7lNy6ztbBmzSICU506ppniEA=",
    ),
    "SCRAM-SHA-512": (
        "19uf2qscaggjae82u90uk37i7f",
        f"r={CLIENT_NONCE}19uf2qscaggjae82u90uk37i7f,s=MWw0Znd2YXp2a2IzcHZ6c2M2eGxkdjR5eHQ=,i=4096",
        f"c=biws,r={CLIENT_NONCE}19uf2qscaggjae82u90uk37i7f,"
        "p=3fEGQqPf3ajK7LlvzsUr1T82A17Rd2b5E1R6aO8VXDgh8pi4deiXpf7L0DQFi5Lo7BiGjlPE+BZt98bzCOCC/w==",
        "v=wA3ycOSd+ynmRglEgaMzdJFqBggMMVxMcO25D/QskFH81lAjYcRNWSztu3dGpHguUE7OkgA04/RnAqUuxkiwPg==",
    ),
}
FIRST = f"n,,n=carol,r={CLIENT_NONCE}"
# As kafka-configs of Kafka 2.8.2 stored the password "pencil".
STORED = {
    "SCRAM-SHA-256": "salt=MWxsM200Z3RldTJvMnI3eTFsN2I0dGVlcWM=,"
    "stored_key=bSqaP2ZHEZtbVSgZW7lVj0qzECrQUC33pqiRvJqpaVA=,"
    "server_key=vCHHPNc/IdpwOdkXsAPF3lO6RNZI0dlVKxpXHarxYT0=,iterations=4096",
    "SCRAM-SHA-512": "salt=MWFraDYyc3dmdDZsd2wyYzhnbnBhNDh2a3I=,"
    "stored_key=E4cZQqCo6s96tfalkOrCHkO3n3ZW1wjpQwAw/oL+fzlLhQ+LMXkNelvXVM3eedY2cHvnXY4tRCc1nFEtaoc"
    "PPw==,server_key=SlASh0COPDz8ymmjGk9RMmiZ4FSOfXS8DtUMZfurW2VYBrX9ZYs4a51cI0NOtE1wp5jK51ykubqSqH"
    "RAcnCQCg==,iterations=4096",
}
MECHANISMS = sorted(STORED)
SECRET = b"of the cluster"


def credential(mechanism: str, user: str = "carol") -> Credential:
    """Only carol exists, with the salt of the captured conversation."""
    if user != "carol":
        return made_up_credential(mechanism, user, SECRET)
    salt = CAPTURED[mechanism][1].split(",s=")[1].split(",i=")[0]
    return credential_of(mechanism, "pencil", base64.b64decode(salt), 4096)


def server(mechanism: str) -> ScramServer:
    nonce = CAPTURED[mechanism][0]
    return ScramServer(mechanism, lambda user: credential(mechanism, user), nonce)


def refused(side: ScramServer | ScramClient, token: str, error: str = ".") -> None:
    with pytest.raises(LoginRefusedError, match=error):
        side.answer(token.encode())
    assert side.user == ""


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_captured_server(mechanism: str) -> None:
    side = server(mechanism)
    _, first, final, signature = CAPTURED[mechanism]
    assert side.answer(FIRST.encode()) == first.encode()
    assert side.user == ""
    assert side.answer(final.encode()) == signature.encode()
    assert side.is_done
    assert side.user == "carol"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_captured_client(mechanism: str) -> None:
    side = ScramClient(mechanism, "carol", "pencil", CLIENT_NONCE)
    _, first, final, signature = CAPTURED[mechanism]
    assert side.answer(b"") == FIRST.encode()
    assert side.answer(first.encode()) == final.encode()
    assert side.answer(signature.encode()) is None
    assert side.is_done


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_stored_credential(mechanism: str) -> None:
    found = decode_credential(mechanism, STORED[mechanism])
    assert found == credential_of(mechanism, "pencil", found.salt, 4096)
    assert encode_credential(found) == STORED[mechanism]
    assert STORED[mechanism][40:60] not in repr(found)


# Broken tokens end the login


@pytest.mark.parametrize(
    "first",
    [
        "",
        "p=tls-unique,,n=carol,r=abc",
        "n,a=bob,n=carol,r=abc",
        "n,,m=must,n=carol,r=abc",
        "n,,n=,r=abc",
        "n,,n=car=olr=abc",
        "n,,n=car=2col,r=abc",
        "n,,n=carol,r=",
        "n,,n=carol,r=a b",
        "n,,n=carol",
        "n,,n=carol,r=abc,",
        "x" * 500_000,
        "n,,n=carol,r=abc" + ",x=y" * 100_000 + ",",
    ],
)
def test_bad_first_messages(first: str) -> None:
    refused(server("SCRAM-SHA-256"), first)


@pytest.mark.parametrize("first", ["n,,n=a,r=b", "y,,n=a,r=b,x=ext", "n,a=a,n=a,r=b"])
def test_good_first_messages(first: str) -> None:
    answer = server("SCRAM-SHA-256").answer(first.encode())
    assert answer is not None
    assert answer.startswith(b"r=b35nocisqsvfjmi8tmf4m2v2vp,s=")


@pytest.mark.scenario("security-21")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("c=biws", "c=eSws"),
        ("35nocisqsvfjmi8tmf4m2v2vp", ""),
        (CLIENT_NONCE, CLIENT_NONCE[:-1] + "M"),
        ("p=8a", "p=8b"),
        ("EXQ=", ""),
        ("p=8a/LNpKotfBFdE/gZ8Syi2Iqy7fxG764Az5k1HE5EXQ=", "p=8a=="),
        (",p=8a/LNpKotfBFdE/gZ8Syi2Iqy7fxG764Az5k1HE5EXQ=", ""),
        ("vp,p", "vp,x=y,p"),
    ],
)
def test_bad_final_messages(old: str, new: str) -> None:
    side, final = server("SCRAM-SHA-256"), CAPTURED["SCRAM-SHA-256"][2]
    side.answer(FIRST.encode())
    assert final.replace(old, new) != final
    refused(side, final.replace(old, new))
    refused(side, final)


@pytest.mark.scenario("security-21")
def test_a_replayed_final_message() -> None:
    side = ScramServer("SCRAM-SHA-256", lambda user: credential("SCRAM-SHA-256"), "another")
    side.answer(FIRST.encode())
    refused(side, CAPTURED["SCRAM-SHA-256"][2], "another nonce")


def test_the_final_message_first() -> None:
    refused(server("SCRAM-SHA-256"), CAPTURED["SCRAM-SHA-256"][2], "client-first-message")


@given(st.binary(), st.binary())
def test_no_other_tokens_log_in(first: bytes, final: bytes) -> None:
    side = server("SCRAM-SHA-256")
    try:
        side.answer(first)
        side.answer(final)
    except LoginRefusedError:
        pass
    assert side.user == ""


# They get a conversation like any other


def test_the_same_salt_on_every_broker_and_no_one_elses() -> None:
    answers = {server("SCRAM-SHA-256").answer(b"n,,n=%b,r=x" % name) for name in (b"eve", b"eva")}
    again = server("SCRAM-SHA-256").answer(b"n,,n=eve,r=x")
    assert len(answers) == 2
    assert again in answers


def test_it_looks_like_that_of_a_user() -> None:
    salt = made_up_credential("SCRAM-SHA-512", "eve", SECRET).salt.decode()
    assert salt.isalnum()
    assert salt == salt.lower()
    assert 22 <= len(salt) <= 26


def test_the_error_is_that_of_a_wrong_password() -> None:
    errors = []
    for name in ("carol", "eve"):
        client = ScramClient("SCRAM-SHA-256", name, "wrong", "cnonce")
        side = server("SCRAM-SHA-256")
        final = client.answer(side.answer(client.answer(b"") or b"") or b"")
        with pytest.raises(LoginRefusedError) as raised:
            side.answer(final or b"")
        errors.append((str(raised.value), raised.value.reveal))
    assert errors == [("Invalid client credentials", False)] * 2


# A server that does not know the password, or asks for too little, is refused


def after_first() -> ScramClient:
    side = ScramClient("SCRAM-SHA-256", "carol", "pencil", "cnonce")
    assert side.answer(b"") == b"n,,n=carol,r=cnonce"
    return side


@pytest.mark.scenario("security-21")
@pytest.mark.parametrize(
    ("first", "error"),
    [
        ("r=cnonceX,s=c2FsdA==,i=1", "1 iterations"),
        ("r=cnonceX,s=c2FsdA==,i=4095", "4095 iterations"),
        ("r=cnonceX,s=c2FsdA==,i=999999999", "999999999 iterations"),
        ("r=cnonce,s=c2FsdA==,i=4096", "nonce"),
        ("r=other,s=c2FsdA==,i=4096", "nonce"),
        ("m=x,r=cnonceX,s=c2FsdA==,i=4096", "server-first-message"),
        ("r=cnonceX,s=c,i=4096", "base64"),
        ("e=other-error", "server-first-message"),
        ("", "server-first-message"),
    ],
)
def test_bad_first_answers(first: str, error: str) -> None:
    refused(after_first(), first, error)


@pytest.mark.scenario("security-20")
@pytest.mark.parametrize(
    ("final", "error"),
    [
        ("v=nK3R+5kZ51gjrbwWzCT7lNy6ztbBmzSICU506ppniEA=", "does not know the password"),
        ("v=AAAA", "does not know the password"),
        ("v=A", "base64"),
        ("e=invalid-proof", "refused the login: invalid-proof"),
        ("", "server-final-message"),
    ],
)
def test_bad_last_answers(final: str, error: str) -> None:
    side = after_first()
    side.answer(b"r=cnonceX,s=c2FsdA==,i=4096")
    refused(side, final, error)
    assert not side.is_done


@given(
    st.sampled_from(MECHANISMS),
    st.text(min_size=1).filter(lambda text: "\0" not in text),
    st.text(),
)
def test_both_sides_agree(mechanism: str, name: str, password: str) -> None:
    known = credential_of(mechanism, password, b"salt", 4096)
    users = {name: decode_credential(mechanism, encode_credential(known))}
    side = ScramServer(mechanism, users.__getitem__, nonce_of(b"\x07" * 20))
    client = ScramClient(mechanism, name, password, nonce_of(b"\x09" * 20))
    token: bytes | None = b""
    while not client.is_done:
        token = client.answer(token or b"")
        if token is not None:
            token = side.answer(token)
    assert side.user == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=AA==,stored_key=AA==,server_key=AA==,iterations=4096",
        STORED["SCRAM-SHA-512"],
        STORED["SCRAM-SHA-256"].replace("4096", "4095"),
        STORED["SCRAM-SHA-256"].replace("=4096", "=x"),
        STORED["SCRAM-SHA-256"].replace("salt=M", "salt="),
    ],
)
def test_a_bad_credential_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError) as raised:
        decode_credential("SCRAM-SHA-256", text)
    assert "bSqa" not in str(raised.value)


@pytest.mark.parametrize(("random", "text"), [(b"\0" * 17, "0"), (b"\0" * 16 + b"\x24", "10")])
def test_nonces_are_numbers_to_base_36(random: bytes, text: str) -> None:
    assert nonce_of(random) == text


# A stranger cannot tell a made-up credential by its iterations and salt


KAFKA_SALT = b"10ta3d7u3cv1ed9qfpbcgkw5xk"


def test_the_shape_of_a_credential() -> None:
    made = credential_of("SCRAM-SHA-256", "pencil", KAFKA_SALT, 8192)
    assert shape_of(made) == Shape(8192, 0)
    assert shape_of(made._replace(salt=b"\0" * 16)) == Shape(8192, 16)
    assert shape_of(made_up_credential("SCRAM-SHA-256", "eve", SECRET)) == Shape()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_made_up_credentials_have_the_shapes_of_the_users(mechanism: str) -> None:
    users = {Shape(): 70, Shape(8192, 0): 20, Shape(15_000, 32): 10}
    found = [made_up_credential(mechanism, f"u{n}", SECRET, users) for n in range(3000)]
    shares = {shape: count / 30 for shape, count in Counter(map(shape_of, found)).items()}
    assert shares.keys() == users.keys()
    for shape, share in shares.items():
        assert abs(share - users[shape]) < 4
    assert found == [made_up_credential(mechanism, f"u{n}", SECRET, users) for n in range(3000)]


def test_few_made_up_credentials_change_with_the_users() -> None:
    def found(users: dict[Shape, int]) -> list[Credential]:
        return [made_up_credential("SCRAM-SHA-256", f"u{n}", SECRET, users) for n in range(1000)]

    before = found({Shape(): 50, Shape(8192, 0): 50})
    after = found({Shape(8192, 0): 51, Shape(): 50})
    assert sum(a != b for a, b in zip(before, after, strict=True)) < 20


def test_a_credential_that_changes_during_a_login_is_of_no_use() -> None:
    mechanism = "SCRAM-SHA-256"
    old = credential_of(mechanism, "pencil", b"salt", 4096)
    kept = [old]
    server = ScramServer(mechanism, lambda user: kept[0], "s")
    client = ScramClient(mechanism, "carol", "pencil", "c")
    proof = client.answer(server.answer(client.answer(b"") or b"") or b"") or b""
    kept[0] = credential_of(mechanism, "other", b"salt", 4096)
    with pytest.raises(LoginRefusedError, match="during the login"):
        server.answer(proof)
    assert server.user == ""
