"""The command up to the start of spark-submit, and ``install`` up to that of the context."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from kafka08.spark.old_jobs.old_name import OldNameFinder
from kafka08.spark.submit import command
from kafka08.spark.submit.options import SubmitError

ROOT = Path(__file__).parents[3]
PYTHON = sys.executable
DAEMON = "spark.python.daemon.module=kafka08.spark.old_jobs.daemon"
WORKER = "spark.python.worker.module=kafka08.spark.old_jobs.worker"
PROGRAM = "import sys; from kafka08.spark.submit import main; sys.exit(main())"
RUNNER = str(ROOT / "kafka08" / "spark" / "old_jobs" / "runner.py")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty SPARK_HOME, and none of the variables of Spark."""
    for name in [name for name in os.environ if name.startswith(("SPARK", "PYSPARK", "MASTER"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "spark" / "conf").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "spark"


def planned(*words: str) -> command.Submission:
    return command.job_plan(list(words), os.environ)


def zip_in(home: Path) -> str:
    (path,) = (home.parent / "cache" / "kafka08").rglob("*.zip")
    return str(path)


def test_a_local_job(home: Path) -> None:
    """Its tasks run on the Python that runs this, and need nothing."""
    plan = planned("--master", "local[2]", "jobs/job.py", "--topic", "a b")
    job = str(home.parent / "jobs" / "job.py")
    assert plan.words == [
        *("--master", "local[2]", "--conf", DAEMON, "--conf", WORKER, "--name", "job.py"),
        *(RUNNER, job, "--topic", "a b"),
    ]
    assert plan.environment["PYSPARK_PYTHON"] == PYTHON
    assert plan.notes == []
    assert not (home.parent / "cache").exists()


def test_executors_elsewhere_get_the_zip(home: Path) -> None:
    plan = planned(
        *("--master", "spark://h:7077", "--py-files", "mine.py"),
        *("--conf", "spark.executorEnv.PYTHONPATH=/opt", "job.py"),
    )
    assert plan.needed["spark.submit.pyFiles"] == f"{zip_in(home)},mine.py"
    assert plan.words[plan.words.index(f"{zip_in(home)},mine.py") - 1] == "--py-files"
    assert "spark.executorEnv.PYTHONPATH=kafka08-spark.zip:/opt" in plan.words
    assert "PYSPARK_PYTHON" not in plan.environment
    names = zipfile.ZipFile(zip_in(home)).namelist()
    assert {"kafka08/spark/old_jobs/daemon.py", "kafka08/spark/dstream.py"} <= set(names)


def test_the_zip_is_written_once(home: Path) -> None:
    planned("--master", "yarn", "job.py")
    first = Path(zip_in(home)).stat()
    planned("--master", "yarn", "job.py")
    assert Path(zip_in(home)).stat().st_ino == first.st_ino
    Path(zip_in(home)).write_bytes(b"of another release")
    planned("--master", "yarn", "job.py")
    assert Path(zip_in(home)).stat().st_size == first.st_size
    assert [path.name for path in Path(zip_in(home)).parent.iterdir()] == ["kafka08-spark.zip"]


@pytest.mark.parametrize(
    ("master", "settings", "environment", "zipped"),
    [
        ("local", {}, {}, False),
        ("local-cluster[2,1,1024]", {}, {}, False),
        ("local", {}, {"PYSPARK_PYTHON": PYTHON}, False),
        ("local", {}, {"PYSPARK_PYTHON": "other"}, True),
        ("local", {}, {"PYSPARK_DRIVER_PYTHON": "other"}, True),
        ("local", {"spark.pyspark.python": "other"}, {}, True),
        ("local", {"spark.pyspark.python": PYTHON}, {"PYSPARK_DRIVER_PYTHON": "other"}, False),
        ("local", {"spark.pyspark.driver.python": "other"}, {}, True),
        ("local", {}, {"PYSPARK_PYTHON": "/no/such/python"}, True),
        ("k8s://https://h", {}, {"PYSPARK_PYTHON": PYTHON}, True),
    ],
)
def test_who_gets_the_zip(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    master: str,
    settings: dict[str, str],
    environment: dict[str, str],
    zipped: bool,
) -> None:
    """``other`` is a Python without kafka08."""
    other = home.parent / "other"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(home.parent), prepend=os.pathsep)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    confs = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    plan = planned("--master", master, *confs, "job.py")
    assert ("spark.submit.pyFiles" in plan.needed) == zipped


def test_another_python_that_has_kafka08(home: Path) -> None:
    link = home.parent / "python"
    root, python = shlex.quote(str(ROOT)), shlex.quote(PYTHON)
    link.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {python} "$@"\n')
    link.chmod(0o755)
    assert command.has_kafka08(str(link))


@pytest.mark.parametrize(
    ("words", "defaults", "environment", "local"),
    [
        ([], "", {}, True),
        ([], "spark.master yarn\n", {}, False),
        (["--master=local"], "spark.master yarn\n", {}, True),
        (["--conf", "spark.master=yarn"], "", {}, False),
        ([], "", {"MASTER": "spark://h"}, False),
        ([], "spark.master local[2]\n", {"MASTER": "spark://h"}, True),
    ],
)
def test_where_the_master_is_from(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    defaults: str,
    environment: dict[str, str],
    local: bool,
) -> None:
    (home / "conf" / "spark-defaults.conf").write_text(defaults)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    plan = planned(*words, "job.py")
    assert ("PYSPARK_PYTHON" in plan.environment) == local


def test_a_name_is_not_replaced(home: Path) -> None:
    assert "--name" in planned("job.py").words
    assert planned("--name", "mine", "job.py").words.count("--name") == 1
    (home / "conf" / "spark-defaults.conf").write_text("spark.app.name mine\n")
    assert "--name" not in planned("job.py").words


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "a job is needed"),
        (["--master", "local"], "a job is needed"),
        (["--class", "a.B", "job.jar"], "a job is needed"),
        (["hdfs://h/job.py"], "a job is needed"),
        (["--deploy-mode", "cluster", "job.py"], "--deploy-mode client"),
        (["--remote", "sc://h", "job.py"], "--master"),
        (["--conf", "spark.python.daemon.module=mine", "job.py"], "has value mine"),
    ],
)
def test_what_cannot_be_submitted(home: Path, words: list[str], text: str) -> None:
    with pytest.raises(SubmitError, match=text):
        planned(*words)


def test_spark_of_the_environment_or_of_pip(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.spark_home(os.environ) == home
    assert (command.spark_home({}) / "bin" / "spark-submit").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SubmitError, match="pip install pyspark"):
        command.spark_home({})


Executed = list[tuple[str, list[str], dict[str, str]]]


@pytest.fixture
def executed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Executed:
    seen: Executed = []
    monkeypatch.setattr("os.execve", lambda *each: seen.append(each))
    return seen


def test_the_command_becomes_spark_submit(
    home: Path, executed: Executed, capsys: pytest.CaptureFixture[str]
) -> None:
    old = "org.apache.spark:spark-streaming-kafka-0-8_2.11:2.4.8"
    command.main(["--packages", old, "--master", "local", "job.py", "x"])
    ((program, words, environment),) = executed
    assert program == words[0] == str(home / "bin" / "spark-submit")
    assert words[1:3] == ["--master", "local"]
    assert words[-3:] == [RUNNER, str(home.parent / "job.py"), "x"]
    assert environment["SPARK_HOME"] == str(home)
    assert capsys.readouterr().err == (
        f"kafka08-spark-submit: left {old} out of --packages: kafka08 takes its place\n"
    )


@pytest.mark.parametrize("words", [["--version"], ["--kill", "7"], ["--status=7"]])
def test_what_runs_no_job_is_given_on(words: list[str], executed: Executed) -> None:
    command.main(words)
    assert [each[1][1:] for each in executed] == [words]


def test_an_error_is_a_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--deploy-mode", "cluster", "job.py"]) == 1
    assert capsys.readouterr().err.startswith("kafka08-spark-submit: --deploy-mode cluster starts")
    assert command.main(["job.py"]) == 1, "there is no program"
    assert "No such file or directory" in capsys.readouterr().err


def test_help_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    assert "--check" in capsys.readouterr().out
    (tmp_path / "job.py").write_text("xrange(1)\n")
    assert command.main(["--check", str(tmp_path / "job.py")]) == 1
    assert ":1: xrange is gone: range" in capsys.readouterr().out


def test_it_runs_as_a_program(home: Path) -> None:
    """The spark-submit of a SPARK_HOME gets the words, and its status is that of the command."""
    program = home / "bin" / "spark-submit"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PYSPARK_PYTHON"\nshift 6\necho "$@"\nexit 7\n')
    program.chmod(0o755)
    done = subprocess.run(
        [PYTHON, "-c", PROGRAM, "job.py", "x"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 7
    assert done.stdout == f"{PYTHON}\n{RUNNER} {home.parent / 'job.py'} x\n"


# Notebooks

Set = Callable[..., None]


@pytest.fixture
def notebook(home: Path, monkeypatch: pytest.MonkeyPatch) -> Set:
    """Sets what SparkContext has at the moment; nothing at first."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def now(active: object = None, gateway: object = None) -> None:
        monkeypatch.setattr(SparkContext, "_active_spark_context", active)
        monkeypatch.setattr(SparkContext, "_gateway", gateway)

    now()
    return now


def knows_the_old_name() -> bool:
    return any(isinstance(each, OldNameFinder) for each in sys.meta_path)


def context_with(settings: dict[str, str]) -> object:
    return SimpleNamespace(getConf=lambda: settings)


def test_a_notebook_before_its_context(notebook: Set) -> None:
    command.install()
    words = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
    assert words == ["--conf", DAEMON, "--conf", WORKER, "pyspark-shell"]
    assert os.environ["PYSPARK_PYTHON"] == PYTHON
    assert knows_the_old_name()
    command.install()
    assert shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])[-5:] == words


def test_arguments_that_a_notebook_has(notebook: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn --name 'a b' pyspark-shell")
    command.install()
    words = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
    assert words[:4] == ["--master", "yarn", "--name", "a b"]
    assert words[-1] == "pyspark-shell"
    assert "--py-files" in words


def test_a_master_that_is_set_in_code(notebook: Set) -> None:
    command.install("spark://h:7077")
    assert "--py-files" in os.environ["PYSPARK_SUBMIT_ARGS"]
    assert "--master" not in os.environ["PYSPARK_SUBMIT_ARGS"]


def test_a_context_that_is_there_already(notebook: Set) -> None:
    notebook(active=context_with({}))
    with pytest.raises(SubmitError, match="stop it, call install"):
        command.install()
    assert not knows_the_old_name()
    notebook(active=context_with(command.MODULES))
    command.install()
    assert knows_the_old_name()


def test_after_a_context_was_stopped(notebook: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's JVM reads no arguments again."""
    seen: dict[str, str] = {}
    monkeypatch.setattr(SparkContext, "setSystemProperty", seen.__setitem__)
    notebook(gateway=object())
    command.install("yarn")
    assert command.MODULES.items() <= seen.items()
    assert seen["spark.files"] == seen["spark.submit.pyFiles"]
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ
