"""SCRAM credentials: those of ZooKeeper count at once, and unknown names look like known ones."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection

import pytest

from kafka08.network.peer import Session as Login
from kafka08.security.scram import Credential, credential_of, encode_credential
from kafka08.server.access.scram_credentials import SALT_SECRET, ScramCredentials
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import entity_configs
from zk.errors import ZkConnectionError

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
PENCIL = credential_of(SHA_256, "pencil", b"salt", 4096)


class Users:
    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.zk = Session(self.server).start()
        self.ended: list[Login] = []
        self.credentials = ScramCredentials(self.zk, self._end)  # type: ignore[arg-type]

    def _end(self, over: Collection[Login]) -> None:
        self.ended += sorted(over)

    def store(self, entity: str, **config: str) -> None:
        kept = {key.replace("_", "-"): value for key, value in config.items()}
        entity_configs.alter(self.zk, entity, lambda _: kept)  # type: ignore[arg-type]

    def found(self, user: str = "carol", mechanism: str = SHA_256) -> Credential:
        return self.credentials.find(mechanism, user)


@pytest.fixture
def users() -> Users:
    made = Users()
    made.store("users/carol", SCRAM_SHA_256=encode_credential(PENCIL), producer_byte_rate="9")
    made.store("users/CN%3Dd%20e", SCRAM_SHA_256=encode_credential(PENCIL))
    made.credentials.load()
    return made


def test_stored_users_are_found_by_name_and_mechanism(users: Users) -> None:
    assert users.found() == users.found("CN=d e") == PENCIL
    assert users.found(mechanism=SHA_512) != PENCIL


@pytest.mark.scenario("security-22")
def test_an_altered_user_counts(users: Users) -> None:
    other = credential_of(SHA_256, "other", b"salt", 4096)
    users.store("users/carol", SCRAM_SHA_256=encode_credential(other))
    assert users.found() == PENCIL  # until the notice
    users.credentials.changed("users/carol")
    assert users.found() == other
    users.store("users/carol")
    users.credentials.changed("users/carol")
    assert users.found() not in (PENCIL, other)


def test_users_that_went_unnoticed_are_gone_after_a_new_session(users: Users) -> None:
    users.zk.delete("/config/users/carol")
    users.store("users/dave", SCRAM_SHA_256=encode_credential(PENCIL))
    users.credentials.load()
    assert users.found() != PENCIL
    assert users.found("dave") == PENCIL


@pytest.mark.parametrize("bad", ["", "salt=x", encode_credential(PENCIL).replace("4096", "1")])
def test_a_credential_that_makes_no_sense_is_none(
    users: Users, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    users.store("users/carol", SCRAM_SHA_256=bad)
    with caplog.at_level(logging.DEBUG):
        users.credentials.changed("users/carol")
    assert users.found() != PENCIL
    assert "'carol' cannot log in with SCRAM-SHA-256" in caplog.text
    assert "stored_key" not in caplog.text


def test_a_malformed_node_locks_one_user_out(users: Users) -> None:
    users.zk.set("/config/users/carol", b"{")
    users.credentials.load()
    assert users.found() != PENCIL
    assert users.found("CN=d e") == PENCIL


@pytest.mark.parametrize("entity", ["users/<default>", "users/carol/clients/c"])
def test_defaults_and_clients_have_no_credentials(users: Users, entity: str) -> None:
    users.store(entity, SCRAM_SHA_256=encode_credential(PENCIL))
    users.credentials.changed(entity)
    assert users.found("<default>") != PENCIL
    assert users.found("carol") == PENCIL


@pytest.mark.scenario("security-26")
def test_unknown_users_have_the_same_salt_on_every_broker_and_after_a_restart(users: Users) -> None:
    other = ScramCredentials(Session(users.server).start(), list)  # type: ignore[arg-type]
    other.load()
    assert other.find(SHA_256, "eve") == users.found("eve")
    assert users.found("eve") != users.found("eva")
    assert len(users.zk.get(SALT_SECRET)[0]) == 64


def test_the_last_credentials_hold_while_zookeeper_is_away(users: Users) -> None:
    users.zk.down = True
    with pytest.raises(ZkConnectionError):
        users.credentials.changed("users/carol")
    assert users.found() == PENCIL
    assert users.ended == []


# Sessions of a credential that is changed or deleted end


def test_a_changed_credential_ends_the_sessions_of_its_mechanism(users: Users) -> None:
    both = {
        "SCRAM_SHA_256": encode_credential(PENCIL),
        "SCRAM_SHA_512": encode_credential(credential_of(SHA_512, "pencil", b"salt", 4096)),
    }
    users.store("users/carol", **both)
    users.credentials.changed("users/carol")
    assert users.ended == []  # a mechanism more
    other = encode_credential(credential_of(SHA_512, "other", b"salt", 4096))
    users.store("users/carol", **{**both, "SCRAM_SHA_512": other})
    users.credentials.changed("users/carol")
    assert users.ended == [(SHA_512, "carol")]


@pytest.mark.parametrize("config", [{}, {"SCRAM_SHA_256": "salt=x"}])
def test_a_deleted_credential_ends_sessions(users: Users, config: dict[str, str]) -> None:
    users.store("users/carol", **config)
    users.credentials.changed("users/carol")
    assert users.ended == [(SHA_256, "carol")]
    users.credentials.changed("users/carol")
    assert len(users.ended) == 1


def test_a_quota_ends_no_session(users: Users) -> None:
    users.store("users/carol", SCRAM_SHA_256=encode_credential(PENCIL), producer_byte_rate="1")
    users.credentials.changed("users/carol")
    users.credentials.changed("users/<default>")
    assert users.ended == []


def test_what_changed_without_a_notice_ends_sessions_with_the_new_session(users: Users) -> None:
    users.zk.delete("/config/users/carol")
    other = encode_credential(credential_of(SHA_256, "other", b"salt", 4096))
    users.store("users/CN%3Dd%20e", SCRAM_SHA_256=other)
    users.credentials.load()
    assert users.ended == [(SHA_256, "CN=d e"), (SHA_256, "carol")]


# Unknown users have the iterations and the salts of known ones


def test_unknown_names_have_the_iterations_of_the_users(users: Users) -> None:
    users.store("users/CN%3Dd%20e")
    kafka_salt = b"10ta3d7u3cv1ed9qfpbcgkw5xk"
    users.store(
        "users/carol",
        SCRAM_SHA_256=encode_credential(PENCIL._replace(salt=kafka_salt, iterations=8192)),
        SCRAM_SHA_512=encode_credential(credential_of(SHA_512, "pencil", bytes(range(16)), 12_000)),
    )
    users.credentials.load()
    for name in ("eve", "mallory", "CN=d e"):
        found = users.found(name)
        assert found.iterations == 8192
        assert re.fullmatch(rb"[0-9a-z]{22,26}", found.salt)
        found = users.found(name, SHA_512)
        assert (found.iterations, len(found.salt)) == (12_000, 16)
