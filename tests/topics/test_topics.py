"""One cluster through both faces: through its ZooKeeper, and through a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.errors import AdminOperationError, TopicExistsError
from kafka08.placement import InvalidPartitionsError
from kafka08.topics.topics import BrokerTopics, Topics, ZooKeeperTopics
from tests.server.admin_support import AdminRig


@pytest.fixture
def rig(tmp_path: Path) -> AdminRig:
    return AdminRig(tmp_path)


@pytest.fixture(params=[ZooKeeperTopics, BrokerTopics])
def topics(request: pytest.FixtureRequest, rig: AdminRig) -> Topics:
    if request.param is ZooKeeperTopics:
        return ZooKeeperTopics(rig.zk)
    return BrokerTopics(rig.client([("host1", 9091)]))


def test_a_topic_from_its_creation_to_its_deletion(topics: Topics, rig: AdminRig) -> None:
    topics.create("t", None, None, {0: [1, 2], 1: [2, 1]}, {"flush.ms": "5"})
    assert topics.names() == ["t"]
    assert topics.own_config("t") == {"flush.ms": "5"}
    topics.change_config("t", {"min.insync.replicas": "2"})
    topics.add_partitions("t", 3, {0: [1], 1: [1], 2: [2, 1]})
    assert (rig.assignment("t") or {})[2] == (2, 1)
    [(topic, view)] = topics.describe(["t"], configs=True)
    assert topic == "t" and view is not None
    assert view.own == {"min.insync.replicas": "2"} and view.min_isr == 2
    assert [each.replicas for each in view.partitions] == [(1, 2), (2, 1), (2, 1)]
    [(_, view)] = topics.describe(["t"], configs=False)
    assert view is not None and view.own == {}
    assert list(topics.delete(["t"])) == [("t", True)]


def test_refusals(topics: Topics) -> None:
    topics.create("t", 1, 1, None, {})
    with pytest.raises(TopicExistsError):
        topics.create("t", 1, 1, None, {})
    with pytest.raises(InvalidPartitionsError):
        topics.create("u", 0, 1, None, {})
    with pytest.raises(AdminOperationError, match="can only be increased"):
        topics.add_partitions("t", 1, None)
