"""Names and nodes of entities with settings, and notices as all releases write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zk import entities
from zk.znodes import MalformedNodeError


def test_paths() -> None:
    assert entities.config_path("users/alice") == "/config/users/alice"
    assert entities.CONFIG_CHANGE == "/config/changes/config_change_"
    assert entities.config_change_number("config_change_0000000012") == 12
    for name in ("something", "config_change_", "config_change_x", "config_change_" + "1" * 30):
        with pytest.raises(MalformedNodeError):
            entities.config_change_number(name)


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("alice", "alice"),
        ("CN=a b,O=x", "CN%3Da%20b%2CO%3Dx"),
        ("a*b/c%d", "a%2Ab%2Fc%25d"),
        ("<default>", "%3Cdefault%3E"),
        ("x._-~", "x._-%7E"),
        ("é", "%C3%A9"),
    ],
)
def test_names_as_kafka_stores_them(name: str, stored: str) -> None:
    assert entities.sanitize(name) == stored
    assert entities.desanitize(stored) == name


@given(st.text())
def test_any_name_comes_back_and_is_one_part_of_a_path(name: str) -> None:
    stored = entities.sanitize(name)
    assert entities.desanitize(stored) == name
    assert "/" not in stored
    assert stored != entities.DEFAULT


@pytest.mark.parametrize(
    ("data", "entity"),
    [
        (b'"t"', "topics/t"),
        (b"'t '", "topics/t "),
        (b'{"version":1,"entity_type":"clients","entity_name":"c"}', "clients/c"),
        (b'{"version":1,"entity_type":"topics","entity_name":"t"}', "topics/t"),
        (b'{"version":2,"entity_path":"users/alice"}', "users/alice"),
        (
            b'{"version":2,"entity_path":"users/CN%3Da%20b%2CO%3Dx/clients/<default>"}',
            "users/CN%3Da%20b%2CO%3Dx/clients/<default>",
        ),
        (b'{"version":2,"entity_path":"ips/1.2.3.4"}', "ips/1.2.3.4"),
    ],
)
def test_notices(data: bytes, entity: str) -> None:
    assert entities.decode_config_change("/c", data) == entity


def test_a_topics_notice_is_that_of_0_8_and_others_are_of_version_2() -> None:
    assert entities.encode_config_change("topics/t") == b'"t"'
    assert entities.encode_config_change("users/<default>/clients/c") == (
        b'{"version":2,"entity_path":"users/<default>/clients/c"}'
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'""',
        b"\xff\xff\xff",
        b"{",
        b'{"version":1}',
        b'{"version":2}',
        b'{"version":2,"entity_path":7}',
        b'{"version":2,"entity_path":"users"}',
        b'{"version":2,"entity_path":"users/"}',
        b'{"version":2,"entity_path":"users/../x"}',
        b'{"version":2,"entity_path":"users/.."}',
        b'{"version":2,"entity_path":"users/a/clients"}',
        b'{"version":2,"entity_path":"users/a\\u0000b"}',
    ],
)
def test_malformed_notices_name_their_path(data: bytes) -> None:
    with pytest.raises(MalformedNodeError, match="/some/path"):
        entities.decode_config_change("/some/path", data)
