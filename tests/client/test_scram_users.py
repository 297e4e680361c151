"""SCRAM users over the wire: what is sent, and answers that make no sense here."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client import scram_users
from kafka08.client.admin import RemoteError
from kafka08.client.scram_users import Password, SaltedPassword
from kafka08.errors import meaning_of
from kafka08.protocol import scram_schemas as s
from kafka08.security.scram import salted_password
from tests.client.test_acls import AclAdmin


def test_passwords_are_not_sent() -> None:
    admin: Any = AclAdmin(
        s.AlterUserScramCredentialsResponse(0, [s.AlteredScramUser("b", 0, None)])
    )
    made = scram_users.salted("SCRAM-SHA-512", Password("pw", 5000))
    scram_users.alter(admin.call, "b", {"SCRAM-SHA-512": made}, ["SCRAM-SHA-256"])
    [request] = admin.requests
    assert request.deletions == [s.ScramDeletion("b", 1)]
    [new] = request.upsertions
    assert new[:3] == ("b", 2, 5000)
    assert new.salted_password == salted_password("SCRAM-SHA-512", "pw", new.salt, 5000)
    assert len(new.salt) > 20


def test_users_and_mechanisms_of_later_releases() -> None:
    infos = [s.ScramCredentialInfo(1, 4096), s.ScramCredentialInfo(9, 1)]
    users = [s.DescribedScramUser("b", 0, None, infos)]
    admin: Any = AclAdmin(s.DescribeUserScramCredentialsResponse(0, 0, None, users))
    found = scram_users.describe(admin.call, "b")
    assert found == {"SCRAM-SHA-256": 4096, "UNKNOWN(9)": 1}
    assert admin.requests == [s.DescribeUserScramCredentialsRequest([s.DescribedUserName("b")])]


def test_a_user_without_credentials() -> None:
    users = [s.DescribedScramUser("c", 91, "none", [])]
    admin: Any = AclAdmin(s.DescribeUserScramCredentialsResponse(0, 0, None, users))
    assert scram_users.describe(admin.call, "c") == {}


def test_a_user_whose_node_makes_no_sense_does_not_hide_others() -> None:
    infos = [s.ScramCredentialInfo(1, 4096)]
    users = [
        s.DescribedScramUser("b", 0, None, infos),
        s.DescribedScramUser("c", -1, "/config/users/c: not JSON", []),
        s.DescribedScramUser("d", 29, None, []),
    ]
    admin: Any = AclAdmin(s.DescribeUserScramCredentialsResponse(0, 0, None, users))
    found = scram_users.describe_all(admin.call)
    assert found.known == {"b": {"SCRAM-SHA-256": 4096}}
    assert found.unreadable == {"c": "/config/users/c: not JSON", "d": meaning_of(29)}
    assert admin.requests == [s.DescribeUserScramCredentialsRequest(None)]


def test_refusals() -> None:
    admin: Any = AclAdmin(s.DescribeUserScramCredentialsResponse(0, 31, None, []))
    with pytest.raises(RemoteError):
        scram_users.describe_all(admin.call)
    failed = [s.DescribedScramUser("b", -1, "lost", [])]
    admin = AclAdmin(s.DescribeUserScramCredentialsResponse(0, 0, None, failed))
    with pytest.raises(RemoteError, match="lost"):
        scram_users.describe(admin.call, "b")
    altered = [s.AlteredScramUser("b", 93, "Too few iterations")]
    admin = AclAdmin(s.AlterUserScramCredentialsResponse(0, altered))
    with pytest.raises(RemoteError, match="Too few"):
        scram_users.alter(admin.call, "b", {}, ["SCRAM-SHA-256"])
    assert "pw" not in repr(Password("pw", 1))
    assert "secret" not in repr(SaltedPassword(b"salt", b"secret", 1))
