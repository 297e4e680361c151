from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafka08.errors import ConfigError, KafkaError
from kafka08.rest.server import RestProxy, main
from kafka08.security.users import line_for
from tests.fakes.runtime import FakeRuntime


def test_a_warning_about_everybody_who_can_reach_it(caplog: pytest.LogCaptureFixture) -> None:
    RestProxy({"listeners": "http://127.0.0.1:0,http://localhost:0,http://[::1]:0"}, FakeRuntime())
    assert caplog.text == ""
    with caplog.at_level(logging.WARNING):
        RestProxy({"listeners": "http://0.0.0.0:8082"}, FakeRuntime())
    assert "http://0.0.0.0:8082 can be reached from other machines" in caplog.text


@pytest.mark.scenario("ops-58")
def test_passwords_are_not_sent_in_clear_unless_told_to(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(line_for("anna", "admin", "x") + "\n")
    given = {"listeners": "http://0.0.0.0:8082", "authentication.users.file": str(path)}
    with pytest.raises(ConfigError, match="passwords would be sent in clear"):
        RestProxy(given, FakeRuntime())
    RestProxy({**given, "authentication.over.http": "true"}, FakeRuntime())
    RestProxy({**given, "listeners": "http://127.0.0.1:8082"}, FakeRuntime())


def test_wrong_settings_for_brokers_are_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config has no value"):
        RestProxy({"client.security.protocol": "SASL_SSL"}, FakeRuntime())


def test_a_start_without_zookeeper_leaves_nothing_running() -> None:
    runtime = FakeRuntime()
    given = {"zookeeper.connect": "127.0.0.1:1", "zookeeper.session.timeout.ms": "1"}
    proxy = RestProxy(given, runtime)
    with pytest.raises(KafkaError):
        proxy.start()
    assert proxy.ports == []


def test_wrong_arguments_end_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["one", "two"]) == 1
    assert capsys.readouterr().out.startswith("USAGE")
    path = tmp_path / "kafka-rest.properties"
    path.write_text("listeners=8082\n")
    assert main([str(path)]) == 1
    assert "listeners has value 8082 which is not http://host:port" in caplog.text
