"""A ZooKeeper with TLS and ACLs: brokers, consumers and tools go on, and others change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.exceptions import NoAuthError

from integration.harness import Broker, Process, Result, Tools, ZooKeeper, free_port, properties
from integration.sasl import PLAIN_MODULE, USERS, jaas
from integration.wire import wait_until

TLS = Path(__file__).parents[1] / "tests" / "golden" / "tls"
TOPICS = "kafka.admin.TopicCommand"
CONSUMER = "kafka.tools.ConsoleConsumer"
PRODUCER = "kafka.tools.ConsoleProducer"
MIGRATION = "kafka.admin.ZkSecurityMigrator"
PASSWORD = "known-to-brokers"
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
LOGIN = {"zookeeper.jaas.config": jaas("kafka", PASSWORD, DIGEST_MODULE)}
OVER_TLS = {
    "zookeeper.ssl.client.enable": "true",
    "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
    "zookeeper.ssl.truststore.location": TLS / "ca.pem",
}
CLIENT = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": jaas("alice", USERS["alice"]),
    "ssl.truststore.location": TLS / "ca.pem",
}
WAIT_S = 240
Launch = Callable[[Process], None]


class SecureZooKeeper(ZooKeeper):
    """``connect`` is the plain port, ``secure`` the one with TLS, where clients may show a
    certificate."""

    def __init__(self, directory: Path) -> None:
        self.secure = f"127.0.0.1:{(port := free_port())}"
        props = {
            "secureClientPort": port,
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
            "ssl.keyStore.location": TLS / "server.pem",
            "ssl.keyStore.type": "PEM",
            "ssl.trustStore.location": TLS / "ca.pem",
            "ssl.trustStore.type": "PEM",
            "ssl.clientAuth": "want",
        }
        super().__init__(directory, props=props)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureZooKeeper]:
    server = SecureZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()


def settings(path: Path, *given: dict[str, object] | dict[str, str]) -> str:
    """A file of settings, which others cannot read."""
    path.write_text("".join(properties(each) for each in given))
    path.chmod(0o600)
    return str(path)


class Cluster:
    """One broker, with logins over TLS beside the plain port."""

    def __init__(
        self, directory: Path, zookeeper: str, *, has_login: bool = True, **props: object
    ) -> None:
        port, self.secure_port = free_port(), free_port()
        keys = directory / "server.pem"
        keys.write_bytes((TLS / "server.pem").read_bytes())
        keys.chmod(0o600)
        self.broker = Broker(
            "ours",
            directory / "broker",
            zookeeper,
            port=port,
            props={
                "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:"
                f"{self.secure_port}",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="{USERS["alice"]}";',
                "ssl.keystore.location": keys,
                "ssl.truststore.location": TLS / "ca.pem",
                "zookeeper.session.timeout.ms": 6000,
                "zookeeper.connection.timeout.ms": 60000,
                "offsets.topic.num.partitions": 1,
                **(LOGIN if has_login else {}),
                **{key.replace("_", "."): value for key, value in props.items()},
            },
        )
        self.broker.config.chmod(0o600)


def done(result: Result) -> Result:
    assert result.code == 0, result.out + result.err
    assert "rror" not in result.out, result.out
    return result


def assert_closed(secured: SecureZooKeeper, chroot: str) -> None:
    """Somebody without the login reads, and changes nothing but groups of consumers."""
    stranger = secured.client(chroot)
    try:
        assert json.loads(stranger.get("/brokers/ids/0")[0])["port"]
        refused: list[Callable[[], object]] = [
            lambda: stranger.create("/brokers/topics/mine"),
            lambda: stranger.create("/admin/delete_topics/t"),
            lambda: stranger.delete("/controller"),
            lambda: stranger.set("/brokers/topics", b"99"),
            lambda: stranger.create("/config/changes/config_change_", sequence=True),
            lambda: stranger.create("/mine"),
        ]
        for attempt in refused:
            with pytest.raises(NoAuthError):
                attempt()
        stranger.create("/consumers/stranger/offsets", makepath=True)
    finally:
        stranger.stop()
        stranger.close()


@pytest.mark.scenario("security-54")
def test_a_cluster_is_closed_and_opened_again(
    secured: SecureZooKeeper, tmp_path: Path, our_tools: Tools, launch: Launch
) -> None:
    chroot = f"{secured.connect}/later"
    cluster = Cluster(tmp_path, chroot)
    broker = cluster.broker
    launch(broker)
    broker.start(WAIT_S)
    stranger = secured.client("/later")
    try:
        stranger.create("/config/users/old", makepath=True)
        file = settings(tmp_path / "zk.properties", LOGIN, {"zookeeper.set.acl": "true"})
        migrate = ["--zookeeper.connect", chroot, "--zk-tls-config-file", file]
        done(our_tools.run(MIGRATION, *migrate, "--zookeeper.acl", "secure", timeout=WAIT_S))
        assert_closed(secured, "/later")
        with pytest.raises(NoAuthError):
            stranger.get("/config/users/old")
        words = ["--topic", "t", "--partitions", "1", "--replication-factor", "1"]
        at = ["--zookeeper", chroot, "--zk-tls-config-file", file]
        done(our_tools.run(TOPICS, *at, "--create", *words, timeout=WAIT_S))
        broker.wait_for_leader("t")

        done(our_tools.run(MIGRATION, *migrate, "--zookeeper.acl", "unsecure", timeout=WAIT_S))
        assert stranger.get("/config/users/old")
        stranger.create("/mine")
        at = ["--zookeeper", chroot]
        done(our_tools.run(TOPICS, *at, "--create", *["--topic", "u"], *words[2:], timeout=WAIT_S))
        broker.wait_for_leader("u")
    finally:
        stranger.stop()
        stranger.close()
    assert PASSWORD not in broker.log


@pytest.mark.original
def test_an_original_consumer_of_a_closed_cluster(
    secured: SecureZooKeeper, tmp_path: Path, launch: Launch
) -> None:
    chroot = f"{secured.connect}/original"
    cluster = Cluster(tmp_path, chroot, zookeeper_set_acl="true", num_partitions="1")
    broker = cluster.broker
    launch(broker)
    broker.start(WAIT_S)
    originals = Tools("original", tmp_path / "original")
    produced = originals.run(
        PRODUCER, "--broker-list", broker.address, "--topic", "t", "--request-required-acks", "-1",
        "--message-send-max-retries", "20", "--request-timeout-ms", "30000",
        stdin="one\ntwo\n", timeout=WAIT_S,
    )  # fmt: skip
    assert produced.code == 0, produced.err
    group = tmp_path / "consumer.properties"
    group.write_text("group.id=original\nauto.commit.interval.ms=100\n")
    read = originals.run(
        CONSUMER, "--zookeeper", chroot, "--topic", "t", "--from-beginning", "--max-messages", "2",
        "--consumer.config", str(group), timeout=WAIT_S,
    )  # fmt: skip
    assert read.lines == ["one", "two"], read.err
    assert_closed(secured, "/original")


@pytest.mark.scenario("security-54")
def test_a_cluster_over_tls_with_acls(
    secured: SecureZooKeeper, tmp_path: Path, our_tools: Tools, launch: Launch
) -> None:
    cluster = Cluster(
        tmp_path,
        f"{secured.connect}/acl",
        zookeeper_connect=f"{secured.secure}/acl",
        zookeeper_ssl_keystore_location=TLS / "client.pem",
        zookeeper_set_acl="true",
        **{key.replace(".", "_"): value for key, value in OVER_TLS.items()},
    )
    broker = cluster.broker
    launch(broker)
    broker.start(WAIT_S)
    assert_closed(secured, "/acl")

    file = settings(tmp_path / "zk.properties", OVER_TLS, LOGIN, {"zookeeper.set.acl": "true"})
    at = ["--zookeeper", f"{secured.secure}/acl", "--zk-tls-config-file", file]
    topic = ["--topic", "t", "--partitions", "1", "--replication-factor", "1"]
    done(our_tools.run(TOPICS, *at, "--create", *topic, timeout=WAIT_S))
    broker.wait_for_leader("t")
    assert "PartitionCount:1" in done(our_tools.run(TOPICS, *at, "--describe")).out
    stranger = settings(tmp_path / "stranger.properties", OVER_TLS)
    words = ["--zookeeper", f"{secured.secure}/acl", "--zk-tls-config-file", stranger]
    other = our_tools.run(TOPICS, *words, "--create", *topic[:1], "u", *topic[2:], timeout=WAIT_S)
    assert "KeeperErrorCode = NoAuth for /config/topics/u" in other.out + other.err

    producer = settings(tmp_path / "producer.properties", CLIENT)
    servers = ["--broker-list", f"127.0.0.1:{cluster.secure_port}", "--topic", "t"]
    lines = ["one", "two", "three"]
    done(
        our_tools.run(
            PRODUCER, *servers, "--request-required-acks", "-1", "--producer.config", producer,
            stdin="".join(f"{line}\n" for line in lines), timeout=WAIT_S,
        )
    )  # fmt: skip
    consumer = settings(tmp_path / "consumer.properties", CLIENT, OVER_TLS, LOGIN)
    given = ["--zookeeper", f"{secured.secure}/acl", "--topic", "t", "--from-beginning"]
    for storage in ("zookeeper", "kafka"):
        read = our_tools.run(
            CONSUMER, *given, "--max-messages", "3", "--consumer.config", consumer,
            "--consumer-property", f"group.id=g-{storage}",
            "--consumer-property", f"offsets.storage={storage}", timeout=WAIT_S,
        )  # fmt: skip
        assert done(read).lines == lines, read.err

    secured.stop()
    secured.start()
    wait_until("the broker is back", WAIT_S, lambda: _is_connected(broker) and _knows(secured))
    done(our_tools.run(TOPICS, *at, "--create", "--topic", "v", *topic[2:], timeout=WAIT_S))
    broker.wait_for_leader("v")
    assert broker.stop() == 143
    for secret in (PASSWORD, *USERS.values()):
        assert secret not in broker.log
    assert "Others than the owner can read" in broker.log  # client.pem, which the clone has


def test_a_certificate_is_the_only_identity(
    secured: SecureZooKeeper, tmp_path: Path, our_tools: Tools, launch: Launch
) -> None:
    keys = {**OVER_TLS, "zookeeper.ssl.keystore.location": TLS / "client.pem"}
    cluster = Cluster(
        tmp_path,
        f"{secured.connect}/x509",
        has_login=False,
        zookeeper_connect=f"{secured.secure}/x509",
        zookeeper_set_acl="true",
        **{key.replace(".", "_"): value for key, value in keys.items()},
    )
    launch(cluster.broker)
    cluster.broker.start(WAIT_S)
    assert_closed(secured, "/x509")
    stranger = secured.client("/x509")
    try:
        acl, _ = stranger.get_acls("/brokers/topics")
        assert {each.id.scheme for each in acl} == {"x509", "world"}
    finally:
        stranger.stop()
        stranger.close()
    file = settings(tmp_path / "zk.properties", keys, {"zookeeper.set.acl": "true"})
    at = ["--zookeeper", f"{secured.secure}/x509", "--zk-tls-config-file", file]
    topic = ["--topic", "t", "--partitions", "1", "--replication-factor", "1"]
    done(our_tools.run(TOPICS, *at, "--create", *topic, timeout=WAIT_S))
    cluster.broker.wait_for_leader("t")


def _is_connected(broker: Broker) -> bool:
    """Whether it has been disconnected and is so no longer."""
    _, was, since = broker.log.rpartition("zookeeper state changed (Disconnected)")
    return bool(was) and "zookeeper state changed (" in since


def _knows(secured: SecureZooKeeper) -> bool:
    client = secured.client("/acl")
    try:
        return client.exists("/brokers/ids/0") is not None
    finally:
        client.stop()
        client.close()
