"""Later clients see the id of the cluster, and whether originals are registered."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.common import Broker
from kafka08.protocol.schemas import MetadataRequest
from kafka08.server.originals import FORMATS, Originals
from tests.server.admin_support import AdminRig
from zk import znodes


@pytest.fixture
def rig(tmp_path: Path) -> AdminRig:
    return AdminRig(tmp_path, modern=True)


def test_the_stored_id_of_the_cluster_counts(rig: AdminRig) -> None:
    rig.zk.create(znodes.CLUSTER_ID, b'{"version":"1","id":"abc"}', makepath=True)
    assert rig.call(MetadataRequest([]), 2).cluster_id == "abc"


def test_administrators_are_not_sent_to_originals(rig: AdminRig) -> None:
    original = Broker(0, "host0", 9090)
    rig.register(original, None)
    rig.cache.update([], [original, *rig.brokers])
    assert rig.call(MetadataRequest([]), 1).controller_id == 1


def modern(rig: AdminRig, broker_id: int = 1) -> Originals:
    return Originals(rig.zk, rig.cache, broker_id)


def test_registrations_are_read_again_when_the_live_brokers_change(rig: AdminRig) -> None:
    originals = modern(rig)
    assert not originals.are_registered()
    rig.register(Broker(7, "host7", 9097), None)
    assert not originals.are_registered(), "no change of the live brokers was told yet"
    rig.cache.update([], [*rig.brokers, Broker(7, "host7", 9097)])
    assert originals.are_registered()
    rig.zk.delete(znodes.broker_path(7))
    rig.cache.update([], list(rig.brokers))
    assert not originals.are_registered()


def test_a_broker_of_an_older_format_is_an_original(rig: AdminRig) -> None:
    rig.register(Broker(3, "host3", 9093), FORMATS - 1)
    assert modern(rig).are_registered()
    assert modern(rig).administrator() == 1
    for number in (1, 2):
        rig.zk.delete(znodes.broker_path(number))
    assert modern(rig, 5).administrator() == 5, "there is no better one"


def test_what_was_read_last_counts_while_zookeeper_is_away(
    rig: AdminRig, caplog: pytest.LogCaptureFixture
) -> None:
    originals = modern(rig)
    assert originals.administrator() == 1
    rig.cache.update([], rig.brokers[:1])
    rig.zk.down = True
    assert not originals.are_registered()
    assert modern(rig).cluster_id() is None
    assert "Cannot read the registrations" in caplog.text
    assert "Cannot read the id of the cluster" in caplog.text
    rig.zk.down = False
    rig.zk.delete(znodes.broker_path(1))
    assert originals.administrator() == 2, "it is read again"
