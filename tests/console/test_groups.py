"""kafka08.console.groups."""

from __future__ import annotations

from kafka08.lag.collector import GroupLag
from kafka08.protocol import schemas
from kafka08.protocol.admin_schemas import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    GroupMember,
)
from tests.console.scene import ConsoleScene

_MEMBER = GroupMember("a-1", "app", "/10.0.0.1", b"", b"")


def test_only_groups_that_commit_to_kafka_are_asked_of_brokers() -> None:
    """The question would make the cluster create its offsets topic."""
    scene = ConsoleScene()
    scene.cluster.brokers[0] = scene.cluster.brokers[1]
    scene.server.put("/consumers/g/ids/a", b"{}")
    groups = scene.site.groups
    assert groups.members("g", GroupLag(("zookeeper",), 1, {})).members == ["a"]
    assert scene.cluster.sent(schemas.ConsumerMetadataRequest) == []
    assert not groups.members("h", GroupLag(("zookeeper", "kafka"), 0, {})).members
    assert scene.cluster.sent(schemas.ConsumerMetadataRequest) != []


def test_a_coordinator_that_did_not_answer_is_asked_again_after_a_minute() -> None:
    """Otherwise the console would not see members, until its own end, after one lost connection."""
    scene = ConsoleScene()
    scene.cluster.brokers[0] = scene.cluster.brokers[1]
    found = DescribedGroup(0, "h", "Stable", "consumer", "range", [_MEMBER])
    answers = [ConnectionResetError("the broker stops"), DescribeGroupsResponse([found])]

    def script(port: int, request: object) -> object:
        if not isinstance(request, DescribeGroupsRequest):
            return None
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    scene.cluster.script = script
    lag = GroupLag(("kafka",), 1, {})
    assert scene.site.groups.members("h", lag).members == []
    scene.runtime.clock.advance(59)
    assert scene.site.groups.members("h", lag).members == []
    assert len(answers) == 1
    scene.runtime.clock.advance(1)
    assert scene.site.groups.members("h", lag).members == ["a-1"]
