"""The command: spark-submit for jobs that import ``pyspark.streaming.kafka``.

    kafka08-spark-submit [options of spark-submit] JOB.py [ARGS]
    kafka08-spark-submit --check JOB.py ...

The job runs as it is. The driver is ``old_jobs.runner``, executors start their Python workers by
``old_jobs.daemon``, and where they run on other machines they get a zip with what they import. In
a notebook, ``install()`` does the same.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kafka08.spark import package
from kafka08.spark.old_jobs import old_name, runner
from kafka08.spark.submit import check, options
from kafka08.spark.submit.options import (
    EXECUTORS_PATH,
    PY_FILES,
    Flag,
    SubmitError,
    option_for,
)

USAGE = """\
Usage: kafka08-spark-submit [options] JOB.py [ARGS]
       kafka08-spark-submit --check JOB.py [FILE.py ...]

Runs a job that imports pyspark.streaming.kafka on today's Spark. The options are those of
spark-submit: of the Spark in SPARK_HOME, or of the PySpark that is installed.

  --check  Lists what in the job will not run on Spark 4 and Python 3, or run differently.
"""
MODULES = {
    "spark.python.daemon.module": "kafka08.spark.old_jobs.daemon",
    "spark.python.worker.module": "kafka08.spark.old_jobs.worker",
}
ZIP = "kafka08-spark.zip"
# These run no job.
OTHER_TASKS = {"--version", "--kill", "--status"}


class Submission(NamedTuple):
    """``words``: the options. ``settings``: those that are not in ``words`` too. ``needed``: those
    that were added. ``notes``: lines for the user."""

    words: list[str]
    settings: dict[str, str]
    needed: dict[str, str]
    environment: dict[str, str]
    notes: list[str]


def plan(given: list[Flag], environ: Mapping[str, str], master: str = "") -> Submission:
    """The words and variables of spark-submit for an old job. Raises SubmitError.

    ``master``: the one that the job sets itself.
    """
    home = spark_home(environ)
    environment = {**environ, "SPARK_HOME": str(home)}
    kept, notes = options.without_old_jars(given)
    settings = options.settings_of(kept, Path(environ.get("SPARK_CONF_DIR") or home / "conf"))
    settings.setdefault(options.MASTER, master or environ.get("MASTER") or "local[*]")
    options.refuse(settings, MODULES)
    if is_local(settings) and options.PYTHON not in settings:
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
    needed = dict(MODULES)
    if needs_zip(settings, environment):
        files = [str(written_zip(environ)), settings.get(PY_FILES, "")]
        needed[PY_FILES] = ",".join(filter(None, files))
        # Executors start in the directory into which they fetch files.
        path = [ZIP, settings.get(EXECUTORS_PATH, "")]
        needed[EXECUTORS_PATH] = os.pathsep.join(filter(None, path))
    added = [option_for(key, value) for key, value in needed.items()]
    words = [word for option in (*kept, *added) for word in option.words]
    return Submission(words, settings, needed, environment, notes)


def spark_home(environ: Mapping[str, str]) -> Path:
    """Raises SubmitError if Spark is not installed."""
    if environ.get("SPARK_HOME"):
        return Path(environ["SPARK_HOME"])
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SubmitError("Spark is not installed: pip install pyspark, or set SPARK_HOME")
    return Path(spec.origin).parent


def is_local(settings: Mapping[str, str]) -> bool:
    """Whether tasks run on this machine: with local, local[2] and local-cluster[2,1,1024]."""
    return settings[options.MASTER].startswith("local")


def needs_zip(settings: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Whether the driver or executors may lack kafka08."""
    if not is_local(settings):
        return True
    named = settings.get(options.PYTHON)
    worker = named or environ.get("PYSPARK_PYTHON") or "python3"
    driver = settings.get(options.DRIVER_PYTHON) or named or environ.get("PYSPARK_DRIVER_PYTHON")
    return not all(has_kafka08(python) for python in {worker, driver or worker})


def has_kafka08(python: str) -> bool:
    found = shutil.which(python)
    # By name: the interpreter of a virtual environment is a link to another's.
    if found is None or os.path.abspath(found) == os.path.abspath(sys.executable):
        return found is not None
    command = [found, "-c", f"import {old_name.__name__}"]
    return not subprocess.run(command, cwd=os.sep, capture_output=True, check=False).returncode


def written_zip(environ: Mapping[str, str]) -> Path:
    """The zip of this installation. It is always at the same place, as checkpoints have its path,
    and whole at any time."""
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kafka08")
    target = cache / f"{zlib.crc32(__file__.encode()):08x}" / ZIP
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch, ZIP)
        package.write(made)
        if not target.exists() or target.read_bytes() != made.read_bytes():
            made.replace(target)
    return target


def job_plan(words: list[str], environ: Mapping[str, str]) -> Submission:
    """The same for the words of ``kafka08-spark-submit``, with the job behind the options."""
    given, program = options.split(words)
    if not program or not program[0].endswith(".py") or ":" in program[0]:
        raise SubmitError(f"a job is needed: the path of a .py file on this machine\n\n{USAGE}")
    job = os.path.abspath(program[0])
    found = plan(given, environ)
    # Spark takes the name of the file, which would be the runner's.
    name = [] if options.NAME in found.settings else ["--name", os.path.basename(job)]
    program = [os.path.abspath(runner.__file__), job, *program[1:]]
    return found._replace(words=[*found.words, *name, *program])


def install(master: str = "") -> None:
    """Let a notebook import ``pyspark.streaming.kafka``, and the executors of the SparkContext that
    it makes afterwards.

    ``master``: the one that the notebook sets in its code; unless it is a local one, executors get
    the zip. Raises SubmitError if there is a SparkContext whose executors would not know the
    module.
    """
    from pyspark import SparkContext

    active = SparkContext._active_spark_context
    if active is not None:
        if all(active.getConf().get(key) == module for key, module in MODULES.items()):
            old_name.install()
            return
        raise SubmitError(
            "a SparkContext is active, and its executors would not know pyspark.streaming.kafka: "
            "stop it, call install(), and then make it again"
        )
    *words, program = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    found = plan(options.split(words)[0], os.environ, master)
    os.environ.update(found.environment)
    if SparkContext._gateway is None:
        os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*found.words, program])
    else:  # Spark's JVM goes on running when a context is stopped
        for key, value in found.needed.items():
            SparkContext.setSystemProperty(key, value)
            if key == PY_FILES:
                files = found.settings.get("spark.files", "")
                value = ",".join(filter(None, [value, files]))
                SparkContext.setSystemProperty("spark.files", value)
    old_name.install()


def main(argv: list[str] | None = None) -> int:
    """Becomes spark-submit; a status comes back if it does not."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["--check"]:
        return check.main(words[1:])
    if words[:1] in (["--help"], ["-h"]):
        print(USAGE, end="")
        return 0
    environment = dict(os.environ)
    try:
        if not OTHER_TASKS & {word.partition("=")[0] for word in words}:
            words, _, _, environment, notes = job_plan(words, os.environ)
            for note in notes:
                print(f"kafka08-spark-submit: {note}", file=sys.stderr)
        program = str(spark_home(os.environ) / "bin" / "spark-submit")
        os.execve(program, [program, *words], environment)
    except (SubmitError, OSError) as error:
        print(f"kafka08-spark-submit: {error}", file=sys.stderr)
    return 1
