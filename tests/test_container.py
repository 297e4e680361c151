from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08 import commands, container
from kafka08.container import FLAGS, ROLES, ContainerError, setting_name, settings
from kafka08.rest.config import RestConfig
from kafka08.settings import properties
from kafka08.settings.broker import BrokerConfig
from tools.mirror.mirror_maker import PARSER

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_RETENTION_HOURS", "log.retention.hours"),
        ("KAFKA_ZOOKEEPER_CONNECT", "zookeeper.connect"),
        ("KAFKA_PORT", "port"),
        ("KAFKA_A__B___C", "a-b_c"),
        ("CONSUMER_GROUP_ID", "group.id"),
        ("MIRROR_NUM_STREAMS", "num.streams"),
        ("ZOOKEEPER_CLIENT_PORT", "clientPort"),
        ("ZOOKEEPER_MAX_CLIENT_CNXNS", "maxClientCnxns"),
        ("ZOOKEEPER_SERVER_1", "server.1"),
        ("ZOOKEEPER_AUTOPURGE_SNAP_RETAIN_COUNT", "autopurge.snapRetainCount"),
    ],
)
def test_a_variable_is_a_setting(variable: str, name: str) -> None:
    assert setting_name(variable) == name


@pytest.mark.parametrize("variable", ["KAFKA_", "KAFKA__A", "KAFKA_A_", "KAFKA_A____B"])
def test_a_variable_that_is_no_name_is_named(variable: str) -> None:
    with pytest.raises(ContainerError, match=f"^{variable} does not name a setting$"):
        setting_name(variable)


def test_variables_win_and_those_of_scripts_are_left_out() -> None:
    environ = {
        "KAFKA_HTTP_PORT": "1",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_LOG4J_OPTS": "x",
        "KAFKA_OPTS": "x",
        "KAFKA_HOME": "/x",
        "KAFKA08_PYTHON": "x",
        "ZOOKEEPER_TICK_TIME": "2",
        "ZOOKEEPER_MY_ID": "3",
        "PATH": "/bin",
    }
    expected = {"log.dirs": "/var/lib/kafka08/kafka", "http.port": "1"}
    assert settings(ROLES["broker"].file, environ, "h") == expected
    expected = {"dataDir": "/var/lib/kafka08/zookeeper", "tickTime": "2"}
    assert settings(ROLES["zookeeper"].file, environ, "h") == expected


@pytest.mark.parametrize(("host", "number"), [("kafka-2", "2"), ("a-10.kafka.svc", "10")])
def test_an_id_from_the_host_name(host: str, number: str) -> None:
    found = settings(ROLES["broker"].file, {"KAFKA_BROKER_ID": "ordinal"}, host)
    assert found["broker.id"] == number


@pytest.mark.parametrize("host", ["kafka", "kafka2", "kafka-x.a-1"])
def test_a_host_name_without_a_number_is_named(host: str) -> None:
    with pytest.raises(ContainerError, match=f"host {host} has no number at its end"):
        settings(ROLES["broker"].file, {"KAFKA_BROKER_ID": "ordinal"}, host)


def test_variables_of_the_shipped_files_are_settings() -> None:
    """And those that the examples of the page name."""
    others = {"http.host", "http.allowed.hosts", "console.clusters"}
    found = set()
    for path in filter(Path.is_file, (ROOT / "docs" / "deploy").iterdir()):
        names = re.findall(r"\bKAFKA_[A-Z][A-Z_]+[A-Z]\b", path.read_text(encoding="utf-8"))
        found |= {setting_name(name) for name in names if not name.endswith("_OPTS")}
    of_cluster = "cluster.prod.zookeeper.connect"
    assert found - set(BrokerConfig.keys()) - others == {of_cluster}
    assert len(found) > 10


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    units = []
    for path in sorted((ROOT / "docs" / "deploy").glob("*.service")):
        text = path.read_text(encoding="utf-8")
        # The program must exist.
        text, count = re.subn(r"(?m)^ExecStart=/opt/kafka08/bin/\S+", "ExecStart=/bin/true", text)
        assert count == 1
        (tmp_path / path.name).write_text(text)
        units.append(str(tmp_path / path.name))
    done = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_line_is_read_as_it_was(value: str) -> None:
    written = container.line("a.b", value)
    assert written.count("\n") == 1
    assert written.isascii()
    assert properties.parse(written) == {"a.b": value}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for role in ROLES.values():
        (tmp_path / "config").mkdir(exist_ok=True)
        (tmp_path / "config" / role.file.name).write_text(
            "broker.id=0\ndataDir=/tmp/x\nclientPort=1"
        )
    monkeypatch.setattr(commands, "HOME", str(tmp_path))
    return tmp_path


def test_the_shipped_file_with_the_environments_settings(home: Path) -> None:
    environ = {"KAFKA_BROKER_ID": "7", "KAFKA_SUPER_USERS": "User:ü\\"}
    words = container.prepare(["broker"], environ, "h", home / "made")
    file = home / "made" / "server.properties"
    assert words == [f"{home}/bin/kafka-server-start.sh", str(file)]
    found = properties.load(file)
    assert (found["broker.id"], found["super.users"]) == ("7", "User:ü\\")
    assert found["dataDir"] == "/tmp/x"


def test_a_file_of_the_users(home: Path) -> None:
    (home / "mine").write_text("a=1\nlog.dirs=/x")
    container.prepare(["broker", str(home / "mine")], {"KAFKA_A": "2"}, "h", home / "made")
    found = properties.load(home / "made" / "server.properties")
    assert found == {"a": "2", "log.dirs": "/x", "http.port": "8080"}


def test_a_member_of_an_ensemble_has_its_number(home: Path) -> None:
    environ = {"ZOOKEEPER_MY_ID": "3", "ZOOKEEPER_DATA_DIR": str(home / "data")}
    container.prepare(["zookeeper"], environ, "h", home / "made")
    assert (home / "data" / "myid").read_text() == "3\n"


def test_a_rest_proxy(home: Path) -> None:
    environ = {"KAFKA_ZOOKEEPER_CONNECT": "zk:2181", "KAFKA_HTTP_ALLOWED_HOSTS": "rest"}
    words = container.prepare(["rest"], environ, "h", home / "made")
    assert words == [f"{home}/bin/kafka-rest-start.sh", str(home / "made/kafka-rest.properties")]
    config = RestConfig.from_properties(properties.load(words[1]))
    assert config.zookeeper_connect == "zk:2181"
    assert config.allowed_hosts == ("rest",)
    assert config.parsed_listeners() == [("http", "0.0.0.0", 8082)]


ENDS = {
    "CONSUMER_ZOOKEEPER_CONNECT": "zk:2181/a",
    "CONSUMER_GROUP_ID": "mirror",
    "PRODUCER_METADATA_BROKER_LIST": "b:9092",
}


def test_a_mirror_has_two_ends_and_options(home: Path) -> None:
    environ = {**ENDS, "MIRROR_WHITELIST": "a|b", "MIRROR_NUM_STREAMS": "2", "KAFKA_X": "y"}
    made = home / "made"
    script, *words = container.prepare(["mirror"], environ, "h", made)
    assert script == f"{home}/bin/kafka-mirror-maker.sh"
    args = PARSER.parse_command(words, "consumer.config", "producer.config")
    assert args.values("consumer.config") == [str(made / "consumer.properties")]
    assert args.value("producer.config") == str(made / "producer.properties")
    assert (args.value("whitelist"), args.value("num.streams")) == ("a|b", 2)
    assert args.value("metrics.port") == 8080
    assert not any(args.has(flag) for flag in FLAGS)
    assert properties.load(made / "consumer.properties") == {
        "zookeeper.connect": "zk:2181/a",
        "group.id": "mirror",
    }
    assert properties.load(made / "producer.properties") == {"metadata.broker.list": "b:9092"}


def test_a_mirror_of_a_later_cluster_with_files_of_the_users(home: Path) -> None:
    (home / "from").write_text("bootstrap.servers=a:1\ngroup.id=g\n")
    (home / "to").write_text("bootstrap.servers=b:1\nacks=1\n")
    environ = {
        "MIRROR_BLACKLIST": "x",
        "MIRROR_WHITELIST": "",
        "MIRROR_NEW_CONSUMER": "true",
        "MIRROR_MODERN_PRODUCER": "true",
        "MIRROR_NEW_PRODUCER": "false",
        "PRODUCER_ACKS": "all",
    }
    words = ["mirror", str(home / "from"), str(home / "to")]
    _, *words = container.prepare(words, environ, "h", home / "made")
    args = PARSER.parse_command(words, "consumer.config", "producer.config")
    assert [flag for flag in FLAGS if args.has(flag)] == ["modern.producer", "new.consumer"]
    assert not args.has("whitelist")
    assert properties.load(home / "made" / "producer.properties")["acks"] == "all"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"MIRROR_WHITELIST": ""}, "set one of MIRROR_WHITELIST and MIRROR_BLACKLIST"),
        ({"MIRROR_BLACKLIST": "b"}, "set one of MIRROR_WHITELIST and MIRROR_BLACKLIST"),
        ({"CONSUMER_GROUP_ID": ""}, "CONSUMER_GROUP_ID is missing, or group.id in a file"),
        (
            {"MIRROR_NEW_CONSUMER": "true"},
            "CONSUMER_BOOTSTRAP_SERVERS is missing, or bootstrap.servers in a file",
        ),
        (
            {"MIRROR_NEW_PRODUCER": "true"},
            "PRODUCER_BOOTSTRAP_SERVERS is missing, or bootstrap.servers in a file",
        ),
        ({"MIRROR_NEW_PRODUCER": "yes"}, "MIRROR_NEW_PRODUCER is not true or false"),
    ],
)
def test_a_mirror_says_what_is_missing(home: Path, changed: dict[str, str], reason: str) -> None:
    environ = {**ENDS, "MIRROR_WHITELIST": "a", **changed}
    with pytest.raises(ContainerError, match=f"^{reason}$"):
        container.prepare(["mirror"], environ, "h", home / "made")


def test_a_mirror_takes_both_files_or_none(home: Path) -> None:
    with pytest.raises(ContainerError, match="two files"):
        container.prepare(["mirror", "a"], {}, "h", home / "made")


def test_each_role_has_its_script_and_file() -> None:
    for name, role in ROLES.items():
        assert (ROOT / "bin" / role.script).exists()
        assert name == "mirror" or (ROOT / "config" / role.file.name).exists()


def test_a_start_leaves_one_file(home: Path) -> None:
    """It tells which server's health is asked for."""
    container.prepare(["broker"], {}, "h", home / "made")
    container.prepare(["zookeeper"], {}, "h", home / "made")
    left = sorted(path.name for path in (home / "made").iterdir())
    assert left == ["log4j.properties", "zookeeper.properties"]


def test_what_scripts_get(tmp_path: Path) -> None:
    found = container.variables({"LOG_DIR": "/mine", "A": "b"}, tmp_path)
    assert (found["LOG_DIR"], found["A"]) == ("/mine", "b")
    assert found["KAFKA_LOG4J_OPTS"] == f"-Dlog4j.configuration=file:{tmp_path}/log4j.properties"


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    made = HTTPServer(("127.0.0.1", 0), _Answers)
    made.status = 200  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_the_health_of_a_broker(tmp_path: Path, server: HTTPServer) -> None:
    text = f"http.port={server.server_port}\nhttp.host=0.0.0.0\n"
    (tmp_path / "server.properties").write_text(text)
    assert container.health(tmp_path) == ""
    server.status = 503  # type: ignore[attr-defined]
    assert container.health(tmp_path) == "503: /health/ready"


@pytest.mark.parametrize(
    ("status", "reason"), [(200, ""), (401, ""), (500, "500: /brokers"), (404, "404: /brokers")]
)
def test_the_health_of_a_rest_proxy(
    tmp_path: Path, server: HTTPServer, status: int, reason: str
) -> None:
    text = f"listeners=https://0.0.0.0:1,http://0.0.0.0:{server.server_port}\n"
    (tmp_path / "kafka-rest.properties").write_text(text)
    server.status = status  # type: ignore[attr-defined]
    assert container.health(tmp_path) == reason


def test_the_health_of_a_rest_proxy_with_tls_alone(tmp_path: Path) -> None:
    (tmp_path / "kafka-rest.properties").write_text("listeners=https://0.0.0.0:1\n")
    assert container.health(tmp_path) == "no listener is http: https://0.0.0.0:1"


def test_the_health_of_a_mirror(tmp_path: Path, server: HTTPServer) -> None:
    (tmp_path / "mirror.properties").write_text(f"metrics.port={server.server_port}\n")
    assert container.health(tmp_path) == ""
    server.status = 503  # type: ignore[attr-defined]
    assert container.health(tmp_path) == "503: /metrics"


@pytest.mark.parametrize(("answer", "text"), [(b"imok", ""), (b"", "answered b'' to ruok")])
def test_the_health_of_zookeeper(tmp_path: Path, answer: bytes, text: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (tmp_path / "zookeeper.properties").write_text(f"clientPort={port}\n")

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(4) == b"ruok"
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        reason = container.health(tmp_path)
        thread.join()
    assert reason.endswith(text)
    assert bool(reason) == bool(text)


def test_no_server_is_not_healthy(tmp_path: Path) -> None:
    assert container.health(tmp_path).startswith("no server was started")
    (tmp_path / "zookeeper.properties").write_text("clientPort=1\n")
    assert "refused" in container.health(tmp_path)


@pytest.mark.parametrize(
    ("words", "status", "out", "err"),
    [
        ([], 1, "USAGE: ", ""),
        (["--help"], 0, "USAGE: ", ""),
        (["mirror", "one"], 1, "", "mirror takes two files: the consumer's and the producer's\n"),
        (["broker", "/no/file"], 1, "", "/no/file: No such file or directory\n"),
        (["no-such-command"], 1, "", "no-such-command: No such file or directory\n"),
    ],
)
def test_words(
    words: list[str],
    status: int,
    out: str,
    err: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["kafka08-container", *words])
    assert container.main() == status
    said = capsys.readouterr()
    assert said.out.startswith(out)
    assert said.err == err
