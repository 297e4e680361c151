"""The packages that pip installs, used from an empty directory through their commands alone.

A wheel is built from the sdist, another from a copy of the sources, without machine code. Each is
installed into an empty environment outside the checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from integration.harness import (
    STARTED,
    STOP_TIMEOUT_S,
    Process,
    free_port,
    properties,
)
from integration.spark.support import missing
from integration.wire import wait_until
from kafka08 import builds, compiled

ROOT = Path(__file__).resolve().parent.parent
BUILT_FROM = ("kafka08", "zk", "tools", "bin", "config")
FILES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE")
NO_SOURCES = shutil.ignore_patterns("__pycache__", "_compiled", "*.so", "*.c")
TIMEOUT_S = 1800  # mypyc, on a busy machine
TOPIC = "packages"

JOB = """
import sys

from pyspark import SparkContext

import kafka08
from kafka08.spark.dstream import KafkaUtils, OffsetRange

broker, topic, count = sys.argv[1:]
sc = SparkContext("local[1]", "packages")
ranges = [OffsetRange(topic, 0, 0, int(count))]
rdd = KafkaUtils.createRDD(sc, {"metadata.broker.list": broker}, ranges)
print("values", sorted(value for _, value in rdd.collect()), kafka08.__file__)
sc.stop()
"""


class Installed(NamedTuple):
    """An environment with the package, and an empty directory to work in."""

    environment: Path
    directory: Path

    @property
    def packages(self) -> Path:
        (found,) = self.environment.glob("lib/python*/site-packages")
        return found

    def variables(self) -> dict[str, str]:
        """Nothing that tells of the checkout; a HOME that is empty at first."""
        kept = ("PATH", "JAVA_HOME", "LANG", "LC_ALL", "TMPDIR")
        values = {name: os.environ[name] for name in kept if name in os.environ}
        venv = str(Path(sys.executable).parent)
        path = [word for word in values["PATH"].split(os.pathsep) if word != venv]
        values["PATH"] = os.pathsep.join([str(self.environment / "bin"), *path])
        return {**values, "HOME": str(self.directory / "home"), "SPARK_LOCAL_IP": "127.0.0.1"}

    def run(self, *words: str, stdin: str = "") -> str:
        """Standard output of a command that must succeed."""
        done = subprocess.run(
            words,
            cwd=self.directory,
            env=self.variables(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"{words}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def background(self, name: str, *words: str) -> Process:
        """A command of this environment. Its first process has a table of processes of its own,
        if that is possible, so that a stop script finds no server of others."""
        settings = [f"{key}={value}" for key, value in self.variables().items()]
        command = ["env", "-i", "-C", str(self.directory), *settings, *_alone(), *words]
        return Process(name, command, self.directory / name)


def _alone() -> list[str]:
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return []
    tried = subprocess.run([*words, "true"], capture_output=True, check=False)
    return words if tried.returncode == 0 else []


def said(words: list[str], cwd: Path, **environment: str) -> None:
    # Tests of Spark set PYTHONPATH: pip would find this checkout, and take kafka08 for installed.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        words,
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def pip(*words: str, **environment: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    said(command, Path("/"), **environment)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """ "sdist"; "wheel" built from it, with machine code if possible; "plain" from the sources."""
    place = tmp_path_factory.mktemp("check out")
    for name in BUILT_FROM:
        shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=NO_SOURCES)
    for name in FILES:
        shutil.copy(ROOT / name, place)
    made = {name: tmp_path_factory.mktemp(name) for name in ("sdist", "wheel", "plain")}
    said([sys.executable, "-m", "build", "--sdist", "--outdir", str(made["sdist"])], place)
    (sdist,) = made["sdist"].iterdir()
    # Without optimisations the compiler needs half as long.
    quick = {"MYPYC_OPT_LEVEL": "0"}
    pip("wheel", "--no-deps", "--wheel-dir", str(made["wheel"]), str(sdist), **quick)
    plain = {builds.SWITCH: "1", "CC": "false"}
    pip("wheel", "--no-deps", "--wheel-dir", str(made["plain"]), str(place), **plain)
    for directory in (made["wheel"], made["plain"]):  # as `make wheel` does
        said([sys.executable, "-m", "tools.wheel.manylinux", str(directory)], ROOT)
    return {name: next(directory.iterdir()) for name, directory in made.items()}


def install(package: Path, extras: str, place: Path) -> Installed:
    environment = place / "an environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    installed = Installed(environment, place / "work ing")
    installed.directory.mkdir()
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    said([str(environment / "bin" / "python"), *words, f"{package}{extras}"], installed.directory)
    return installed


@pytest.fixture(scope="module")
def wheel(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    extras = "[zookeeper]" if missing() else "[zookeeper,spark]"
    return install(built["wheel"], extras, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def plain(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(built["plain"], "", tmp_path_factory.mktemp("plain"))


@pytest.fixture(params=["wheel", "plain"])
def installed(request: pytest.FixtureRequest) -> Installed:
    found: Installed = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def zookeeper(wheel: Installed) -> Iterator[str]:
    """The wheel's own, on a copy of the shipped file; host:port."""
    port = free_port()
    config = _config(wheel, "zookeeper", clientPort=port, clientPortAddress="127.0.0.1")
    server = wheel.background("zookeeper", "zookeeper-server-start", config)
    server.spawn()
    address = f"127.0.0.1:{port}"
    wait_until("ZooKeeper", 120, lambda: _listens(port))
    yield address
    server.kill()


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), 2):
        return True


def _config(installed: Installed, name: str, **values: object) -> str:
    """A copy of a shipped file, with changes and data in the directory; relative to it."""
    home = Path(installed.run("kafka08-home").strip())
    assert home.is_relative_to(installed.packages)
    data = installed.directory / f"{name} data"
    config = installed.directory / f"{name}.properties"
    text = (home / "config" / f"{name}.properties").read_text()
    config.write_text(text + "\n" + properties({"dataDir": data, "log.dirs": data, **values}))
    return config.name


def _files(directory: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_mtime_ns) for path in directory.rglob("*") if path.is_file()}


def test_both_ways_make_the_same_sources(built: dict[str, Path]) -> None:
    def sources(path: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(path) as archive:
            names = [n for n in archive.namelist() if n.startswith("kafka08/")]
            # auditwheel adds directories to the list of files.
            return {name: archive.read(name) for name in names if not name.endswith((".so", "/"))}

    assert sources(built["wheel"]) == sources(built["plain"])
    names = zipfile.ZipFile(built["plain"]).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"kafka08"}
    assert [name for name in names if name.endswith(".so")] == []


def test_machine_code_is_in_the_wheel_and_used(wheel: Installed, plain: Installed) -> None:
    code = "from kafka08 import _native, builds; print(builds.is_ready(), _native.load('scan'))"
    assert plain.run("python", "-c", code) == "False None\n"
    if compiled.obstacle():
        pytest.skip(compiled.obstacle())
    ready, _, module = wheel.run("python", "-c", code).partition(" ")
    assert (ready, ".so" in module) == ("True", True)


def test_the_wheels_name_has_the_c_library_that_it_needs(built: dict[str, Path]) -> None:
    assert re.fullmatch(r"kafka08-[\d.]+-cp\d+-cp\d+-linux_\w+\.whl", built["plain"].name)
    if compiled.obstacle():
        pytest.skip(compiled.obstacle())
    words = [sys.executable, "-m", "auditwheel", "show", str(built["wheel"])]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    [tag] = re.findall(r'following platform tag:\s+"(\w+)"', shown)
    assert tag in re.split(r"[-.]", built["wheel"].name)
    [minor] = re.findall(r"^manylinux_2_(\d+)_", tag)
    assert int(minor) <= 17
    names = zipfile.ZipFile(built["wheel"]).namelist()
    assert [name for name in names if name.split("/")[0].endswith(".libs")] == []


def test_no_name_of_others_is_taken(installed: Installed) -> None:
    there = {path.name.split(".")[0].split("-")[0] for path in installed.packages.iterdir()}
    assert "kafka08" in there
    assert not {"tools", "zk", "bin", "config"} & there
    code = "import importlib.metadata as m; print(sorted(m.packages_distributions()))"
    names = installed.run("python", "-c", code)
    assert "'kafka08'" in names
    assert "'zk'" not in names
    assert "'tools'" not in names


def test_every_script_is_a_command(installed: Installed) -> None:
    scripts = {path.name for path in (ROOT / "bin").iterdir()} - {"kafka-java.py"}
    commands = {path.name for path in (installed.environment / "bin").iterdir()}
    assert scripts - {"java-processes.bash"} <= commands
    assert installed.run("kafka-topics.sh", "--help") == installed.run("kafka-topics", "--help")


def test_the_quick_start(installed: Installed, zookeeper: str) -> None:
    """A broker, a topic, messages, a group; then kafka-server-stop. Nothing is written below
    site-packages."""
    before = _files(installed.packages)
    chroot = f"{zookeeper}/{installed.environment.parent.name}"
    port = free_port()
    settings = {"port": port, "host.name": "127.0.0.1", "zookeeper.connect": chroot}
    server = installed.background(
        "broker", "kafka-server-start", _config(installed, "server", **settings)
    )
    server.spawn()
    try:
        server.wait_for(STARTED, 180)
        topic = ["--zookeeper", chroot, "--topic", TOPIC]
        made = installed.run(
            "kafka-topics", "--create", *topic, "--partitions", "1", "--replication-factor", "1"
        )
        assert made == f'Created topic "{TOPIC}".\n'
        address = f"127.0.0.1:{port}"
        installed.run(
            "kafka-console-producer.sh", "--broker-list", address, "--topic", TOPIC, stdin="a\nb\n"
        )
        Path(installed.directory, "group.properties").write_text("group.id=g\n")
        group = ["--consumer.config", "group.properties", "--max-messages"]
        read = ["kafka-console-consumer", *topic, *group]
        assert installed.run(*read, "1", "--from-beginning") == "a\n"
        assert installed.run(*read, "1") == "b\n"
        _stop(installed, server)
        assert "shut down completed (kafka.server.KafkaServer)" in server.log
    finally:
        server.kill()
    assert (installed.directory / "home/.local/state/kafka08/logs/server.log").exists()
    assert _files(installed.packages) == before


def _stop(installed: Installed, server: Process) -> None:
    if _alone():
        child, *_ = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        installed.run("nsenter", "--target", child, "--pid", "--mount", "kafka-server-stop")
    else:  # the script would stop the servers of others too
        server.stop()
    assert server.exit_code(STOP_TIMEOUT_S) in (0, 143)


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_spark_job(wheel: Installed, zookeeper: str) -> None:
    port = free_port()
    settings = {"port": port, "host.name": "127.0.0.1", "zookeeper.connect": f"{zookeeper}/spark"}
    server = wheel.background("spark", "kafka-server-start", _config(wheel, "server", **settings))
    server.spawn()
    try:
        server.wait_for(STARTED, 180)
        address = f"127.0.0.1:{port}"
        wheel.run(
            "kafka-console-producer", "--broker-list", address, "--topic", "job", stdin="a\nb\n"
        )
        (wheel.directory / "job.py").write_text(JOB)
        said_by_job = wheel.run("python", "job.py", address, "job", "2")
        assert said_by_job == f"values ['a', 'b'] {wheel.packages}/kafka08/__init__.py\n"
    finally:
        server.kill()
