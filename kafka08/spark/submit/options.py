"""The options of spark-submit, as words and as the settings that they stand for.

Reads files of settings, and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kafka08.settings import properties

MASTER, NAME, DEPLOY_MODE = "spark.master", "spark.app.name", "spark.submit.deployMode"
REMOTE, PY_FILES = "spark.remote", "spark.submit.pyFiles"
PACKAGES, JARS = "spark.jars.packages", "spark.jars"
PYTHON, DRIVER_PYTHON = "spark.pyspark.python", "spark.pyspark.driver.python"
EXECUTORS_PATH = "spark.executorEnv.PYTHONPATH"
# Other options have a value.
SWITCHES = {"--supervise", "--usage-error", "--verbose", "-v", "--load-spark-defaults"}
SETTING_OF = {
    "--master": MASTER,
    "--name": NAME,
    "--deploy-mode": DEPLOY_MODE,
    "--remote": REMOTE,
    "--py-files": PY_FILES,
    "--packages": PACKAGES,
    "--jars": JARS,
}
# spark-streaming-kafka_2.10 in Spark 1, -0-8_2.11 in Spark 2, with -assembly if it is one jar.
_OLD_JAR = re.compile(r"spark-streaming-kafka(?!-0-10)")


class SubmitError(Exception):
    """Why a job cannot be submitted, and what to do instead."""


class Flag(NamedTuple):
    """``value`` is None for a switch."""

    name: str
    value: str | None

    @property
    def is_conf(self) -> bool:
        return self.name in ("--conf", "-c")

    @property
    def setting(self) -> tuple[str, str]:
        """The setting that it stands for, and its value; empty if it stands for none."""
        value = self.value or ""
        if self.is_conf:
            key, _, value = value.partition("=")
            return key.strip(), value
        return SETTING_OF.get(self.name, ""), value

    @property
    def words(self) -> list[str]:
        return [self.name] if self.value is None else [self.name, self.value]


def option_for(key: str, value: str) -> Flag:
    """The option that sets ``key``, and that has priority over others that do."""
    named = [name for name, setting in SETTING_OF.items() if setting == key]
    return Flag(named[0], value) if named else Flag("--conf", f"{key}={value}")


def split(words: Iterable[str]) -> tuple[list[Flag], list[str]]:
    """The options, and the job with its arguments. Raises SubmitError."""
    options = []
    left = list(words)
    while left and left[0].startswith("-"):
        name, equals, value = left.pop(0).partition("=")
        if name in SWITCHES:
            options.append(Flag(name, None))
        elif equals or left:
            options.append(Flag(name, value if equals else left.pop(0)))
        else:
            raise SubmitError(f"{name} has no value")
    return options, left


def without_old_jars(options: Iterable[Flag]) -> tuple[list[Flag], list[str]]:
    """The options without the jars whose place kafka08 takes, and a line about each option that
    named one."""
    kept, notes = [], []
    for option in options:
        key, value = option.setting
        jars = value.split(",") if key in (PACKAGES, JARS) else []
        old = [jar for jar in jars if _OLD_JAR.search(jar)]
        if not old:
            kept.append(option)
            continue
        notes.append(f"left {', '.join(old)} out of {option.name}: kafka08 takes its place")
        if others := ",".join(jar for jar in jars if jar not in old):
            value = f"{key}={others}" if option.is_conf else others
            kept.append(Flag(option.name, value))
    return kept, notes


def settings_of(options: Iterable[Flag], directory: Path) -> dict[str, str]:
    """All settings, with those of spark-defaults.conf in ``directory``, or of the file that is
    named instead. Files have no blanks around their values."""
    paths = [Path(option.value or "") for option in options if option.name == "--properties-file"]
    if not paths or Flag("--load-spark-defaults", None) in options:
        paths.insert(0, directory / "spark-defaults.conf")
    found: dict[str, str] = {}
    for path in paths:
        if path.exists():
            found.update({key: value.strip() for key, value in properties.load(path).items()})
    found.update(setting for option in options if (setting := option.setting)[0])
    return found


def refuse(settings: Mapping[str, str], modules: Mapping[str, str]) -> None:
    """Raises SubmitError for settings with which an old job does not run. ``modules``: those that
    have to have this value."""
    if settings.get(DEPLOY_MODE) == "cluster":
        raise SubmitError(
            "--deploy-mode cluster starts the driver on a machine without kafka08. Use "
            "--deploy-mode client. Or write the zip with python -m kafka08.spark.package "
            "kafka08-spark.zip, import kafka08.spark.dstream in the job, and submit that with "
            "spark-submit --deploy-mode cluster --py-files kafka08-spark.zip"
        )
    if REMOTE in settings:
        raise SubmitError("DStreams do not run through Spark Connect: use --master, not --remote")
    for key, module in modules.items():
        if settings.get(key, module) != module:
            raise SubmitError(f"{key} has value {settings[key]}, but old jobs need {module} there")
