"""Environments with a release of PySpark each, for jobs that run with this checkout's modules.

pip makes one at its first use, in the cache of ``builds``: what setup.cfg asks for with the extra
``spark`` goes in after PySpark, and must leave it as it is.
"""

from __future__ import annotations

import configparser
import functools
from pathlib import Path

from integration import builds
from integration.harness import HOME

# The newest patch of each.
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")


def requirements() -> list[str]:
    config = configparser.ConfigParser()
    config.read(HOME / "setup.cfg")
    lists = config["options"]["install_requires"], config["options.extras_require"]["spark"]
    return [line for text in lists for line in text.split("\n") if line]


@functools.cache
def interpreter(version: str) -> Path | builds.MissingError:
    """The Python that has PySpark ``version``, or why there is none."""

    def make(directory: Path) -> None:
        program = builds.python_environment(directory / "venv", f"pyspark=={version}")
        builds.run([program, "-m", "pip", "install", "-q", *requirements()], directory)

    try:
        directory = builds.made(f"pyspark-{version}", [], make, key=" ".join(requirements()))
    except builds.MissingError as error:
        return error
    return directory / "venv" / "bin" / "python"
