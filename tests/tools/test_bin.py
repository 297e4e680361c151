"""The scripts of bin/, run for real around a stand-in for Python that tells how it was called."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.log4j import option_words
from tools import run_class

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = sorted(path.name for path in (ROOT / "bin").glob("*.sh"))
TELLING = """#!/usr/bin/env bash
printf '%s\\n' "$$" "$LOG_DIR" "$KAFKA_LOG4J_OPTS" "$@"
"""
CLASSES = {
    "kafka-acls": ["kafka.admin.AclCommand"],
    "kafka-configs": ["kafka.admin.ConfigCommand"],
    "kafka-topics": ["kafka.admin.TopicCommand"],
    "kafka-console-producer": ["kafka.tools.ConsoleProducer"],
    "kafka-console-consumer": ["kafka.tools.ConsoleConsumer"],
    "kafka-consumer-groups": ["kafka.admin.ConsumerGroupCommand"],
    "kafka-consumer-offset-checker": ["kafka.tools.ConsumerOffsetChecker"],
    "kafka-log-convert": ["kafka.tools.LogConvert"],
    "kafka-log-scrub": ["kafka.tools.LogScrub"],
    "kafka-consumer-perf-test": ["kafka.tools.ConsumerPerformance"],
    "kafka-mirror-maker": ["kafka.tools.MirrorMaker"],
    "kafka-producer-perf-test": ["kafka.tools.ProducerPerformance"],
    "kafka-replay-log-producer": ["kafka.tools.ReplayLogProducer"],
    "kafka-simple-consumer-shell": ["kafka.tools.SimpleConsumerShell"],
    "zookeeper-security-migration": ["kafka.admin.ZkSecurityMigrator"],
    "zookeeper-shell": ["org.apache.zookeeper.ZooKeeperMain", "-server"],
    "kafka-rest-start": ["io.confluent.kafkarest.KafkaRestMain"],
    "kafka-server-start": ["kafka.Kafka"],
    "kafka-console-start": ["kafka.console.KafkaConsole"],
    "zookeeper-server-start": ["org.apache.zookeeper.server.quorum.QuorumPeerMain"],
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of bin/ in a directory with a blank in its name, with the stand-in as its Python."""
    base = tmp_path / "check out"
    shutil.copytree(ROOT / "bin", base / "bin", symlinks=True)
    (base / ".venv/bin").mkdir(parents=True)
    write_script(base / ".venv/bin/python", TELLING)
    return base


def write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def run(script: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    return subprocess.run(
        [script, *words],
        env=kept | environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_both_names_exist(name: str) -> None:
    assert os.access(ROOT / "bin" / name, os.X_OK)
    assert (ROOT / "bin" / name.removesuffix(".sh")).resolve() == ROOT / "bin" / name


@pytest.mark.parametrize("suffix", ["", ".sh"])
@pytest.mark.parametrize("name", CLASSES)
def test_classes_and_words(checkout: Path, name: str, suffix: str) -> None:
    words = ["--topic", "a b", "", ".*"]
    done = run(checkout / "bin" / f"{name}{suffix}", *words)
    _pid, log_dir, _log4j, *python_words = done.stdout.splitlines()
    launcher = str(checkout / "bin/kafka-java.py")
    assert python_words == ["-u", launcher, *CLASSES[name], *words]
    assert log_dir == str(checkout / "logs")
    assert Path(log_dir).is_dir()
    assert (done.returncode, done.stderr) == (0, "")


def test_the_callers_settings_of_python_are_hidden(checkout: Path) -> None:
    """An application that runs our scripts may have them set for another Python."""
    write_script(checkout / ".venv/bin/python", "#!/bin/sh\nenv\n")
    names = ["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"]
    environment = dict.fromkeys(names, "/theirs") | {"CLASSPATH": "/mine"}
    for script in ("kafka-server-start.sh", "zookeeper-server-start.sh", "kafka-topics.sh"):
        seen = run(checkout / "bin" / script, "x", **environment).stdout
        assert "/theirs" not in seen
        assert "CLASSPATH=/mine\n" in seen


def test_a_symlink_from_elsewhere(checkout: Path, tmp_path: Path) -> None:
    link = tmp_path / "topics"
    link.symlink_to(checkout / "bin/kafka-topics")
    assert "kafka.admin.TopicCommand" in run(link, "--list").stdout


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MALLOC_ARENA_MAX", "1"),  # one heap for all threads
        ("MALLOC_MMAP_THRESHOLD_", "4194304"),
        ("MALLOC_TRIM_THRESHOLD_", "16777216"),
    ],
)
def test_how_a_broker_gets_memory(checkout: Path, name: str, value: str) -> None:
    write_script(checkout / ".venv/bin/python", f'#!/bin/sh\necho "{name} ${{{name}}}"\n')
    start = checkout / "bin/kafka-server-start.sh"
    assert run(start, "x").stdout == f"{name} {value}\n"
    assert run(start, "x", **{name: "4"}).stdout == f"{name} 4\n"
    assert run(checkout / "bin/kafka-topics.sh", "--list").stdout == f"{name} \n"


def test_log4j_files(checkout: Path) -> None:
    def log4j(name: str, **environment: str) -> str:
        done = run(checkout / "bin" / name, "x", **environment)
        return done.stdout.splitlines()[2]

    assert log4j("kafka-topics.sh").endswith("/config/tools-log4j.properties")
    assert log4j("kafka-server-start.sh").endswith("/config/log4j.properties")
    assert log4j("zookeeper-server-start.sh").endswith("/config/log4j.properties")
    assert log4j("kafka-server-start.sh", KAFKA_LOG4J_OPTS="-Dmine") == "-Dmine"
    # The directory has a blank in its name.
    shipped = f"-Dlog4j.configuration=file:{checkout}/bin/../config/log4j.properties"
    assert option_words(log4j("kafka-server-start.sh")) == [shipped]


@pytest.mark.parametrize(
    ("name", "words", "usage"),
    [
        ("kafka-server-start.sh", [], "[-daemon] server.properties"),
        ("kafka-rest-start.sh", [], "[-daemon] kafka-rest.properties"),
        ("kafka-console-start.sh", [], "[-daemon] kafka-console.properties"),
        ("zookeeper-server-start.sh", [], "zookeeper.properties"),
        ("zookeeper-shell.sh", [], "zookeeper_host:port[/path] [args...]"),
        ("kafka-run-class.sh", [], "[-daemon] [-name servicename] [-loggc] classname [opts]"),
        ("kafka-run-class.sh", ["-loggc"], "[-daemon] [-name servicename] [-loggc] classname"),
        ("kafka-run-class.sh", ["-name"], "[-daemon] [-name servicename] [-loggc] classname"),
        ("kafka-run-class.sh", ["-daemon", "a.B"], "[-daemon] [-name servicename] [-loggc]"),
    ],
)
def test_usage(checkout: Path, name: str, words: list[str], usage: str) -> None:
    script = checkout / "bin" / name
    done = run(script, *words)
    assert done.returncode == 1
    assert done.stdout.startswith(f"USAGE: {script} {usage}")


@pytest.mark.parametrize("name", [name for name in SCRIPTS if "-stop" not in name])
def test_help(name: str) -> None:
    done = run(ROOT / "bin" / name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(("USAGE: ", "Option  "))


def test_flags_of_run_class_in_any_order(checkout: Path) -> None:
    done = run(checkout / "bin/kafka-run-class.sh", "-loggc", "-name", "n", "a.B", "-name", "x")
    assert done.stdout.splitlines()[-3:] == ["a.B", "-name", "x"]


def test_exec_keeps_the_shells_pid(checkout: Path) -> None:
    with subprocess.Popen(
        [checkout / "bin/kafka-server-start.sh", "x"], stdout=subprocess.PIPE, text=True
    ) as process:
        out, _ = process.communicate(timeout=30)
    assert out.splitlines()[0] == str(process.pid)


@pytest.mark.parametrize("name", [name for name in SCRIPTS if "-stop" not in name])
def test_an_interrupt_ends_the_shell_at_any_moment(
    checkout: Path, tmp_path: Path, name: str
) -> None:
    """While bash waits for a child it may lose one, and with a trap send it to itself without
    end. So it has no handler when its children run, which is asked for by the children."""
    seen = tmp_path / "seen"
    note = f"grep SigCgt /proc/$PPID/status >> {shlex.quote(str(seen))}"
    ask = f"! grep -q bash /proc/$PPID/comm || {note}"
    for child in ("readlink", "dirname", "env"):
        write_script(tmp_path / child, f'#!/bin/sh\n{ask}\nexec {shutil.which(child)} "$@"\n')
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    assert run(checkout / "bin" / name, "some.Class", PATH=path).returncode == 0
    lines = seen.read_text().splitlines()
    caught = {int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1 for line in lines}
    assert (len(lines), caught) == (2 if name == "kafka-run-class.sh" else 3, {0})


def test_daemon_writes_to_the_log_directory(checkout: Path, tmp_path: Path) -> None:
    logs = tmp_path / "other logs"
    script = checkout / "bin/kafka-server-start.sh"
    write_script(checkout / ".venv/bin/python", TELLING + "echo err >&2; read -r || echo eof\n")
    done = run(script, "-daemon", "s.properties", LOG_DIR=str(logs))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    out = logs / "kafkaServer.out"
    # The script is gone before its child has written.
    deadline = subprocess.run(
        ["timeout", "20", "bash", "-c", 'until grep -q eof "$0"; do sleep 0.02; done', str(out)],
        check=False,
    )
    assert deadline.returncode == 0
    assert out.read_text().splitlines()[-4:] == ["kafka.Kafka", "s.properties", "err", "eof"]


def test_without_the_environment(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".venv/bin/python").unlink()
    path = f"{tmp_path}:{os.environ['PATH']}"
    write_script(tmp_path / "python3", "#!/usr/bin/env bash\nexit 1\n")
    done = run(checkout / "bin/kafka-topics.sh", PATH=path)
    assert done.returncode == 1
    assert done.stderr == f"No Python with kafka08 found: run 'make setup' in {checkout}\n"
    write_script(tmp_path / "python3", TELLING)
    assert "kafka.admin.TopicCommand" in run(checkout / "bin/kafka-topics.sh", PATH=path).stdout


def test_a_command_names_its_python(checkout: Path, tmp_path: Path) -> None:
    """An installed package has no .venv. Scripts that the program runs must not see it."""
    write_script(tmp_path / "python", "#!/bin/sh\necho mine ${KAFKA08_PYTHON-unset}\n")
    script = checkout / "bin/kafka-topics.sh"
    assert run(script, KAFKA08_PYTHON=str(tmp_path / "python")).stdout == "mine unset\n"


def test_an_installed_package_is_no_place_for_logs(checkout: Path, tmp_path: Path) -> None:
    home = checkout.rename(tmp_path / "_home")

    def log_dir(**environment: str) -> str:
        done = run(home / "bin/kafka-topics.sh", "x", **environment)
        assert done.stderr == ""
        return done.stdout.splitlines()[1]

    user = str(tmp_path / "us er")
    assert log_dir(HOME=user) == f"{user}/.local/state/kafka08/logs"
    assert log_dir(HOME=user, XDG_STATE_HOME=f"{user}/x") == f"{user}/x/kafka08/logs"
    assert log_dir(HOME=user, LOG_DIR=f"{user}/mine") == f"{user}/mine"
    assert Path(user, "mine").is_dir()
    assert not (home / "logs").exists()


def test_a_log_directory_that_cannot_be_made(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(checkout / "bin/kafka-topics.sh", "x", LOG_DIR=str(tmp_path / "file" / "logs"))
    assert done.stderr.endswith("\nName another directory in LOG_DIR\n")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def stop_script(checkout: Path, name: str, pid: int, command: str) -> Path:
    """A stop script that looks into a /proc of ours. There one process runs ``command``, one has
    no command line any more, and there is no ps."""
    proc = checkout / "proc"
    (proc / "7").mkdir(parents=True)
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "cmdline").write_text(command.replace(" ", "\0") + "\0")
    finder = checkout / "bin/java-processes.bash"
    finder.write_text(finder.read_text().replace("/proc/", f"{shlex.quote(str(proc))}/"))
    write_script(checkout / "ps", "#!/bin/sh\nexit 127\n")
    return checkout / "bin" / name


BROKER = "/x/.venv/bin/python -u /x/bin/kafka-java.py kafka.Kafka config/server.properties"
ZOOKEEPER = "java -cp x.jar org.apache.zookeeper.server.quorum.QuorumPeerMain config/zoo.properties"


@pytest.mark.parametrize(
    ("script", "command", "number"),
    [
        ("kafka-server-stop.sh", BROKER, signal.SIGTERM),
        ("kafka-server-stop.sh", "java -Xmx1G kafka.Kafka s.properties", signal.SIGTERM),
        ("zookeeper-server-stop.sh", ZOOKEEPER, signal.SIGINT),
    ],
)
def test_stop(
    checkout: Path,
    sleeper: subprocess.Popen[bytes],
    script: str,
    command: str,
    number: signal.Signals,
) -> None:
    stop = stop_script(checkout, script, sleeper.pid, command)
    done = run(stop, PATH=f"{checkout}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sleeper.wait(20) in (-number, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("script", "command", "text"),
    [
        ("kafka-server-stop.sh", ZOOKEEPER, "No kafka server to stop\n"),
        ("kafka-server-stop.sh", "vi kafka.Kafka", "No kafka server to stop\n"),
        ("zookeeper-server-stop.sh", "kafka-topics --zookeeper h", "No zookeeper server to stop\n"),
    ],
)
def test_nothing_to_stop(
    checkout: Path, sleeper: subprocess.Popen[bytes], script: str, command: str, text: str
) -> None:
    done = run(stop_script(checkout, script, sleeper.pid, command))
    assert (done.returncode, done.stdout, done.stderr) == (1, text, "")
    assert sleeper.poll() is None


@pytest.mark.parametrize(
    ("script", "command"),
    [("kafka-server-stop.sh", BROKER), ("zookeeper-server-stop.sh", ZOOKEEPER)],
)
def test_help_stops_nothing(
    checkout: Path, sleeper: subprocess.Popen[bytes], script: str, command: str
) -> None:
    stop = stop_script(checkout, script, sleeper.pid, command)
    done = run(stop, "--help")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"USAGE: {stop}\n", "")
    assert sleeper.poll() is None


def test_every_class_has_a_module() -> None:
    for class_name, module in run_class.MODULES.items():
        assert importlib.util.find_spec(module), class_name


def test_unknown_class(tmp_path: Path) -> None:
    """The only one with the real launcher, from a directory that must not shadow anything."""
    (tmp_path / "tools.py").write_text("raise SystemExit('shadowed')")
    done = subprocess.run(
        [sys.executable, ROOT / "bin/kafka-java.py", "no.Such", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "Error: Could not find or load main class no.Such\n"


def test_own_classes_come_by_the_class_path(tmp_path: Path) -> None:
    """After everything else, so that they hide nothing."""
    (tmp_path / "mine.py").write_text("def main(argv):\n    return 7\n")
    (tmp_path / "kazoo.py").write_text("raise SystemExit('shadowed')")
    code = (
        "import sys\nfrom tools import run_class\nrun_class.MODULES['mine'] = 'mine'\n"
        "status = run_class.main(['mine'])\nimport kazoo\nsys.exit(status)"
    )
    environment = {**os.environ, "CLASSPATH": f"{tmp_path}/none.jar:{tmp_path}"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, timeout=60, check=False)
    assert done.returncode == 7


def test_what_the_class_path_may_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "classes").mkdir()
    words = {"CLASSPATH": f"classes:/x/a.jar:/x/b.zip::{tmp_path}/missing"}
    assert run_class.class_path(words) == [f"{tmp_path}/classes", "/x/b.zip"]
    assert run_class.class_path({}) == []
