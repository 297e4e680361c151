"""Old jobs as processes: the texts of ``jobs``, started by kafka08-spark-submit."""

from __future__ import annotations

import sys
from pathlib import Path

from integration.harness import Process

JOBS = Path(__file__).parent / "jobs"
PROGRAM = "import sys; from kafka08.spark.submit import main; sys.exit(main())"
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.ui.showConsoleProgress": "false",
}
# An interpreter without the project's packages.
BARE = Path(sys.base_prefix) / "bin" / "python3"


def submission(directory: Path, job: Path, *arguments: object, **options: object) -> Process:
    """Of a job, with options whose names take _ for -. Variables of Spark come from nowhere."""
    python, variables = options.pop("python", None), {"SPARK_LOCAL_IP": "127.0.0.1"}
    if python is not None:
        variables |= {"PYSPARK_PYTHON": str(python), "PYTHONNOUSERSITE": "1"}
    words = [word for key, value in CONF.items() for word in ("--conf", f"{key}={value}")]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    bare = [
        each for name in ("PYTHONPATH", "PYSPARK_PYTHON", "SPARK_HOME") for each in ("-u", name)
    ]
    command = ["env", *bare, f"XDG_CACHE_HOME={directory / 'cache'}"]
    command += [f"{name}={value}" for name, value in variables.items()]
    command += [sys.executable, "-c", PROGRAM, *words, str(job)]
    return Process(job.stem, [*command, *map(str, arguments)], directory)


def texts(directory: Path, *names: str) -> Path:
    """The first of the jobs, which are put into ``directory`` as Python."""
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / f"{name}.py").write_text((JOBS / f"{name}.txt").read_text())
    return directory / f"{names[0]}.py"
