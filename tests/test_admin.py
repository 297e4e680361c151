from __future__ import annotations

import pytest

from kafka08 import admin
from kafka08.common import Broker
from kafka08.errors import AdminOperationError, ConfigError, InvalidTopicError, TopicExistsError
from kafka08.settings.settings import NumberFormatError
from tests.fakes.runtime import FakeClock
from tests.zk import server
from tests.zk.conftest import chroot, client  # noqa: F401
from tests.zk.test_client import lose_answers
from zk import registry
from zk.client import ZkClient
from zk.errors import NodeExistsError, NoNodeError
from zk.locations import Location
from zk.znodes import PartitionStateNode, encode_partition_state


def add_brokers(client: ZkClient, *ids: int) -> None:  # noqa: F811
    for broker_id in ids:
        registry.register_broker(
            client, Broker(broker_id, "h", 9092), clock=FakeClock(), wait=lambda s: None
        )


def test_replicas_are_in_different_units_or_not_as_one_likes(client: ZkClient) -> None:  # noqa: F811
    for broker_id in range(4):
        registry.register_broker(
            client, Broker(broker_id, "h", 9092), clock=FakeClock(), wait=lambda s: None,
            location=Location("r", f"u{broker_id // 2}"),
        )  # fmt: skip
    assert [tuple(each) for each in admin.live_places(client)] == [
        (0, "r", "u0"), (1, "r", "u0"), (2, "r", "u1"), (3, "r", "u1"),
    ]  # fmt: skip

    def units(assignment: admin.Assignment) -> set[int]:
        """The numbers of units that the partitions are in."""
        return {len({each // 2 for each in replicas}) for replicas in assignment.values()}

    assert units(admin.create_topic(client, "t", 12, 2)) == {2}
    assert units(admin.add_partitions(client, "t", 24)) == {2}
    assert units(admin.create_topic(client, "flat", 12, 2, rack_aware=False)) == {1, 2}
    assert units(admin.add_partitions(client, "flat", 24, rack_aware=False)) == {1, 2}


def test_a_malformed_registration_is_no_place(
    client: ZkClient,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    add_brokers(client, 1)
    client.create("/brokers/ids/2", b"{}")
    assert [each.broker_id for each in admin.live_places(client)] == [1]
    assert "Skipping broker 2: its registration is malformed" in caplog.messages


def test_a_topic_and_its_config_appear_together(client: ZkClient) -> None:  # noqa: F811
    add_brokers(client, 1, 2)
    assignment = admin.create_topic(client, "t", 3, 2, {"retention.ms": "60000"})
    assert admin.fetch_assignment(client, "t") == {p: tuple(r) for p, r in assignment.items()}
    topic, config = client.get("/brokers/topics/t")[1], client.get("/config/topics/t")
    assert config[0] == b'{"version":1,"config":{"retention.ms":"60000"}}'
    assert config[1].czxid == topic.czxid
    assert admin.list_topics(client) == ["t"]
    assert admin.fetch_all_topic_configs(client) == {"t": {"retention.ms": "60000"}}


def test_refused_topics_leave_nothing_behind(client: ZkClient) -> None:  # noqa: F811
    with pytest.raises(NoNodeError, match="NoNode for /brokers/ids"):
        admin.create_topic(client, "t", 1, 1)
    add_brokers(client, 1)
    for name, factor, config, error, text in [
        ("t", 2, {}, AdminOperationError, "replication factor: 2 larger than available"),
        ("a b", 1, {}, InvalidTopicError, "topic name a b is illegal"),
        ("t", 1, {"x": "1"}, ConfigError, 'requirement failed: Unknown configuration "x".'),
        ("t", 1, {"retention.ms": "x"}, ConfigError, 'For input string: "x"'),
        ("t", 1, {"min.insync.replicas": "0"}, ConfigError, "Wrong value 0 of min.insync"),
    ]:
        with pytest.raises(error, match=text):
            admin.create_topic(client, name, 1, factor, config)
    for assignment, text in [
        ({0: [1, 1]}, r"Duplicate replica assignment found: Map\(0 -> List\(1, 1\)\)"),
        ({0: [1], 1: [1, 2]}, "All partitions should have the same number"),
    ]:
        with pytest.raises(admin.InvalidArgumentError, match=text):
            admin.create_topic_with_assignment(client, "t", assignment)
    assert admin.list_topics(client) == []
    assert client.exists("/config/topics/t") is None


def test_the_second_creator_loses_and_changes_nothing(client: ZkClient) -> None:  # noqa: F811
    add_brokers(client, 1)
    admin.create_topic(client, "t", 1, 1, {"flush.ms": "1"})
    with pytest.raises(TopicExistsError, match=r'^Topic "t" already exists\.$'):
        admin.create_topic(client, "t", 2, 1, {"flush.ms": "2"})
    with pytest.raises(TopicExistsError, match="topic t already exists"):
        admin._create(client, "t", b"other", b"other")
    assert admin.fetch_topic_config(client, "t") == {"flush.ms": "1"}


def test_a_config_left_behind_is_replaced(client: ZkClient) -> None:  # noqa: F811
    client.create("/config/topics/t", b"old", makepath=True)
    admin.create_topic_with_assignment(client, "t", {0: [1]}, {"flush.ms": "1"})
    assert admin.fetch_topic_config(client, "t") == {"flush.ms": "1"}


def test_a_creation_whose_answer_was_lost(
    client: ZkClient,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry.ensure_common_paths(client)
    kazoo = server.kazoo_of(client)
    real = kazoo.transaction

    def transaction() -> object:
        made = real()
        commit = made.commit_async

        def lost() -> object:
            monkeypatch.undo()
            commit().get()
            return server.lost_answer(client)

        made.commit_async = lost
        return made

    monkeypatch.setattr(kazoo, "transaction", transaction)
    admin.create_topic_with_assignment(client, "t", {0: [1]})
    assert admin.fetch_assignment(client, "t") == {0: (1,)}


def test_partitions_are_added_behind_the_existing_ones(client: ZkClient) -> None:  # noqa: F811
    add_brokers(client, 1, 3, 5, 7)
    admin.create_topic_with_assignment(client, "t", {p: [3, 1, 5] for p in range(6)})
    assert admin.add_partitions(client, "t", 9) == {6: [3, 5, 7], 7: [5, 7, 1], 8: [7, 3, 5]}
    stored = admin.fetch_assignment(client, "t")
    assert stored is not None
    assert stored[5] == (3, 1, 5)
    assert stored[8] == (7, 3, 5)
    for count, manual, text in [
        (9, [], "The number of partitions for a topic can only be increased"),
        (10, [[1, 9, 3]], "some specified brokers not available"),
        (10, [[1, 1, 3]], "duplicate brokers"),
        (10, [[1, 3]], "is not equal to the existing replication factor for the topic 3"),
    ]:
        with pytest.raises(AdminOperationError, match=text):
            admin.add_partitions(client, "t", count, manual)
    assert admin.add_partitions(client, "t", 10, [[7, 5, 3]]) == {9: [7, 5, 3]}
    with pytest.raises(AdminOperationError, match="The topic no does not exist"):
        admin.add_partitions(client, "no", 2)


def test_a_config_change_is_notified(client: ZkClient) -> None:  # noqa: F811
    with pytest.raises(AdminOperationError, match='Topic "t" does not exist'):
        admin.change_topic_config(client, "t", {})
    admin.create_topic_with_assignment(client, "t", {0: [1]})
    for value in ("1", "2"):
        admin.change_topic_config(client, "t", {"flush.ms": value})
    assert admin.fetch_topic_config(client, "t") == {"flush.ms": "2"}
    changes = sorted(client.children("/config/changes"))
    assert changes == ["config_change_0000000000", "config_change_0000000001"]
    assert client.get("/config/changes/config_change_0000000001")[0] == b'"t"'


def test_deletion_is_a_mark(client: ZkClient) -> None:  # noqa: F811
    assert not admin.is_marked_for_deletion(client, "t")
    admin.delete_topic(client, "t")
    assert admin.is_marked_for_deletion(client, "t")
    assert client.get("/admin/delete_topics/t")[0] == b""
    with pytest.raises(NodeExistsError):
        admin.delete_topic(client, "t")


def test_a_mark_whose_answer_was_lost(
    client: ZkClient,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry.ensure_common_paths(client)
    lose_answers(client, monkeypatch, "create_async")
    admin.delete_topic(client, "t")


def test_states(client: ZkClient) -> None:  # noqa: F811
    assert admin.fetch_partition_state(client, "t", 0) is None
    state = PartitionStateNode(1, 2, 3, (1, 4))
    path = "/brokers/topics/t/partitions/0/state"
    client.create(path, encode_partition_state(state), makepath=True)
    assert admin.fetch_partition_state(client, "t", 0) == state


def test_replica_assignments() -> None:
    assert admin.parse_replica_assignment("0:1,1:2,") == {0: [0, 1], 1: [1, 2]}
    with pytest.raises(admin.AdminCommandFailedError, match=r"duplicate entries: 1$"):
        admin.parse_replica_assignment("1:2:1")
    with pytest.raises(AdminOperationError, match="Partition 1 has different replication factor"):
        admin.parse_replica_assignment("0:1,1")
    with pytest.raises(NumberFormatError):
        admin.parse_replica_assignment("a")
