"""The settings of a secured session with ZooKeeper."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.settings.zookeeper import ZooKeeperSecurity
from kafka08.zookeeper import access_of
from zk.access import NodeAccess

TLS = Path(__file__).parent / "golden" / "tls"
MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required "
LOGIN = MODULE + 'username="kafka" password="secret";'
SSL = {
    "zookeeper.ssl.client.enable": "true",
    "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
    "zookeeper.ssl.truststore.location": str(TLS / "ca.pem"),
}


def access(properties: dict[str, str], environ: dict[str, str] | None = None) -> NodeAccess:
    return access_of(ZooKeeperSecurity.from_properties(properties), environ or {})


def test_by_default_there_is_nothing() -> None:
    assert access({}) == NodeAccess()
    assert access({**SSL, "zookeeper.ssl.client.enable": "false"}) == NodeAccess()


def test_tls() -> None:
    found = access({**SSL, "zookeeper.ssl.keystore.location": str(TLS / "client.pem")})
    assert found.context is not None
    context = found.context()
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1
    free = access({**SSL, "zookeeper.ssl.endpoint.identification.algorithm": ""})
    assert free.context is not None
    assert not free.context().check_hostname


@pytest.mark.scenario("security-7")
def test_a_certificate_that_was_replaced_is_used_for_the_next_connection(tmp_path: Path) -> None:
    path = tmp_path / "client.pem"
    path.write_bytes((TLS / "client.pem").read_bytes())
    found = access({**SSL, "zookeeper.ssl.keystore.location": str(path)})
    assert found.context is not None
    before = found.context()
    assert found.context() is before
    (tmp_path / "new.pem").write_bytes((TLS / "renewed.pem").read_bytes())
    (tmp_path / "new.pem").rename(path)
    assert found.context() is not before


def test_a_key_with_a_password() -> None:
    # locked.pem is locked with the password that the other tests of TLS use.
    keystore = {"zookeeper.ssl.keystore.location": str(TLS / "locked.pem")}
    assert access({**SSL, **keystore, "zookeeper.ssl.keystore.password": "secret"}).context
    with pytest.raises(ConfigError, match=r"^zookeeper\.ssl\.keystore\.location: ") as raised:
        access({**SSL, **keystore, "zookeeper.ssl.keystore.password": "wrong-one"})
    assert "wrong-one" not in str(raised.value)


def test_a_login() -> None:
    found = access({"zookeeper.jaas.config": LOGIN, "zookeeper.set.acl": "true"})
    assert (found.login or "").encode() == b"kafka:secret"
    assert found.set_acl
    assert "secret" not in repr(found)
    settings = ZooKeeperSecurity.from_properties({"zookeeper.jaas.config": LOGIN})
    assert "secret" not in repr(settings)


@pytest.mark.scenario("security-54")
def test_a_login_of_kafkas_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(f"KafkaServer {{ M required; }};\nClient {{ {LOGIN} }};\nOther{{{LOGIN}}};\n")
    path.chmod(0o600)
    option = f"-Xmx1G -Djava.security.auth.login.config={path}"
    assert (access({}, {"KAFKA_OPTS": option}).login or "").encode() == b"kafka:secret"
    other = f"{option} -Dzookeeper.sasl.clientconfig=Missing"
    assert access({}, {"KAFKA_OPTS": other}).login is None
    assert caplog.text == ""
    path.chmod(0o644)
    access({}, {"KAFKA_OPTS": option})
    assert f"Others than the owner can read {path}, which has passwords" in caplog.text


@pytest.mark.scenario("security-54")
@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"zookeeper.set.acl": "true"}, "zookeeper.set.acl is true, and there is no login"),
        (
            {"zookeeper.set.acl": "true", **SSL},
            r"no certificate \(zookeeper.ssl.keystore.location\)",
        ),
        ({"zookeeper.jaas.config": "M required;"}, "zookeeper.jaas.config: M is not org.apache"),
        ({"zookeeper.jaas.config": MODULE + "password=secret;"}, "has no username or no password"),
        (
            {"zookeeper.jaas.config": MODULE + 'username="a:b" password=secret;'},
            "zookeeper.jaas.config has a colon in the username",
        ),
        (
            {**SSL, "zookeeper.ssl.truststore.location": "/none/ca.pem"},
            r"^zookeeper\.ssl\.truststore\.location: cannot read /none/ca\.pem: No such file",
        ),
        (
            {**SSL, "zookeeper.ssl.enabled.protocols": "TLSv1"},
            r"^zookeeper\.ssl\.enabled\.protocols has value TLSv1",
        ),
    ],
)
def test_wrong_settings(properties: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError, match=error) as raised:
        access(properties)
    assert "secret" not in str(raised.value)


def test_a_certificate_owns_nodes_too() -> None:
    found = access(
        {
            **SSL,
            "zookeeper.set.acl": "true",
            "zookeeper.ssl.keystore.location": str(TLS / "client.pem"),
        }
    )
    assert found.set_acl


def test_a_jaas_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "none.conf"
    with pytest.raises(ConfigError, match=f"cannot read {re.escape(str(path))}: No such file"):
        access({}, {"KAFKA_OPTS": f"-Djava.security.auth.login.config={path}"})
    path.write_text("Client { M required")
    with pytest.raises(
        ConfigError, match=f"^{re.escape(str(path))}: an option or ; after the options of M"
    ):
        access({}, {"KAFKA_OPTS": f"-Djava.security.auth.login.config={path}"})
