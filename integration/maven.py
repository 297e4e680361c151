"""Jars from Maven: an artifact, and what it needs at run time, in a directory of its own.

Only Maven knows where artifacts come from.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from integration import cached

TIMEOUT_S = 600
WAITS_S = (2, 10)  # between tries: a busy machine fails to resolve names for a moment
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>fetched</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>{}</groupId>
      <artifactId>{}</artifactId>
      <version>{}</version>
    </dependency>
  </dependencies>
</project>
"""


class FetchError(Exception):
    """Why an artifact could not be fetched."""


def fetch(artifact: str, target: Path) -> str:
    """Fill ``target`` with ``group:artifact:version`` unless it has it; why that failed, or empty.

    A half-filled ``target`` never shows.
    """
    _, name, version = artifact.split(":")
    try:
        cached.once(
            target,
            lambda directory: _copy(artifact, directory),
            has=(target / f"{name}-{version}.jar").exists,
        )
    except FetchError as error:
        return str(error)
    return ""


def _copy(artifact: str, directory: Path) -> None:
    if shutil.which("mvn") is None:
        raise FetchError(f"{artifact} is not in {directory.name} and there is no mvn to fetch it")
    pom = directory / "pom.xml"
    pom.write_text(POM.format(*artifact.split(":")))
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={directory}", "-DincludeScope=runtime"]
    for wait in (*WAITS_S, None):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise FetchError(f"mvn did not fetch {artifact} within {TIMEOUT_S} s") from error
        if not done.returncode:
            return
        if wait is not None:
            time.sleep(wait)
    raise FetchError(f"mvn could not fetch {artifact}: {done.stdout[-500:]}")
