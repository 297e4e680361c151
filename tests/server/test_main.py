"""The reasons for which a broker does not start, and the modules that its start loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.message.compression import CodecMissingError
from kafka08.server import main as command
from kafka08.server.main import main


def test_a_broker_whose_codecs_do_not_work_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise CodecMissingError("snappy needs the Python package python-snappy")

    (tmp_path / "server.properties").write_text(f"broker.id=0\nlog.dirs={tmp_path}/data\n")
    monkeypatch.setattr(command, "check_codecs", fail)
    assert main([str(tmp_path / "server.properties")]) == 1
    assert caplog.messages == ["snappy needs the Python package python-snappy"]
    assert not (tmp_path / "data").exists()


_WITHOUT_RESOLVER = """
import socket, sys
def getaddrinfo(*args, **kwargs):
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
socket.getaddrinfo = getaddrinfo
socket.gethostname = lambda: "box"
from kafka08 import log4j
from kafka08.server.main import main
log4j.configure(sys.argv[1])
sys.exit(main(sys.argv[2:]))
"""


_CONSOLE = """\
log4j.rootLogger=FATAL, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%p %m%n
"""


@pytest.mark.parametrize("name", ["missing.properties", ""])
def test_a_configuration_that_is_no_file(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = f"{tmp_path}/{name}"
    assert main([path]) == 1
    (record,) = caplog.records
    reason = "No such file or directory" if name else "Is a directory"
    assert record.getMessage() == f"{path}: {reason}"
    assert record.levelname == "CRITICAL" and record.exc_info is None


def loaded_by(code: str) -> set[str]:
    """The modules that a new process has after this code."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_modules_for_the_text_of_metrics_are_loaded_with_it() -> None:
    # crc32c, which is used where no C compiler is, loads one of them itself.
    loaded = """\
import sys, crc32c
sys.modules.pop("importlib.metadata", None)
import kafka08.server.main
"""
    large = {"importlib.metadata", "prometheus_client"}
    assert large & loaded_by(loaded) == set()


def test_nothing_of_a_broker_is_a_dataclass() -> None:
    """The module and the classes that it makes take 3 ms of each start."""
    assert "dataclasses" not in loaded_by("import kafka08.server.main")


def test_what_only_some_settings_need_is_not_loaded_before() -> None:
    optional = {
        "h11",
        "kafka08.log.cleaning.cleaner",
        "kafka08.security.acls",
        "kafka08.server.access.authorization",
        "kafka08.server.access.logins",
    }
    assert optional & loaded_by("import kafka08.server.main") == set()


def test_a_machine_whose_name_does_not_resolve(tmp_path: Path) -> None:
    config, log4j = tmp_path / "server.properties", tmp_path / "log4j.properties"
    # Port 1 of loopback: nothing listens there, and a broker would wait for it without end.
    config.write_text(f"broker.id=0\nzookeeper.connect=127.0.0.1:1\nlog.dirs={tmp_path}/logs\n")
    log4j.write_text(_CONSOLE)
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_RESOLVER, log4j, config],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    (line,) = done.stdout.splitlines()
    assert line.startswith("FATAL Fatal error during KafkaServerStartable startup.")
    assert "this machine, box, has no address" in line
    assert "advertised.host.name" in line and "(or host.name" in line
    assert (done.returncode, done.stderr) == (1, "")
    assert not (tmp_path / "logs").exists()


@pytest.mark.scenario("security-54")
def test_a_file_with_passwords_that_others_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "server.properties"
    path.write_text("broker.id=none\nssl.keystore.password=hidden-one\n")
    path.chmod(0o644)
    assert main([str(path)]) == 1
    told = f"Others than the owner can read {path}, which has ssl.keystore.password"
    assert told in caplog.messages
    path.chmod(0o600)
    caplog.clear()
    assert main([str(path)]) == 1
    assert told not in caplog.messages
    assert "hidden-one" not in caplog.text
