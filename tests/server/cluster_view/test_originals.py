"""Later clients see the id of the cluster, and whether originals are registered."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.common import TRANSACTIONS_TOPIC, Broker
from kafka08.protocol.schemas import MetadataRequest
from kafka08.server.cluster_view.originals import FORMATS, Originals, warn_of_originals
from tests.server.admin_support import AdminRig
from zk import znodes
from zk.registry import registrations


@pytest.fixture
def rig(tmp_path: Path) -> AdminRig:
    return AdminRig(tmp_path, later=True)


def test_the_stored_id_of_the_cluster_counts(rig: AdminRig) -> None:
    rig.zk.create(znodes.CLUSTER_ID, b'{"version":"1","id":"abc"}', makepath=True)
    assert rig.call(MetadataRequest([]), 2).cluster_id == "abc"


def test_administrators_are_not_sent_to_originals(rig: AdminRig) -> None:
    original = Broker(0, "host0", 9090)
    rig.register(original, None)
    rig.registrations.step()
    assert rig.call(MetadataRequest([]), 1).controller_id == 1


def later(rig: AdminRig, broker_id: int = 1) -> Originals:
    return Originals(rig.zk, broker_id, rig.later.append)


def read(rig: AdminRig, originals: Originals) -> None:
    originals.registered(registrations(rig.zk))


def test_nothing_is_certain_before_the_registrations_were_read(rig: AdminRig) -> None:
    originals = later(rig)
    assert originals.are_registered()
    read(rig, originals)
    assert not originals.are_registered()


def test_registrations_are_read_again_when_a_broker_comes_or_goes(rig: AdminRig) -> None:
    assert not rig.cluster.are_registered()
    rig.register(Broker(7, "host7", 9097), None)
    rig.registrations.step()
    assert rig.cluster.are_registered()
    assert rig.later[-1] == {1, 2}
    rig.zk.delete(znodes.broker_path(7))
    rig.registrations.step()
    assert not rig.cluster.are_registered()
    assert rig.later[-1] == {1, 2}, "it may be back with the same replicas"
    rig.register(Broker(7, "host7", 9097), FORMATS)
    rig.registrations.step()
    assert rig.later[-1] == {1, 2, 7}


def test_a_broker_that_is_away_at_a_start_is_what_it_was(rig: AdminRig) -> None:
    """Only a broker that was seen with later formats counts as one of them."""
    rig.zk.delete(znodes.broker_path(2))
    read(rig, later(rig))
    assert rig.later[-1] == {1, 2}
    rig.register(Broker(2, "host2", 9092), None)
    read(rig, later(rig))
    assert rig.later[-1] == {1}
    rig.zk.delete(znodes.broker_path(2))
    read(rig, later(rig, 3))
    assert rig.later[-1] == {1, 3}, "the broker itself is, before it registers"


def test_a_new_session_reads_again(rig: AdminRig) -> None:
    rig.zk.expire()
    rig.register(Broker(7, "host7", 9097), None)
    rig.registrations.session_expired()
    rig.registrations.step()
    assert rig.cluster.are_registered()


def test_a_broker_of_an_older_format_is_an_original(rig: AdminRig) -> None:
    rig.register(Broker(3, "host3", 9093), FORMATS - 1)
    originals = later(rig, 5)
    read(rig, originals)
    assert originals.are_registered() and rig.later[-1] == {1, 2, 5}
    assert originals.administrator() == 1
    for number in (1, 2):
        rig.zk.delete(znodes.broker_path(number))
    read(rig, originals)
    assert originals.administrator() == 5, "there is no better one"


def test_what_was_read_last_counts_while_zookeeper_is_away(
    rig: AdminRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.register(Broker(7, "host7", 9097), None)
    rig.controller_works = False
    rig.zk.down = True
    rig.registrations.step()
    assert not rig.cluster.are_registered()
    assert later(rig).cluster_id() is None
    assert "Cannot read the registrations" in caplog.text
    assert "Cannot read the id of the cluster" in caplog.text
    rig.zk.down = False
    rig.registrations.step()
    assert rig.cluster.are_registered(), "it is read again"


def test_who_serves_later_requests(rig: AdminRig) -> None:
    originals = later(rig)
    assert not originals.serves_later(2)
    read(rig, originals)
    assert originals.serves_later(2) and not originals.serves_later(9)
    rig.register(Broker(7, "host7", 9097), None)
    rig.zk.delete(znodes.broker_path(2))
    read(rig, originals)
    assert not originals.serves_later(7)
    assert not originals.serves_later(2), "it may come back as another"


def test_with_acls_in_zookeeper_originals_are_warned_of(
    rig: AdminRig, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_originals(rig.zk, 1)
    assert "zookeeper.set.acl" not in caplog.text
    rig.register(Broker(0, "host0", 9090), None)
    warn_of_originals(rig.zk, 1)
    [told] = [text for text in caplog.messages if "zookeeper.set.acl" in text]
    assert "the brokers [0] may be of 0.8.2.2" in told
    assert "only those below /consumers stay open" in told
    caplog.clear()
    warn_of_originals(rig.zk, 0)
    assert "[0]" not in caplog.text


@pytest.mark.scenario("transactions-50")
def test_an_original_stores_no_transactions(rig: AdminRig) -> None:
    """The topic of their states is not made, which would have replicas there."""
    rig.register(Broker(7, "host7", 9097), None)
    rig.registrations.step()
    for _ in range(2):
        (topic,) = rig.call(MetadataRequest([TRANSACTIONS_TOPIC]), 1).topics
        assert topic.error == 43
    assert not rig.zk.exists(znodes.topic_path(TRANSACTIONS_TOPIC))
    rig.zk.delete(znodes.broker_path(7))
    rig.registrations.step()
    (topic,) = rig.call(MetadataRequest([TRANSACTIONS_TOPIC]), 1).topics
    assert topic.error == 5
    assert rig.zk.exists(znodes.topic_path(TRANSACTIONS_TOPIC))


def test_which_brokers_hold_later_formats(rig: AdminRig) -> None:
    originals = later(rig)
    assert originals.can_store_later([1, 7]), "nothing is known yet"
    rig.register(Broker(7, "host7", 9097), None)
    read(rig, originals)
    assert originals.can_store_later([])
    assert originals.can_store_later([1, 2])
    assert not originals.can_store_later([1, 7])
    rig.zk.delete(znodes.broker_path(7))
    read(rig, originals)
    assert not originals.can_store_later([7]), "it may be back"
