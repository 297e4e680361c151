"""ApiVersions: what is listed, and to whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.common import Broker
from kafka08.errors import LaterCode, ProtocolError
from kafka08.network.peer import Peer, current_peer
from kafka08.network.server import ConnectionClosed
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.later_schemas import ApiVersionsRequest
from kafka08.protocol.registry import APIS
from kafka08.server.apis.versions import LoginVersions
from tests.server.admin_support import AdminRig
from zk import znodes

JAVA = ApiVersionsRequest("apache-kafka-java", "4.3.0")


@pytest.fixture
def rig(tmp_path: Path) -> AdminRig:
    return AdminRig(tmp_path, later=True)


@pytest.mark.scenario("modern-3")
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_what_has_a_handler_is_listed(rig: AdminRig, version: int) -> None:
    answer = rig.call(JAVA, version)
    listed = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert answer.error == 0
    assert listed == {18: (0, 3), **{key: (0, api.last) for key, api in rig.served.items()}}
    assert list(listed) == sorted(listed)
    assert listed[3] == (0, 8)
    assert 0 not in listed  # this rig has no handler for Produce


@pytest.mark.scenario("modern-2")
@pytest.mark.parametrize("version", [4, 5, 9, -1])
def test_later_versions_are_answered_in_version_0_with_ours(rig: AdminRig, version: int) -> None:
    """The rest of such a request is not read. Golden: raw apiversions v9 of Kafka 3.9.1."""
    frame = bytearray.fromhex("00120009000000ca00037261770004726177023100")
    frame[2:4] = version.to_bytes(2, "big", signed=True)
    reply = rig.dispatcher.handle(memoryview(frame), "127.0.0.1")
    assert b"".join(reply or ())[4:] == bytes.fromhex("000000ca002300000001001200000003")


@pytest.mark.parametrize("name", ["", "-a", "a b", "a_"])
def test_software_has_a_name(rig: AdminRig, name: str) -> None:
    answer = rig.call(ApiVersionsRequest(name, "1"), 3)
    assert answer[:2] == (LaterCode.INVALID_REQUEST, [])
    assert rig.call(ApiVersionsRequest(), 2).error == 0


def test_the_software_is_that_of_the_peer(rig: AdminRig) -> None:
    peer = Peer("h:1")
    token = current_peer.set(peer)
    try:
        rig.call(ApiVersionsRequest("a b", "1"), 3)
        assert peer.software is None
        rig.call(JAVA, 3)
        assert peer.software == ("apache-kafka-java", "4.3.0")
        rig.call(ApiVersionsRequest(), 0)
        assert peer.software == ("", "")
    finally:
        current_peer.reset(token)


@pytest.mark.scenario("modern-53")
def test_the_connection_closes_while_an_original_is_registered(rig: AdminRig) -> None:
    rig.call(JAVA, 3)
    original = Broker(7, "host7", 9097)
    rig.register(original, None)
    rig.registrations.step()
    with pytest.raises(ConnectionClosed):
        rig.call(JAVA, 3)
    rig.zk.delete(znodes.broker_path(7))
    rig.registrations.step()
    assert rig.call(JAVA, 3).error == 0


@pytest.mark.scenario("modern-1")
def test_it_is_unknown_when_the_setting_is_off(tmp_path: Path) -> None:
    rig = AdminRig(tmp_path)
    with pytest.raises(ProtocolError, match="Wrong request type 18"):
        rig.call(JAVA, 0)
    with pytest.raises(ProtocolError, match="Version 2 is invalid"):
        rig.call(a.CreateTopicsRequest([], 0), 2)


@pytest.mark.scenario("security-24")
@pytest.mark.parametrize("later", [True, False])
def test_listeners_with_logins_name_versions_even_beside_an_original(
    rig: AdminRig, later: bool
) -> None:
    served = {key: APIS[key] for key in (0, 3, 9, 11, 18, 32, 42)}
    versions = LoginVersions(served, rig.cluster, later)
    old = [(0, 0, 0), (3, 0, 0), (9, 0, 1), (32, 0, 0)]
    new = [(key, 0, APIS[key].last) for key in (0, 3, 9, 11, 32, 42)]
    assert [each[:3] for each in versions.now()] == (new if later else old)
    rig.register(Broker(7, "h", 9092), None)
    rig.registrations.step()
    assert [each[:3] for each in versions.now()] == old
