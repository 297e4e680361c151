from __future__ import annotations

import pytest

from kafka08 import admin
from kafka08.admin import FIXED_PARTITIONS
from kafka08.common import Broker
from tests.fakes.runtime import FakeClock
from tests.tools.command import Command
from tests.zk.conftest import chroot, client  # noqa: F401
from tools import admin_command
from tools.options import OptionError, UsageError
from tools.topics import topics
from zk import registry, znodes
from zk.client import ZkClient
from zk.locations import Location

FAILED = "Error while executing topic command "


class TopicsTool(Command):
    """kafka-topics against one chroot; what it printed comes back."""

    def __init__(self, client: ZkClient, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
        super().__init__(topics.main, "--zookeeper", client.connect, capsys=capsys)
        self.client = client
        for broker_id in (0, 1, 2):
            registry.register_broker(
                client, Broker(broker_id, "h", 9092), clock=FakeClock(), wait=lambda s: None
            )
        registry.ensure_common_paths(client)

    def fail(self, *words: str) -> str:
        """The message of a refused command, the rest of what it printed checked."""
        lines = self.run(*words)
        first = next(index for index, line in enumerate(lines) if line.startswith(FAILED))
        message = lines[first].removeprefix(FAILED)
        assert lines[first + 1].endswith(f": {message}")
        assert all(line.startswith("\tat ") for line in lines[first + 2 : -1])
        assert lines[-1] == ""
        return message

    def elect(self, topic: str, partition: int, leader: int, *isr: int) -> None:
        state = znodes.PartitionStateNode(leader, 0, 1, isr)
        path = znodes.partition_state_path(topic, partition)
        self.client.create(path, znodes.encode_partition_state(state), makepath=True)


@pytest.fixture
def tool(client: ZkClient, capsys: pytest.CaptureFixture[str]) -> TopicsTool:  # noqa: F811
    return TopicsTool(client, capsys)


def create(tool: TopicsTool, topic: str, *words: str) -> None:
    tool.run("--create", "--topic", topic, "--replica-assignment", "1:2:0,2:0:1", *words)


def test_create_and_list(tool: TopicsTool) -> None:
    words = ["--create", "--replication-factor", "1", "--partitions", "1", "--topic"]
    assert tool.run(*words, "test") == ['Created topic "test".']
    assert tool.run(*words, "other") == ['Created topic "other".']
    assert tool.run("--list") == ["other", "test"]
    assert tool.run("--list", "--topic", "t.*,x") == ["test"]
    assert tool.fail(*words, "test") == 'Topic "test" already exists.'


def test_describe(tool: TopicsTool) -> None:
    create(tool, "t", "--config", "flush.ms=5", "--config", "cleanup.policy=compact")
    tool.elect("t", 0, 1, 1, 2, 0)
    tool.elect("t", 1, -1, 2)
    header = (
        "Topic:t\tPartitionCount:2\tReplicationFactor:3\tConfigs:cleanup.policy=compact,flush.ms=5"
    )
    first = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,0\tIsr: 1,2,0"
    second = "\tTopic: t\tPartition: 1\tLeader: -1\tReplicas: 2,0,1\tIsr: 2"
    assert tool.run("--describe") == [header, first, second]
    assert tool.run("--describe", "--topic", "t") == [header, first, second]
    assert tool.run("--desc", "--under-replicated-partitions") == [second]
    assert tool.run("--describe", "--unavailable-partitions") == [second]
    assert tool.run("--describe", "--topic", "nothing") == []


def test_describe_before_the_first_election_and_overrides(tool: TopicsTool) -> None:
    create(tool, "plain")
    create(tool, "tuned", "--config", "flush.ms=5")
    overrides = ["Topic:tuned\tPartitionCount:2\tReplicationFactor:3\tConfigs:flush.ms=5"]
    assert tool.run("--describe", "--topics-with-overrides") == overrides
    assert tool.run("--describe", "--topic", "plain") == [
        "Topic:plain\tPartitionCount:2\tReplicationFactor:3\tConfigs:",
        "\tTopic: plain\tPartition: 0\tLeader: none\tReplicas: 1,2,0\tIsr: ",
        "\tTopic: plain\tPartition: 1\tLeader: none\tReplicas: 2,0,1\tIsr: ",
    ]


def test_a_leader_that_is_not_registered_is_unavailable(tool: TopicsTool) -> None:
    create(tool, "t")
    tool.elect("t", 0, 0, 0)
    tool.elect("t", 1, 9, 9)
    lines = tool.run("--describe", "--unavailable-partitions")
    assert lines == ["\tTopic: t\tPartition: 1\tLeader: 9\tReplicas: 2,0,1\tIsr: 9"]


def test_alter(tool: TopicsTool) -> None:
    create(tool, "t", "--config", "flush.ms=5")
    updated = ['Updated config for topic "t".']
    assert tool.run("--alter", "--topic", "t", "--config", "retention.ms = 7") == updated
    assert tool.run("--alter", "--topic", "t", "--delete-config", "flush.ms") == updated
    assert "Configs:retention.ms=7" in tool.run("--describe", "--topics-with-overrides")[0]
    warning = (
        "WARNING: If partitions are increased for a topic that has a key, the partition logic or "
        "ordering of the messages will be affected"
    )
    grown = tool.run("--alter", "--topic", "t", "--partitions", "4")
    assert grown == [warning, "Adding partitions succeeded!"]
    assert tool.fail("--alter", "--topic", "t", "--partitions", "4") == (
        "The number of partitions for a topic can only be increased"
    )
    assert tool.run("--alter", "--topic", "nothing", "--config", "bad") == []
    for topic, refusal in FIXED_PARTITIONS.items():
        create(tool, topic)
        assert tool.fail("--alter", "--topic", topic, "--partitions", "9") == refusal


def test_delete(tool: TopicsTool) -> None:
    create(tool, "t")
    assert tool.run("--delete", "--topic", "t") == [
        "Topic t is marked for deletion.",
        "Note: This will have no impact if delete.topic.enable is not set to true.",
    ]
    assert tool.run("--delete", "--topic", "t") == ["Topic t is already marked for deletion."]
    assert tool.run("--delete", "--topic", "x") == ["Topic x does not exist"]
    assert tool.run("--list") == ["t - marked for deletion"]


def test_refusals_in_the_originals_words(tool: TopicsTool) -> None:
    automatic = ["--replication-factor", "1", "--partitions", "1"]
    by_hand = ["--create", "--topic", "n", "--replica-assignment"]
    for words, message in [
        (["--replication-factor", "9", "--partitions", "1", "--topic", "a b"],
         "replication factor: 9 larger than available brokers: 3"),
        (["--replication-factor", "1", "--partitions", "0", "--topic", "t"],
         "number of partitions must be larger than 0"),
        ([*automatic, "--topic", "a b"],
         "topic name a b is illegal, contains a character other than ASCII alphanumerics, "
         "'.', '_' and '-'"),
        ([*automatic, "--topic", "."], 'topic name cannot be "." or ".."'),
        ([*automatic, "--topic", "t", "--config", "x=1"],
         'requirement failed: Unknown configuration "x".'),
        ([*automatic, "--topic", "t", "--config", "x"],
         "requirement failed: Invalid topic config: all configs to be added must be in the "
         'format "key=val".'),
        ([*automatic, "--topic", "t", "--config", "flush.ms="],
         "requirement failed: Invalid topic config: all configs to be added must be in the "
         'format "key=val".'),
        ([*automatic, "--topic", "t", "--config", "retention.ms=x"], 'For input string: "x"'),
        ([*automatic, "--topic", "t", "--config", "min.insync.replicas=0"],
         "Wrong value 0 of min.insync.replicas in topic configuration;  Valid values are at "
         "least 1"),
        (["--replication-factor", "1", "--partitions", "x", "--topic", "t"],
         "Cannot convert argument 'x' of option ['partitions'] to class java.lang.Integer"),
    ]:  # fmt: skip
        assert tool.fail("--create", *words) == message
    assert tool.fail(*by_hand, "1:1") == (
        "Partition replica lists may not contain duplicate entries: 1"
    )
    assert tool.fail(*by_hand, "0:1,1") == "Partition 1 has different replication factor: 1"
    assert tool.fail(*by_hand, "0:x") == 'For input string: "x"'
    assert tool.fail("--list", "--topic", "[") == "[ is an invalid regex."
    assert tool.run("--list") == []


def test_strict_exit(tool: TopicsTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(admin_command.STRICT_EXIT, "1")
    lines = tool.run("--alter", "--topic", "[", status=1)
    assert lines[0] == f"{FAILED}[ is an invalid regex."


@pytest.mark.parametrize(
    ("words", "first_line"),
    [
        ([], "Create, delete, describe, or change a topic."),
        (
            ["--zookeeper", "z", "--list", "--create"],
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete",
        ),
        (["--list"], 'Missing required argument "[zookeeper]"'),
        (["--zookeeper", "z", "--create"], 'Missing required argument "[topic]"'),
        (
            ["--zookeeper", "z", "--list", "--config", "a=b"],
            'Option "[config]" can\'t be used with option"[list]"',
        ),
        (
            ["--zookeeper", "z", "--alter", "--topic", "t", "--replication-factor", "1"],
            'Option "[replication-factor]" can\'t be used with option"[alter]"',
        ),
        (
            ["--zookeeper", "z", "--alter", "--topic", "t", "--part", "2", "--replica-assign", "0"],
            'Option "[replica-assignment]" can\'t be used with option"[partitions]"',
        ),
    ],
)
def test_command_lines_refused_with_the_usage(words: list[str], first_line: str) -> None:
    with pytest.raises(UsageError) as caught:
        topics.main(words)
    assert str(caught.value).splitlines()[0] == first_line
    assert "--replica-assignment" in str(caught.value)


def test_units_count_unless_they_are_told_not_to(tool: TopicsTool) -> None:
    for broker_id in (3, 4, 5):
        registry.register_broker(
            tool.client,
            Broker(broker_id, "h", 9092),
            clock=FakeClock(),
            wait=lambda s: None,
            location=Location(unit="u"),
        )
    words = ["--replication-factor", "2", "--partitions", "30", "--create", "--topic"]

    def together(topic: str) -> int:
        assignment = admin.fetch_assignment(tool.client, topic) or {}
        return sum(set(each) <= {3, 4, 5} for each in assignment.values())

    tool.run(*words, "apart")
    tool.run(*words, "flat", "--disable-rack-aware")
    tool.run("--alter", "--topic", "flat", "--partitions", "60", "--disable-rack-aware")
    assert together("apart") == 0
    assert together("flat") == 12  # 6 of the 30 pairs of brokers, twice


def test_options_of_later_releases(tool: TopicsTool) -> None:
    counts = ["--replication-factor", "1", "--partitions", "1"]
    create(tool, "t", "--if-not-exists", "--force", "--disable-rack-aware")
    assert tool.run("--create", "--topic", "t", "--if-not-exists", *counts) == []
    assert tool.run("--delete", "--topic", "no", "--if-exists") == []
    assert tool.run("--alter", "--topic", "no", "--if-exists", "--partitions", "9") == []
    assert tool.run("--describe", "--topic", "no", "--if-exists") == []
    create(tool, "__consumer_offsets")
    assert tool.run("--list") == ["__consumer_offsets", "t"]
    assert tool.run("--list", "--exclude-internal") == ["t"]
    assert tool.run("--describe", "--exclude-internal", "--topic", "__.*") == []


def test_partitions_by_min_isr(tool: TopicsTool) -> None:
    create(tool, "plain")
    tool.elect("plain", 0, 1, 1)
    tool.elect("plain", 1, -1)
    create(tool, "two", "--config", "min.insync.replicas=2")
    tool.elect("two", 0, 1, 1)
    tool.elect("two", 1, 1, 1, 2)
    assert tool.run("--describe", "--under-min-isr-partitions") == [
        "\tTopic: plain\tPartition: 1\tLeader: -1\tReplicas: 2,0,1\tIsr: ",
        "\tTopic: two\tPartition: 0\tLeader: 1\tReplicas: 1,2,0\tIsr: 1",
    ]
    assert tool.run("--describe", "--at-min-isr-partitions") == [
        "\tTopic: plain\tPartition: 0\tLeader: 1\tReplicas: 1,2,0\tIsr: 1",
        "\tTopic: two\tPartition: 1\tLeader: 1\tReplicas: 2,0,1\tIsr: 1,2",
    ]


@pytest.mark.parametrize(
    ("words", "first_line"),
    [
        (
            ["--zookeeper", "z", "--bootstrap-server", "h:1", "--list"],
            "Only one of --bootstrap-server or --zookeeper must be specified",
        ),
        (
            ["--zookeeper", "z", "--create", "--topic", "t", "--if-exists"],
            'Option "[if-exists]" can\'t be used with option"[create]"',
        ),
        (
            ["--zookeeper", "z", "--delete", "--topic", "t", "--if-not-exists"],
            'Option "[if-not-exists]" can\'t be used with option"[delete]"',
        ),
        (
            ["--zookeeper", "z", "--delete", "--topic", "t", "--exclude-internal"],
            'Option "[exclude-internal]" can\'t be used with option"[delete]"',
        ),
        (
            ["--zookeeper", "z", "--describe", "--if-exists"],
            'Missing required argument "[topic]"',
        ),
        (
            ["--zookeeper", "z", "--list", "--at-min-isr-partitions"],
            'Option "[at-min-isr-partitions]" can\'t be used with option"[list]"',
        ),
        (
            ["--bootstrap-server", "h:1", "--alter", "--topic", "t"],
            'Missing required argument "[partitions]"',
        ),
        (
            ["--bootstrap-server", "h", "--list"],
            "Please provide valid host:port like host1:9091,host2:9092",
        ),
    ],
)
def test_options_of_later_releases_refused_with_the_usage(
    words: list[str], first_line: str
) -> None:
    with pytest.raises(UsageError) as caught:
        topics.main(words)
    assert str(caught.value).splitlines()[0] == first_line


def test_options_of_later_releases_take_no_prefix_away(tool: TopicsTool) -> None:
    create(tool, "t")
    tool.elect("t", 0, 1, 1, 2, 0)
    tool.elect("t", 1, 1, 1)
    assert len(tool.run("--desc", "--und")) == 1
    assert tool.run("--al", "--topic", "t", "--co", "flush.ms=1") == [
        'Updated config for topic "t".'
    ]
    with pytest.raises(OptionError, match="'if-not' is not a recognized option"):
        topics.main(["--zookeeper", "z", "--create", "--if-not"])


def test_missing_counts_are_usage_too(tool: TopicsTool) -> None:
    with pytest.raises(UsageError, match=r'Missing required argument "\[partitions\]"'):
        tool.run("--create", "--topic", "t")
