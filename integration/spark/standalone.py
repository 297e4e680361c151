"""Spark's own cluster on loopback: a master and workers, each a process with its executors.

From the classes of the installed PySpark. Knows nothing of jobs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyspark

from integration.harness import Process, free_port

SPARK_HOME = Path(pyspark.__file__).parent
DEPLOY = "org.apache.spark.deploy"
DEADLINE_S = 180


class StandaloneCluster:
    """``variables`` are the whole environment of master, workers and executors. A worker has one
    core and 600 MiB for executors."""

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        self._directory = directory
        self._variables = [f"{name}={value}" for name, value in variables.items()]
        self._port = free_port()
        self.url = f"spark://127.0.0.1:{self._port}"
        self._master = self._server("master", "master.Master", "--port", str(self._port))
        self.workers: list[Process] = []

    def start(self, workers: int) -> StandaloneCluster:
        """Until the master knows them all. The caller stops it, also if this raises."""
        self._master.spawn()
        self._master.wait_for("I have been elected leader", DEADLINE_S)
        for number in range(workers):
            work = self._directory / f"work-{number}"
            arguments = ("--cores", "1", "--memory", "600m", "--work-dir", str(work), self.url)
            self.workers.append(self._server(f"worker-{number}", "worker.Worker", *arguments))
            self.workers[-1].spawn()
        for worker in self.workers:
            worker.wait_for("Successfully registered with master", DEADLINE_S)
        return self

    def executors(self, worker: int) -> int:
        """How many executors this worker has begun so far."""
        return len(list((self._directory / f"work-{worker}").glob("app-*/*")))

    def stop(self) -> None:
        for server in (*self.workers, self._master):
            server.kill()

    def _server(self, name: str, class_name: str, *arguments: str) -> Process:
        directory = self._directory / name
        directory.mkdir(parents=True)
        # Not in the checkout, for what is in the working directory can be imported.
        command = ["env", "-i", f"--chdir={directory}", *self._variables]
        command += [str(SPARK_HOME / "bin" / "spark-class"), f"{DEPLOY}.{class_name}"]
        command += ["--host", "127.0.0.1", "--webui-port", str(free_port()), *arguments]
        return Process(name, command, directory)


def variables(python: Path) -> dict[str, str]:
    """Nothing of this interpreter's packages but pyspark, which spark-submit brings along."""
    bare = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
    return {
        **bare,
        "SPARK_HOME": str(SPARK_HOME),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONNOUSERSITE": "1",
    }
