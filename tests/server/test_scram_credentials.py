"""SCRAM credentials: those of ZooKeeper count at once, and unknown names look like known ones."""

from __future__ import annotations

import logging

import pytest

from kafka08.security.scram import Credential, credential_of, encode_credential
from kafka08.server.scram_credentials import SALT_SECRET, ScramCredentials
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import entity_configs
from zk.errors import ZkConnectionError

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
PENCIL = credential_of(SHA_256, "pencil", b"salt", 4096)


class Users:
    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.zk = Session(self.server).start()
        self.credentials = ScramCredentials(self.zk)  # type: ignore[arg-type]

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


def test_unknown_users_have_the_same_salt_on_every_broker_and_after_a_restart(users: Users) -> None:
    other = ScramCredentials(Session(users.server).start())  # type: ignore[arg-type]
    other.load()
    assert other.find(SHA_256, "eve") == users.found("eve")
    assert users.found("eve") != users.found("eva")
    assert len(users.zk.get(SALT_SECRET)[0]) == 64


def test_the_last_credentials_hold_while_zookeeper_is_away(users: Users) -> None:
    users.zk.down = True
    with pytest.raises(ZkConnectionError):
        users.credentials.changed("users/carol")
    assert users.found() == PENCIL
