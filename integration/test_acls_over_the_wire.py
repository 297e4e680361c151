"""Access rules changed through a broker: our tool, that of Kafka 3.9, and librdkafka."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from integration import modern
from integration.harness import Broker, Process, Tools, ZooKeeper, properties
from integration.test_acls import ACLS, ANONYMOUS, PROPS, TOPIC_CODE, From, Rules, current
from integration.wire import WireError, wait_until

ADMIN, STRANGER = "127.0.0.1", "127.0.0.2"
needs_modern = pytest.mark.skipif(bool(modern.missing()), reason=modern.missing())


@pytest.fixture(scope="module")
def closed(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory, our_tools: Tools
) -> Iterator[tuple[Broker, Rules]]:
    """A broker whose rules clients from one address may change."""
    rules = Rules(f"{zookeeper.connect}/acls-wire", our_tools)
    for operation in ("ClusterAction", "Alter", "Describe"):
        rules.allow("--cluster", "--operation", operation, "--allow-host", ADMIN)
    rules.allow("--topic", "*", "--operation", "Describe")
    broker = Broker("ours", tmp_path_factory.mktemp("wire"), rules.connect, props=PROPS).start()
    broker.create_topic("t")
    yield broker, rules
    broker.kill()


def through(broker: Broker, tools: Tools, *words: str) -> str:
    done = tools.run(ACLS, "--bootstrap-server", broker.address, *words)
    assert (done.code, done.err) == (0, "")
    return done.out


@needs_modern
def test_both_tools_show_and_change_the_same_rules_through_a_broker(
    closed: tuple[Broker, Rules], our_tools: Tools, tmp_path: Path
) -> None:
    broker, rules = closed
    config = tmp_path / "client.properties"
    config.write_text(properties({"security.protocol": "PLAINTEXT"}))
    config_option = ("--command-config", str(config))

    def theirs(*words: str) -> str:
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{modern.directory()}/*", ACLS]
        where = ["--bootstrap-server", broker.address, *config_option]
        done = subprocess.run(
            [*command, *where, *words], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    add = ("--add", "--allow-principal", "User:CN=a b,OU=o", "--allow-principal", "User:bob")
    theirs(*add, "--producer", "--topic", "made")
    prefixed = ("--topic", "pre", "--resource-pattern-type", "prefixed")
    through(broker, our_tools, *config_option, *add, "--operation", "Read", *prefixed)
    listed = current(theirs("--list"))
    assert listed == current(through(broker, our_tools, "--list")) == current(rules.ours("--list"))
    assert len(listed) == 4
    matching = ("--list", "--topic", "prefix", "--resource-pattern-type", "match")
    assert current(theirs(*matching)) == current(through(broker, our_tools, *matching))
    theirs("--remove", "--force", *prefixed)
    through(broker, our_tools, "--remove", "--force", "--topic", "made")
    assert len(current(rules.ours("--list"))) == 2


def binding(name: str, operation: AclOperation) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, name, ResourcePatternType.LITERAL, ANONYMOUS, "*", operation,
        AclPermissionType.ALLOW,
    )  # fmt: skip


ALL_OF_TOPICS = AclBindingFilter(
    ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
    AclPermissionType.ANY,
)  # fmt: skip


def test_librdkafka_changes_rules_and_they_count(closed: tuple[Broker, Rules]) -> None:
    broker, _ = closed
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    read = binding("t", AclOperation.READ)
    with From(broker.port, STRANGER) as wire:
        with pytest.raises(WireError) as caught:
            wire.fetch("t", 0, 0)
        assert caught.value.code == TOPIC_CODE
        for future in admin.create_acls([read, binding("u", AclOperation.WRITE)]).values():
            assert future.result(60) is None
        found = admin.describe_acls(ALL_OF_TOPICS).result(60)
        assert {(each.name, each.operation) for each in found} == {
            ("*", AclOperation.DESCRIBE), ("t", AclOperation.READ), ("u", AclOperation.WRITE),
        }  # fmt: skip
        wait_until("the right to read", 10, lambda: wire.fetch("t", 0, 0)[0] == 0)
        gone = AclBindingFilter(
            ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, None, None, AclOperation.ANY,
            AclPermissionType.ANY,
        )  # fmt: skip
        [(_, future)] = admin.delete_acls([gone]).items()
        assert [each.operation for each in future.result(60)] == [AclOperation.READ]

        def refused() -> bool:
            try:
                wire.fetch("t", 0, 0)
            except WireError as error:
                return error.code == TOPIC_CODE
            return False

        wait_until("its end", 10, refused)


def test_who_may_not_is_refused(closed: tuple[Broker, Rules], our_tools: Tools) -> None:
    broker, rules = closed
    only_alter = ("--cluster", "--operation", "Alter", "--allow-host", ADMIN)
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    rules.ours("--remove", "--force", "--allow-principal", ANONYMOUS, *only_alter)

    def code() -> str:
        [future] = admin.create_acls([binding("v", AclOperation.READ)]).values()
        try:
            future.result(60)
        except KafkaException as error:
            return str(error.args[0].name())
        return ""

    wait_until("a refusal", 10, lambda: code() == "CLUSTER_AUTHORIZATION_FAILED")
    words = ("--add", "--allow-principal", "User:x", "--topic", "v")
    done = our_tools.run(ACLS, "--bootstrap-server", broker.address, *words)
    assert done.code == 1
    assert "Cluster authorization failed." in done.err
    rules.allow(*only_alter)


def test_without_an_authorizer_tools_say_so(
    zookeeper: ZooKeeper, tmp_path: Path, our_tools: Tools, launch: Callable[[Process], None]
) -> None:
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/acls-none")
    launch(broker)
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    [future] = admin.create_acls([binding("t", AclOperation.READ)]).values()
    with pytest.raises(KafkaException) as caught:
        future.result(60)
    assert caught.value.args[0].name() == "SECURITY_DISABLED"
    done = our_tools.run(ACLS, "--bootstrap-server", broker.address, "--list")
    assert done.code == 1
    assert "No Authorizer is configured." in done.err
