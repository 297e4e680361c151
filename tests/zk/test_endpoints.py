"""Registrations of all versions, as they are written and read."""

from __future__ import annotations

import json

import pytest

from kafka08.common import Endpoint
from zk import endpoints, znodes
from zk.znodes import BrokerRegistration, MalformedNodeError

PLAIN = Endpoint("PLAINTEXT", "PLAINTEXT", "h", 9092)
TLS = Endpoint("SSL", "SSL", "h", 9093)
CLIENT = Endpoint("CLIENT", "SSL", "::1", 9094)
# Written by Kafka 2.8.2.
VERSION_5 = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT",'
    b'"SASL_PLAINTEXT":"SASL_PLAINTEXT","SSL":"SSL"},"endpoints":["PLAINTEXT://localhost:9192",'
    b'"SASL_PLAINTEXT://localhost:9193","SSL://localhost:9194"],"jmx_port":-1,"port":9192,'
    b'"host":"localhost","version":5,"timestamp":"1795297043392"}'
)


def written(*listed: Endpoint) -> bytes:
    host, port = endpoints.plain_address(listed)
    return znodes.encode_broker(BrokerRegistration(host, port, -1, "1441", None, listed))


@pytest.mark.scenario("security-1")
def test_one_plain_listener_is_written_as_by_0_8_2_2() -> None:
    assert written(PLAIN) == (
        b'{"jmx_port":-1,"timestamp":"1441","host":"h","version":1,"port":9092}'
    )


@pytest.mark.scenario("security-2")
def test_listeners_named_as_their_protocols_are_version_2() -> None:
    assert written(TLS, PLAIN) == (
        b'{"jmx_port":-1,"timestamp":"1441","host":"h","version":2,"port":9092,'
        b'"endpoints":["SSL://h:9093","PLAINTEXT://h:9092"]}'
    )


def test_free_names_are_version_4() -> None:
    inner = Endpoint("INNER", "PLAINTEXT", "i", 1)
    assert written(CLIENT, inner) == (
        b'{"jmx_port":-1,"timestamp":"1441","host":"i","version":4,"port":1,'
        b'"endpoints":["CLIENT://[::1]:9094","INNER://i:1"],'
        b'"listener_security_protocol_map":{"CLIENT":"SSL","INNER":"PLAINTEXT"}}'
    )


def test_without_a_plain_listener_there_is_no_host() -> None:
    data = written(TLS)
    assert json.loads(data)["host"] is None and json.loads(data)["port"] == -1


@pytest.mark.parametrize("listed", [(PLAIN,), (TLS, PLAIN), (TLS,), (CLIENT, PLAIN)])
def test_they_are_read_as_written(listed: tuple[Endpoint, ...]) -> None:
    assert znodes.decode_broker("/b", written(*listed)).all_endpoints == listed


@pytest.mark.scenario("security-6")
def test_version_5_of_another_broker() -> None:
    found = znodes.decode_broker("/b", VERSION_5)
    assert (found.host, found.port) == ("localhost", 9192)
    assert list(map(str, found.endpoints)) == [
        "PLAINTEXT://localhost:9192",
        "SASL_PLAINTEXT://localhost:9193",
        "SSL://localhost:9194",
    ]
    assert found.endpoint("SSL") == Endpoint("SSL", "SSL", "localhost", 9194)
    assert found.endpoint("OTHER") is None


@pytest.mark.scenario("security-6")
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, ()),
        ({"endpoints": "SSL://h:1"}, ()),
        ({"endpoints": ["SSL://h:1", 7, "x", "SSL://:x", "TLS://h:1"]}, (TLS._replace(port=1),)),
        ({"endpoints": ["A://h:1"], "listener_security_protocol_map": {"A": 7}}, ()),
        ({"endpoints": ["A://h:1"], "listener_security_protocol_map": 7}, ()),
    ],
)
def test_what_makes_no_sense_is_passed_over(
    members: dict[str, object], expected: tuple[Endpoint, ...]
) -> None:
    data = json.dumps({"host": "h", "port": 1, **members}).encode()
    assert znodes.decode_broker("/b", data).endpoints == expected


def test_only_endpoints_excuse_a_missing_host() -> None:
    with pytest.raises(MalformedNodeError, match="host is not a string"):
        znodes.decode_broker("/b", b'{"host":null,"port":-1}')
