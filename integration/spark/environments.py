"""Environments with a release of PySpark each, for jobs that run with this checkout's modules.

pip makes one at its first use, in the cache of ``builds``: what setup.cfg asks for with the extra
``spark`` goes in after PySpark, and must leave it as it is.
"""

from __future__ import annotations

import configparser
from pathlib import Path

from integration import builds
from integration.harness import HOME

# The newest patch of each.
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
# The newest that has Spark's own connector.
OTHER_VERSION = "4.2.0"
OTHER_CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{OTHER_VERSION}"


def requirements() -> list[str]:
    config = configparser.ConfigParser()
    config.read(HOME / "setup.cfg")
    lists = config["options"]["install_requires"], config["options.extras_require"]["spark"]
    return [line for text in lists for line in text.split("\n") if line]


def interpreter(version: str) -> Path:
    """The Python that has PySpark ``version``. Raises MissingError."""

    def make(directory: Path) -> None:
        program = builds.python_environment(directory / "venv", f"pyspark=={version}")
        builds.run([program, "-m", "pip", "install", "-q", *requirements()], directory)

    directory = builds.made(f"pyspark-{version}", [], make, key=" ".join(requirements()))
    return directory / "venv" / "bin" / "python"


def other_connector() -> tuple[Path, str]:
    """The Python that has PySpark ``OTHER_VERSION``, and the jars of Spark's own connector for
    ``spark.jars``. Raises MissingError."""
    jars = builds.jars(OTHER_CONNECTOR)
    return interpreter(OTHER_VERSION), ",".join(map(str, sorted(jars.glob("*.jar"))))
