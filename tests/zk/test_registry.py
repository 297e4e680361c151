from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08 import admin
from kafka08.common import Broker, Endpoint
from tests.fakes.runtime import FakeClock
from tests.zk import server
from zk import registry, znodes
from zk.client import ZkClient
from zk.errors import DuplicateBrokerError, ZkClosedError


def never(seconds: float) -> None:
    pytest.fail("waited")


@pytest.fixture
def former(client: ZkClient) -> Iterator[ZkClient]:
    """A session that registered broker 1 at h:9092."""
    connected = server.connect(client.connect)
    registry.register_broker(connected, Broker(1, "h", 9092), clock=FakeClock(), wait=never)
    yield connected
    connected.close()


def test_formats_of_live_brokers(client: ZkClient, former: ZkClient) -> None:
    """A broker that does not say which formats it knows may be an original one."""
    registry.register_broker(client, Broker(2, "h", 9093), clock=FakeClock(), wait=never, formats=2)
    client.create("/brokers/ids/3", b"{", makepath=True)
    found = registry.registrations(client)
    assert {number: each and each.formats for number, each in found.items()} == {
        1: None,
        2: 2,
        3: None,
    }
    assert found[3] is None


def test_formats_are_remembered(client: ZkClient) -> None:
    assert registry.remember_formats(client, {1: None, 2: 2, 3: 1}) == {2: 2, 3: 1}
    assert client.get("/brokers/message_formats/3")[0] == b"1"
    assert registry.remember_formats(client, {3: 2}) == {2: 2, 3: 2}
    assert registry.remember_formats(client, {2: None}) == {3: 2}
    assert client.children("/brokers/message_formats") == ["3"]


def test_malformed_formats_are_those_of_an_original(client: ZkClient) -> None:
    for name, data in [("1", b"x"), ("x", b"2"), ("-1", b"2"), ("2", b"2")]:
        client.create(f"/brokers/message_formats/{name}", data, makepath=True)
    assert registry.remember_formats(client, {}) == {2: 2}
    assert registry.remember_formats(client, {1: 2}) == {1: 2, 2: 2}


def test_the_first_id_of_the_cluster_stays(client: ZkClient) -> None:
    first = registry.ensure_cluster_id(client)
    assert len(first) == 22
    assert registry.ensure_cluster_id(client) == first


def test_the_common_paths(client: ZkClient) -> None:
    for _ in range(2):
        registry.ensure_common_paths(client)
    for path in (
        "/consumers",
        "/brokers/ids",
        "/brokers/topics",
        "/config/changes",
        "/config/topics",
        "/admin/delete_topics",
    ):
        assert client.get(path)[0] == b""


def test_a_broker_registers_once_per_session(client: ZkClient) -> None:
    for _ in range(2):
        registry.register_broker(client, Broker(1, "h", 9092), clock=FakeClock(), wait=never)
    data, stat = client.get("/brokers/ids/1")
    assert data == (
        b'{"jmx_port":-1,"timestamp":"1400000000000","host":"h","version":1,"port":9092}'
    )
    assert stat.ephemeral_owner == client.session_id


def test_another_address_under_our_id_is_refused(client: ZkClient, former: ZkClient) -> None:
    with pytest.raises(DuplicateBrokerError, match="already registered on the path /brokers/ids/1"):
        registry.register_broker(client, Broker(1, "h", 9093), clock=FakeClock(), wait=never)
    assert registry.read_broker(client, 1) == Broker(1, "h", 9092)


def test_an_unreadable_node_under_our_id_is_refused(client: ZkClient) -> None:
    client.create("/brokers/ids/1", b"?", makepath=True)
    with pytest.raises(DuplicateBrokerError):
        registry.register_broker(client, Broker(1, "h", 9092), clock=FakeClock(), wait=never)


def test_our_former_sessions_node_is_waited_out_even_with_equal_bytes(
    client: ZkClient, former: ZkClient
) -> None:
    czxid = client.get("/brokers/ids/1")[1].czxid
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            former.close()

    registry.register_broker(client, Broker(1, "h", 9092), clock=FakeClock(), wait=wait)
    assert len(waits) == 3
    stat = client.get("/brokers/ids/1")[1]
    assert stat.ephemeral_owner == client.session_id
    assert stat.czxid > czxid


def test_stopping_ends_the_wait(client: ZkClient, former: ZkClient) -> None:
    with pytest.raises(ZkClosedError):
        registry.register_broker(
            client, Broker(1, "h", 9092), clock=FakeClock(), wait=lambda seconds: True
        )


def test_live_brokers_by_id(client: ZkClient) -> None:
    assert registry.live_brokers(client) == []
    for broker_id in (10, 9):
        registry.register_broker(client, Broker(broker_id, "h", 1), clock=FakeClock(), wait=never)
    assert registry.live_brokers(client) == [Broker(9, "h", 1), Broker(10, "h", 1)]
    assert registry.read_broker(client, 3) is None
    assert client.exists(znodes.broker_path(9)) is not None


def test_live_brokers_by_the_protocol_of_their_endpoints(
    client: ZkClient, caplog: pytest.LogCaptureFixture
) -> None:
    plain = Endpoint("PLAINTEXT", "PLAINTEXT", "h", 1)
    secure = Endpoint("CLIENT", "SASL_SSL", "s", 3)
    registry.register_broker(
        client, Broker(1, "h", 1), clock=FakeClock(), wait=never, endpoints=(plain, secure)
    )
    registry.register_broker(client, Broker(2, "h", 2), clock=FakeClock(), wait=never)
    registry.register_broker(
        client, Broker(3, "", -1), clock=FakeClock(), wait=never, endpoints=(secure,)
    )
    assert registry.live_brokers(client, "sasl_ssl") == [Broker(1, "s", 3), Broker(3, "s", 3)]
    assert caplog.messages == ["Skipping broker 2: it has no listener of sasl_ssl"]
    assert registry.live_brokers(client, "SSL") == []
    assert [each.port for each in registry.live_brokers(client)] == [1, 2, -1]


def test_nodes_that_are_no_brokers_are_passed_over(client: ZkClient) -> None:
    registry.register_broker(client, Broker(1, "h", 1), clock=FakeClock(), wait=never)
    for name in ("abc", "-1", "07", "99"):
        client.create(f"/brokers/ids/{name}", b"{")
    assert registry.broker_ids(client) == [1, 99]
    assert registry.live_brokers(client) == [Broker(1, "h", 1)]
    assert admin.live_broker_ids(client) == [1]
