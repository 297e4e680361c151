"""Jars from Maven: an artifact, and what it needs at run time, in a directory of its own.

Only Maven knows where artifacts come from.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

TIMEOUT_S = 600
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


def fetch(artifact: str, target: Path) -> str:
    """Fill ``target`` with ``group:artifact:version``; why that failed, or empty.

    A half-filled ``target`` never shows.
    """
    if shutil.which("mvn") is None:
        return f"{artifact} is not in {target} and there is no mvn to fetch it"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        pom, jars = Path(scratch, "pom.xml"), Path(scratch, "jars")
        pom.write_text(POM.format(*artifact.split(":")))
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"mvn did not fetch {artifact} within {TIMEOUT_S} s"
        if done.returncode:
            return f"mvn could not fetch {artifact}: {done.stdout[-500:]}"
        shutil.rmtree(target, ignore_errors=True)
        jars.rename(target)
    return ""
