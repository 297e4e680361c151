"""DescribeUserScramCredentials, AlterUserScramCredentials: the nodes in ZooKeeper, the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka08.errors import LaterCode
from kafka08.protocol import scram_schemas as s
from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import RequestDecoder, encode_request, encode_response
from kafka08.security.scram import credential_of, encode_credential, salted_password
from kafka08.server.apis.scram_users import handlers
from kafka08.server.requests.dispatch import Dispatcher
from kafka08.server.requests.request_log import describe
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session

SHA_256, SHA_512 = 1, 2
NAMES = {SHA_256: "SCRAM-SHA-256", SHA_512: "SCRAM-SHA-512"}
SALT = b"saltsaltsalt"


class Served:
    """The handlers on nodes in memory; requests and answers go through their bytes."""

    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.zk: Any = Session(self.server)
        runtime: Any = FakeRuntime()
        self._handlers = {each.key: each for each in handlers(self.zk)}
        self._dispatcher = Dispatcher(runtime, self._handlers.values(), APIS)

    def call(self, request: Any) -> Any:
        frame = b"".join(encode_request(request, 1, "c"))[4:]
        header, decoded = RequestDecoder(self._dispatcher.served).decode(frame)
        assert "pencil" not in describe(header, decoded, details=True)
        answer = self._handlers[header.api_key].handle(header, decoded)
        assert encode_response(1, answer)
        return answer

    def alter(self, *changes: s.ScramDeletion | s.ScramUpsertion) -> dict[str, tuple[int, Any]]:
        deletions = [each for each in changes if isinstance(each, s.ScramDeletion)]
        upsertions = [each for each in changes if isinstance(each, s.ScramUpsertion)]
        answer = self.call(s.AlterUserScramCredentialsRequest(deletions, upsertions))
        return {each.user: (each.error, each.message) for each in answer.users}

    def described(self, *users: str) -> dict[str, tuple[int, dict[int, int]]]:
        asked = [s.DescribedUserName(user) for user in users]
        answer = self.call(s.DescribeUserScramCredentialsRequest(asked or None))
        assert (answer.error, answer.message) == (0, None)
        return {
            each.user: (each.error, {c.mechanism: c.iterations for c in each.credentials})
            for each in answer.users
        }

    def config(self, user: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.server.text(f"/config/users/{user}"))["config"]
        return found


def new(user: str = "bob", mechanism: int = SHA_256, **other: Any) -> s.ScramUpsertion:
    salted = salted_password(NAMES[SHA_256], "pencil", SALT, 4096)
    return s.ScramUpsertion(user, mechanism, 4096, SALT, salted)._replace(**other)


@pytest.fixture
def served() -> Served:
    return Served()


def test_a_password_is_stored_as_kafka_configs_stores_it(served: Served) -> None:
    assert served.alter(new()) == {"bob": (0, None)}
    expected = encode_credential(credential_of("SCRAM-SHA-256", "pencil", SALT, 4096))
    assert served.server.text("/config/users/bob") == (
        f'{{"version":1,"config":{{"SCRAM-SHA-256":"{expected}"}}}}'
    )
    assert served.server.text("/config/changes/config_change_0000000000") == (
        '{"version":2,"entity_path":"users/bob"}'
    )


def test_other_settings_of_a_user_stay(served: Served) -> None:
    served.zk.create(
        "/config/users/a%20b%2Ac",
        b'{"version":1,"config":{"producer_byte_rate":"5","SCRAM-SHA-512":"x"}}',
        makepath=True,
    )
    assert served.alter(new("a b*c"), s.ScramDeletion("a b*c", SHA_512)) == {"a b*c": (0, None)}
    assert sorted(served.config("a%20b%2Ac")) == ["SCRAM-SHA-256", "producer_byte_rate"]


def test_users_are_described(served: Served) -> None:
    served.alter(new("bob"), new("bob", SHA_512, iterations=8192), new("a/b"))
    served.zk.create("/config/users/quota", b'{"version":1,"config":{"producer_byte_rate":"5"}}')
    served.zk.create("/config/users/<default>", b'{"version":1,"config":{}}')
    served.zk.create("/config/users/odd", b'{"version":1,"config":{"SCRAM-SHA-256":"secret"}}')
    bob = (0, {SHA_256: 4096, SHA_512: 8192})
    assert served.described() == {"a/b": (0, {SHA_256: 4096}), "bob": bob}
    missing = LaterCode.RESOURCE_NOT_FOUND
    assert served.described("bob", "quota", "odd", "nobody", "") == {
        "bob": bob, "quota": (missing, {}), "odd": (missing, {}), "nobody": (missing, {}),
        "": (missing, {}),
    }  # fmt: skip
    assert served.described("bob", "bob") == {"bob": (LaterCode.DUPLICATE_RESOURCE, {})}


def test_a_node_with_garbage_hides_nobody(served: Served) -> None:
    served.alter(new("bob"))
    served.zk.create("/config/users/eve", b"garbage")
    assert served.described() == {"bob": (0, {SHA_256: 4096}), "eve": (-1, {})}
    assert served.alter(new("eve"))["eve"][0] == -1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([new("")], LaterCode.UNACCEPTABLE_CREDENTIAL),
        ([new(iterations=4095)], LaterCode.UNACCEPTABLE_CREDENTIAL),
        ([new(iterations=2**31 - 1)], LaterCode.UNACCEPTABLE_CREDENTIAL),
        ([new(salt=b"")], LaterCode.UNACCEPTABLE_CREDENTIAL),
        ([new(salted_password=b"")], LaterCode.UNACCEPTABLE_CREDENTIAL),
        ([new(mechanism=0)], LaterCode.UNSUPPORTED_SASL_MECHANISM),
        ([new(mechanism=3)], LaterCode.UNSUPPORTED_SASL_MECHANISM),
        ([s.ScramDeletion("bob", -1)], LaterCode.UNSUPPORTED_SASL_MECHANISM),
        ([new(), new()], LaterCode.DUPLICATE_RESOURCE),
        ([new(), s.ScramDeletion("bob", SHA_256)], LaterCode.DUPLICATE_RESOURCE),
        ([new(), s.ScramDeletion("bob", SHA_512)], LaterCode.RESOURCE_NOT_FOUND),
    ],
)
def test_bad_changes_change_nothing(served: Served, changes: list[Any], code: int) -> None:
    [(found, text)] = served.alter(*changes).values()
    assert found == code and text
    assert served.server.below("/config/users") == []


def test_a_bad_user_does_not_keep_others_out(served: Served) -> None:
    codes = {user: code for user, (code, _) in served.alter(new("a", iterations=1), new()).items()}
    assert codes == {"a": LaterCode.UNACCEPTABLE_CREDENTIAL, "bob": 0}
    assert served.server.below("/config/users") == ["bob"]
