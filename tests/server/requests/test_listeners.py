"""The socket server on the listeners of the settings: certificates, warnings, refusals."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ConfigError
from kafka08.metrics.registry import Registry
from kafka08.network.tls import SecureConnector
from kafka08.runtime import ThreadRuntime
from kafka08.server.main import main
from kafka08.server.requests.listeners import Listening
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeRuntime

TLS = Path(__file__).parents[2] / "golden" / "tls"
MINIMAL = {"broker.id": "7", "zookeeper.connect": "127.0.0.1:1"}


@pytest.fixture
def stores(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "server.pem"
    shutil.copy(TLS / "server.pem", path)
    path.chmod(0o600)
    return {"ssl.keystore.location": str(path), "ssl.truststore.location": str(TLS / "ca.pem")}


def bound(**properties: str) -> Any:
    config = BrokerConfig.from_properties({**MINIMAL, **properties})
    runtime: Any = FakeRuntime()
    listening = Listening(config, runtime)
    server = listening.bind()
    listeners = []
    for listener, sock in server._sockets:
        sock.close()
        listeners.append(listener)
    return listeners, listening.certificates


def test_without_tls_there_are_no_certificates() -> None:
    listeners, certificates = bound(port="0", **{"host.name": "127.0.0.1"})
    assert [listener.tls for listener in listeners] == [None]
    assert certificates.servers == {}
    runtime = ThreadRuntime()
    assert certificates.connector(runtime) is runtime


def test_listeners_have_settings_of_their_own(stores: dict[str, str]) -> None:
    own = {
        "listeners": "PLAINTEXT://127.0.0.1:0,A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A:SSL,B:SASL_SSL",
        "listener.name.a.ssl.client.auth": "required",
        "listener.name.a.ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/",
        "inter.broker.listener.name": "A",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    (plain, first, second), certificates = bound(**own, **stores)
    assert plain.tls is None and set(certificates.servers) == {"A", "B"}
    assert first.tls.context.verify_mode.name == "CERT_REQUIRED"
    assert second.tls.context.verify_mode.name == "CERT_NONE"
    assert (first.name_of("CN=a,O=b"), second.name_of("CN=a,O=b")) == ("a", "CN=a,O=b")
    assert isinstance(certificates.connector(ThreadRuntime()), SecureConnector)
    certificates.reload()


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_metrics_tell_when_certificates_end(stores: dict[str, str], protocol: str) -> None:
    own = {
        "listeners": "A://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": f"A:{protocol},PLAINTEXT:PLAINTEXT",
    }
    config = BrokerConfig.from_properties({**MINIMAL, **own, **stores})
    runtime: Any = FakeRuntime()
    listening, registry = Listening(config, runtime), Registry(runtime)
    listening.add_metrics(registry)
    found = [(each.labels, each.value) for _, piece in registry.pieces() for each in piece]
    if protocol == "PLAINTEXT":
        assert found == []
    else:
        expires = listening.certificates.servers["A"].expires
        assert expires is not None
        assert found == [({"listener": "A"}, expires.timestamp())]


@pytest.mark.scenario("security-4")
def test_a_broker_that_0_8_cannot_reach_says_so(
    stores: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    only = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}
    bound(**only, **stores)
    (line,) = caplog.messages
    assert line.startswith("No listener is PLAINTEXT, so /brokers/ids/7 has a null host")


def test_a_key_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"^ssl.keystore.location is not set"):
        bound(listeners="PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0")


@pytest.mark.scenario("security-5")
@pytest.mark.parametrize(
    ("properties", "setting"),
    [
        ({"listeners": "PLAINTEXT://a:1,SSL://b:1"}, "listeners"),
        ({"listeners": "TLS://a:1"}, "listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "advertised.listeners"),
        ({"inter.broker.listener.name": "A"}, "inter.broker.listener.name"),
    ],
)
def test_a_start_with_wrong_listeners(
    properties: dict[str, str], setting: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "server.properties"
    lines = [f"{key}={value}\n" for key, value in {**MINIMAL, **properties}.items()]
    path.write_text("".join(lines))
    assert main([str(path)]) == 1
    (line,) = [each for each in caplog.records if each.levelname == "CRITICAL"]
    assert line.getMessage().startswith(f"{path}: {setting} ") and line.exc_info is None
