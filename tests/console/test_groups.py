"""kafka08.console.groups."""

from __future__ import annotations

from kafka08.lag.collector import GroupLag
from kafka08.protocol import schemas
from tests.console.scene import Scene


def test_only_groups_that_commit_to_kafka_are_asked_of_brokers() -> None:
    """The question would make the cluster create its offsets topic."""
    scene = Scene()
    scene.cluster.brokers[0] = scene.cluster.brokers[1]
    scene.server.put("/consumers/g/ids/a", b"{}")
    groups = scene.site.groups
    assert groups.members("g", GroupLag(("zookeeper",), 1, {})).members == ["a"]
    assert scene.cluster.sent(schemas.ConsumerMetadataRequest) == []
    assert not groups.members("h", GroupLag(("zookeeper", "kafka"), 0, {})).members
    assert scene.cluster.sent(schemas.ConsumerMetadataRequest) != []
