"""The login on the wire, without sockets: the bytes that Kafka 2.8.2 took and answered."""

from __future__ import annotations

import base64
import re
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kafka08.network.login import LoginFailed, ServerLogin, SessionOver
from kafka08.network.peer import Peer, Session
from kafka08.protocol.later_schemas import ServedVersions
from kafka08.security.mechanisms import Side
from kafka08.security.plain import PlainServer
from kafka08.security.scram import ScramClient, ScramServer, made_up_credential
from tests.security.test_scram import CAPTURED, CLIENT_NONCE, credential

USERS = {"alice": "alice-secret", "bob": "b"}
SHA_256 = "SCRAM-SHA-256"
VERSIONS = [ServedVersions(0, 0, 0), ServedVersions(3, 0, 0), ServedVersions(42, 0, 1)]

# Frames without their size words; client id c.
VERSIONS_0 = "0012 0000 00000001 0001 63"
HANDSHAKE_0 = "0011 0000 00000002 0001 63 0005 504c41494e"
HANDSHAKE_1 = "0011 0001 00000002 0001 63 0005 504c41494e"
HANDSHAKE_1_SCRAM = "0011 0001 00000002 0001 63 000d 534352414d2d5348412d323536"
HANDSHAKE_0_SCRAM = "0011 0000 00000002 0001 63 000d 534352414d2d5348412d323536"
CRAM_MD5 = "0011 0000 00000002 0001 63 0008 4352414d2d4d4435"
OFFERED = "00000002 0005 504c41494e 000d 534352414d2d5348412d323536"
RIGHT = "00 616c696365 00 616c6963652d736563726574"
WRONG = "00 616c696365 00 77726f6e67"
METADATA = "0003 0000 00000009 0001 63 00000000"
PRODUCE_ACKS_0 = "0000 0000 00000009 0001 63 0000 00000001 00000000"


def raw(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def authenticate(token: str | bytes, version: int = 0) -> bytes:
    data = raw(token) if isinstance(token, str) else token
    return raw(f"0024 000{version} 00000003 0001 63") + len(data).to_bytes(4, "big") + data


class Connection:
    """A server's side of a connection; ``served`` are the requests that passed the login."""

    def __init__(self) -> None:
        self.peer = Peer("10.0.0.1:5")
        self.peer.is_admitted = False
        self.served: list[bytes] = []
        mechanisms: dict[str, Callable[[], Side]] = {
            "PLAIN": lambda: PlainServer(USERS),
            SHA_256: lambda: ScramServer(
                SHA_256, lambda user: credential(SHA_256, user), CAPTURED[SHA_256][0]
            ),
        }
        self.login = ServerLogin(self.peer, self._serve, mechanisms, lambda: VERSIONS)

    def _serve(self, frame: memoryview, address: str) -> list[Any]:
        self.served.append(bytes(frame))
        return [b"served"]

    def send(self, frame: str | bytes) -> bytes:
        """The bytes of the answer."""
        data = raw(frame) if isinstance(frame, str) else frame
        parts = self.login.handle(memoryview(bytearray(data)), self.peer.address)
        return b"".join(parts or [])

    def body(self, frame: str | bytes) -> bytes:
        """The answer without its size word, which is checked."""
        answer = self.send(frame)
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4
        return answer[4:]

    def fails(self, frame: str | bytes) -> tuple[str, bytes]:
        """The reason, and the body of the last answer, if there is one."""
        data = raw(frame) if isinstance(frame, str) else frame
        with pytest.raises(LoginFailed) as raised:
            self.login.handle(memoryview(bytearray(data)), self.peer.address)
        assert not self.peer.is_admitted
        assert self.served == []
        return str(raised.value), b"".join(raised.value.reply)[4:]


@pytest.fixture
def connection() -> Connection:
    return Connection()


TABLE = (
    "00000006 0000 0000 0000 0003 0000 0000 0011 0000 0001 0012 0000 0003 0024 0000 0001 "
    "002a 0000 0001"
)


@pytest.mark.scenario("security-24")
def test_versions_before_the_login(connection: Connection) -> None:
    assert connection.body(VERSIONS_0) == raw(f"00000001 0000 {TABLE}")
    assert connection.body(HANDSHAKE_0) == raw(f"00000002 0000 {OFFERED}")


@pytest.mark.scenario("security-24")
def test_versions_in_version_3(connection: Connection) -> None:
    answer = connection.body("0012 0003 00000001 0001 63 00 02 61 02 31 00")
    assert answer[:6] == raw("00000001 0000")
    assert raw("0024 0000 0001 00") in answer


VERSIONS_3 = "0012 0003 00000001 0001 63 00 0b 6c696272646b61666b61 04 322e35 00"


@pytest.mark.parametrize(
    ("frame", "software"),
    [
        (VERSIONS_0, ("", "")),
        (VERSIONS_3, ("librdkafka", "2.5")),
        (
            "0012 0003 00000001 0001 63 00 c901" + "61" * 200 + "c901" + "62" * 200 + "00",
            ("a" * 100, "b" * 100),
        ),
    ],
)
def test_a_client_introduces_itself_when_it_asks_for_versions(
    connection: Connection, frame: str, software: tuple[str, str]
) -> None:
    assert connection.peer.software is None
    connection.send(frame)
    assert connection.peer.software == software
    connection.send(HANDSHAKE_1)
    connection.send(authenticate(RIGHT))
    assert (connection.peer.principal, connection.peer.software) == ("User:alice", software)


def test_a_client_that_asks_after_the_login_has_introduced_itself_too(
    connection: Connection,
) -> None:
    connection.send(HANDSHAKE_1)
    connection.send(authenticate(RIGHT))
    assert connection.peer.software is None
    connection.send(VERSIONS_3)
    assert connection.peer.software == ("librdkafka", "2.5")


def test_a_version_of_versions_that_is_unknown_introduces_nobody(connection: Connection) -> None:
    connection.send("0012 0063 00000001 0001 63 00 ffff")
    assert connection.peer.software is None


@pytest.mark.scenario("security-24")
def test_an_unknown_version_of_versions_may_be_followed_by_a_known_one(
    connection: Connection,
) -> None:
    unknown = "0012 0063 00000001 0001 63 00 ffff"
    assert connection.body(unknown) == raw(f"00000001 0023 {TABLE}")
    assert connection.body(VERSIONS_0) == raw(f"00000001 0000 {TABLE}")


def test_versions_a_second_time_before_the_login(connection: Connection) -> None:
    connection.send(VERSIONS_0)
    assert connection.fails(VERSIONS_0) == (
        "Unexpected Kafka request of type ApiVersions during SASL handshake, "
        "expected SaslHandshake",
        b"",
    )


@pytest.mark.scenario("security-24")
def test_versions_after_the_login(connection: Connection) -> None:
    connection.send(HANDSHAKE_1)
    connection.send(authenticate(RIGHT))
    for _ in range(2):
        assert connection.body(VERSIONS_0) == raw(f"00000001 0000 {TABLE}")
    unknown = "0012 0063 00000001 0001 63 00 ffff"
    assert connection.body(unknown) == raw(f"00000001 0023 {TABLE}")


# After SaslHandshake 0


@pytest.mark.scenario("security-17")
def test_the_right_raw_token(connection: Connection) -> None:
    assert connection.body(HANDSHAKE_0) == raw(f"00000002 0000 {OFFERED}")
    assert not connection.peer.is_admitted
    assert connection.send(RIGHT) == raw("00000000")
    assert connection.peer.is_admitted
    assert connection.peer.principal == "User:alice"
    assert connection.send(METADATA) == b"served"
    assert connection.served == [raw(METADATA)]


@pytest.mark.scenario("security-17")
@pytest.mark.parametrize(
    "token",
    [
        WRONG,
        "626f62 00 616c696365 00 616c6963652d736563726574",
        "00 00 616c6963652d736563726574",
        "616c696365",
        "00 657665 00 616c6963652d736563726574",
        METADATA,
    ],
)
def test_other_raw_tokens_close_without_a_byte(connection: Connection, token: str) -> None:
    connection.send(HANDSHAKE_0)
    assert connection.fails(token)[1] == b""
    assert connection.peer.principal == "User:ANONYMOUS"


def test_raw_scram(connection: Connection) -> None:
    _, first, final, signature = CAPTURED[SHA_256]
    connection.send(HANDSHAKE_0_SCRAM)
    assert connection.body(f"n,,n=carol,r={CLIENT_NONCE}".encode()) == first.encode()
    assert not connection.peer.is_admitted
    assert connection.body(final.encode()) == signature.encode()
    assert connection.peer.principal == "User:carol"


# After SaslHandshake 1


def test_the_right_password(connection: Connection) -> None:
    assert connection.body(HANDSHAKE_1) == raw(f"00000002 0000 {OFFERED}")
    assert connection.body(authenticate(RIGHT)) == raw("00000003 0000 0000 00000000")
    assert connection.peer.principal == "User:alice"


def test_version_1_has_the_life_of_the_session(connection: Connection) -> None:
    connection.send(HANDSHAKE_1)
    answer = connection.body(authenticate(RIGHT, 1))
    assert answer == raw("00000003 0000 0000 00000000 0000000000000000")


@pytest.mark.scenario("security-18")
@pytest.mark.parametrize("token", [WRONG, "00 657665 00 616c6963652d736563726574"])
def test_a_wrong_password_and_an_unknown_user_are_the_same(
    connection: Connection, token: str
) -> None:
    connection.send(HANDSHAKE_1)
    text = b"Authentication failed: Invalid username or password"
    reason, answer = connection.fails(authenticate(token))
    assert reason == "PLAIN: Authentication failed: Invalid username or password"
    assert answer == raw("00000003 003a 0033") + text + raw("00000000")


@pytest.mark.scenario("security-18")
@pytest.mark.parametrize("name", ["carol", "eve"])
def test_a_wrong_proof(connection: Connection, name: str) -> None:
    client = ScramClient(SHA_256, name, "wrong", CLIENT_NONCE)
    connection.send(HANDSHAKE_1_SCRAM)
    answer = connection.body(authenticate(client.answer(b"") or b""))
    assert answer[:6] == raw("00000003 0000")
    proof = client.answer(answer[12:]) or b""
    text = (
        b"Authentication failed during authentication due to invalid credentials with SASL "
        b"mechanism SCRAM-SHA-256"
    )
    assert connection.fails(authenticate(proof))[1] == (
        raw("00000003 003a 0068") + text + raw("00000000")
    )


def test_no_second_login(connection: Connection) -> None:
    connection.send(HANDSHAKE_1)
    connection.send(authenticate(RIGHT))
    assert connection.body(HANDSHAKE_1) == raw("00000002 0022 00000000")
    assert connection.body(authenticate(RIGHT))[:6] == raw("00000003 0022")
    assert connection.peer.principal == "User:alice"
    assert connection.served == []


def test_raw_tokens_and_handshakes_are_refused_between(connection: Connection) -> None:
    connection.send(HANDSHAKE_1)
    assert connection.fails(RIGHT)[1] == b""
    other = Connection()
    other.send(HANDSHAKE_1)
    assert other.fails(HANDSHAKE_1)[1] == b""


# Before the login is done they close the connection, and nothing is served


@pytest.mark.scenario("security-23")
@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (METADATA, "Unexpected Kafka request of type Metadata during SASL handshake"),
        (PRODUCE_ACKS_0, "Unexpected Kafka request of type Produce during SASL handshake"),
        ("ffff", "Unexpected Kafka request of type"),
        ("60", "Unexpected Kafka request of type"),
        (RIGHT, "Unexpected Kafka request of type"),
        ("474554202f20485454502f312e31", "Unexpected Kafka request of type"),
        ("0011", "Unexpected Kafka request of type"),
        ("0011 0007 00000002 0001 63 0005 504c41494e", "Unexpected Kafka request of type"),
        (authenticate(RIGHT), "Unexpected Kafka request of type SaslAuthenticate"),
    ],
)
@pytest.mark.parametrize("before", [[], [VERSIONS_0]])
def test_other_requests_at_the_beginning(
    connection: Connection, before: list[str], frame: str | bytes, reason: str
) -> None:
    for each in before:
        connection.send(each)
    said, answer = connection.fails(frame)
    assert said.startswith(reason)
    assert answer == b""


@pytest.mark.scenario("security-23")
@pytest.mark.parametrize("key", range(50))
def test_no_api_is_served_while_a_token_is_due(key: int) -> None:
    connection = Connection()
    connection.send(HANDSHAKE_1)
    connection.fails(key.to_bytes(2, "big") + raw("0000 00000009 0001 63 00000000"))


def test_an_unknown_mechanism_is_told_the_known_ones(connection: Connection) -> None:
    reason, answer = connection.fails(CRAM_MD5)
    assert reason == "Unsupported SASL mechanism CRAM-MD5"
    assert answer == raw(f"00000002 0021 {OFFERED}")


# They cannot be told from known names with a wrong password, over 1,000 tries


def told_apart(cost: dict[str, list[float]]) -> bool:
    known, unknown = (statistics.median(times) for times in cost.values())
    return not 0.5 < known / unknown < 2


@pytest.mark.scenario("security-26")
def test_plain_tells_nothing_of_names() -> None:
    answers: set[tuple[str, bytes]] = set()
    cost: dict[str, list[float]] = {"alice": [], "evita": []}
    for _ in range(1000):
        for name, times in cost.items():
            connection = Connection()
            connection.send(HANDSHAKE_1)
            begin = time.thread_time()
            answers.add(connection.fails(authenticate(f"\0{name}\0wrong".encode())))
            times.append(time.thread_time() - begin)
    assert len(answers) == 1
    assert not told_apart(cost)


@pytest.mark.scenario("security-26")
def test_scram_tells_nothing_of_names() -> None:
    firsts: set[str] = set()
    lasts: set[tuple[str, bytes]] = set()
    cost: dict[str, list[float]] = {"carol": [], "evita": []}
    found = {
        "carol": credential(SHA_256),
        "evita": made_up_credential(SHA_256, "evita", b"secret"),
    }
    for number in range(1000):
        for name, times in cost.items():
            make = partial(ScramServer, SHA_256, found.__getitem__, f"s{number:04}")
            connection = Connection()
            connection.login = ServerLogin(
                connection.peer, connection._serve, {SHA_256: make}, list
            )
            connection.send(HANDSHAKE_1_SCRAM)
            first = connection.body(authenticate(f"n,,n={name},r=c".encode()))[12:].decode()
            firsts.add(re.sub("s=[A-Za-z0-9+/=]{36}", "s=", first))
            proof = base64.b64encode(bytes(32)).decode()
            final = authenticate(f"c=biws,r=cs{number:04},p={proof}".encode())
            begin = time.thread_time()
            lasts.add(connection.fails(final))
            times.append(time.thread_time() - begin)
    assert firsts == {f"r=cs{number:04},s=,i=4096" for number in range(1000)}
    assert len(lasts) == 1
    assert not told_apart(cost)


# Sessions with a lifetime (KIP-368)


ALICE_LIFE_MS = 10_000
AGAIN = raw("00000002 0000") + raw(OFFERED)
ILLEGAL = raw("00000002 0022 00000000")


class Living(Connection):
    """A connection that has logged in with PLAIN, whose session lasts for 10 seconds."""

    def __init__(self, version: int = 1, handshake: str = HANDSHAKE_1) -> None:
        super().__init__()
        self.login = ServerLogin(
            self.peer,
            self._serve,
            {"PLAIN": lambda: PlainServer(USERS), SHA_256: lambda: PlainServer(USERS)},
            lambda: VERSIONS,
            {"PLAIN": ALICE_LIFE_MS},
        )
        self.at(100.0)
        self.send(handshake)
        token = authenticate(RIGHT, version) if handshake == HANDSHAKE_1 else RIGHT
        self.answer = self.send(token)

    def at(self, seconds: float) -> None:
        self.peer.begun_at = seconds

    def is_over(self, frame: str | bytes) -> bool:
        data = raw(frame) if isinstance(frame, str) else frame
        try:
            self.login.handle(memoryview(bytearray(data)), self.peer.address)
        except SessionOver:
            return True
        return False


def test_the_answer_has_the_life_of_the_session() -> None:
    assert Living().answer[4:] == raw("00000003 0000 0000 00000000 0000000000002710")
    assert Living(version=0).answer[4:] == raw("00000003 0000 0000 00000000")


@pytest.mark.parametrize("handshake", [HANDSHAKE_1, HANDSHAKE_0])
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("frame", [METADATA, PRODUCE_ACKS_0, VERSIONS_0, authenticate(RIGHT, 1)])
def test_a_request_after_the_session_closes_the_connection(
    handshake: str, version: int, frame: str | bytes
) -> None:
    connection = Living(version, handshake)
    connection.at(110.0)
    assert connection.send(METADATA) == b"served"
    connection.at(110.1)
    assert connection.is_over(frame)
    assert len(connection.served) == 1


@pytest.mark.parametrize("now", [109.0, 130.0])
def test_a_further_login_begins_a_session(now: float) -> None:
    connection = Living()
    connection.at(now)
    assert connection.body(HANDSHAKE_1) == AGAIN
    answer = connection.body(authenticate(RIGHT, 1))
    assert answer == raw("00000003 0000 0000 00000000 0000000000002710")
    connection.at(now + 9)
    assert connection.send(METADATA) == b"served"
    connection.at(now + 11)
    assert connection.is_over(METADATA)


def test_no_other_request_is_served_during_a_further_login() -> None:
    connection = Living()
    connection.send(HANDSHAKE_1)
    with pytest.raises(LoginFailed, match="Unexpected Kafka request of type Metadata"):
        connection.send(METADATA)
    assert connection.served == []


def test_a_further_login_with_a_wrong_password_fails() -> None:
    connection = Living()
    connection.send(HANDSHAKE_1)
    with pytest.raises(LoginFailed) as raised:
        connection.send(authenticate(WRONG, 1))
    assert b"".join(raised.value.reply)[8:10] == raw("003a")


def test_the_principal_stays() -> None:
    connection = Living()
    connection.send(HANDSHAKE_1)
    with pytest.raises(LoginFailed) as raised:
        connection.send(authenticate("00 626f62 00 62", 1))
    text = b"Cannot change principals during re-authentication from User.alice: User.bob"
    assert text in b"".join(raised.value.reply)
    assert connection.peer.principal == "User:alice"


def test_the_mechanism_stays() -> None:
    """Kafka answers the handshake, and closes."""
    connection = Living()
    with pytest.raises(LoginFailed, match="not supported for re-authentication of") as raised:
        connection.send(HANDSHAKE_1_SCRAM)
    assert b"".join(raised.value.reply)[4:] == AGAIN


def test_a_login_a_second() -> None:
    connection = Living()
    for now, answer in ((101.0, AGAIN), (101.9, ILLEGAL), (102.0, AGAIN)):
        connection.at(now)
        assert connection.body(HANDSHAKE_1) == answer
        if answer == AGAIN:
            connection.send(authenticate(RIGHT, 1))


def test_a_session_that_ends_within_a_second_does_not_go_on_by_handshakes() -> None:
    connection = Living()
    connection.login._lifetimes_ms = {"PLAIN": 500}
    connection.send(HANDSHAKE_1)
    connection.send(authenticate(RIGHT, 1))
    connection.at(100.6)
    assert connection.is_over(HANDSHAKE_1)


def test_the_session_is_known_by_mechanism_and_user() -> None:
    assert Connection().peer.session is None
    assert Living().peer.session == Session("PLAIN", "alice")
