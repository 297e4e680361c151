"""Which nodes stay open, and which are not for others to read."""

from __future__ import annotations

import logging

import pytest

from zk.access import ALL, OPEN, READ, Hidden, NodeAccess, acl_of, is_secret

CREATOR = (ALL, "auth", "")
WORLD_READS = (READ, "world", "anyone")


@pytest.mark.parametrize(
    ("path", "acl"),
    [
        ("/brokers/topics/t", (CREATOR, WORLD_READS)),
        ("/controller", (CREATOR, WORLD_READS)),
        ("/config/topics/t", (CREATOR, WORLD_READS)),
        ("/kafka-acl/Topic/t", (CREATOR, WORLD_READS)),
        ("/", (CREATOR, WORLD_READS)),
        ("/consumers", OPEN),
        ("/consumers/g/offsets/t/0", OPEN),
        ("/consumers2", (CREATOR, WORLD_READS)),
        ("/config/users", (CREATOR,)),
        ("/config/users/carol", (CREATOR,)),
        ("/config/brokers/1", (CREATOR,)),
        ("/config/made_up_salts", (CREATOR,)),
        ("/delegation_token/tokens/x", (CREATOR,)),
        ("/delegation_token", (CREATOR, WORLD_READS)),
    ],
)
def test_acls_of_nodes(path: str, acl: tuple[object, ...]) -> None:
    assert acl_of(path) == acl
    assert NodeAccess(set_acl=True).acl(path) == acl
    assert NodeAccess().acl(path) is None


def test_a_login_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    login = Hidden("kafka:secret")
    logging.getLogger().warning("%s %r %s", login, login, NodeAccess(login=login))
    assert "secret" not in caplog.text + repr([login]) + f"{login}"
    assert login.encode() == b"kafka:secret"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/config/users", True),
        ("/config/users/ann/clients/c", True),
        ("/kafka/config/users/ann", True),
        ("/delegation_token/tokens/x", True),
        ("/config", False),
        ("/config/users-of-old", False),
        ("/myconfig/users", False),
        ("/brokers/ids/1", False),
        ("/", False),
    ],
)
def test_nodes_with_credentials(path: str, found: bool) -> None:
    assert is_secret(path) is found
