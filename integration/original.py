"""The JVM release 0.8.2.2: fetched once into a cache, handed out as a class path.

Only Maven knows where artifacts come from; without `mvn` and `java` the original's cases skip.
Knows nothing of processes or tests. Set KAFKA08_ORIGINAL_DIR to use another cache directory.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSION = "0.8.2.2"
FETCH_TIMEOUT_S = 600
JARS = ("kafka_2.11-0.8.2.2.jar", "kafka-clients-0.8.2.2.jar", "zookeeper-3.4.6.jar")

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>original</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.11</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


def directory() -> Path:
    default = Path.home() / ".cache" / "kafka08" / f"original-{VERSION}"
    return Path(os.environ.get("KAFKA08_ORIGINAL_DIR") or default)


@functools.cache
def missing() -> str:
    """Why the original cannot run here; empty when it can. Fetches the jars on first use."""
    if shutil.which("java") is None:
        return "no java on PATH to run the original 0.8.2.2"
    if all((directory() / jar).exists() for jar in JARS):
        return ""
    if shutil.which("mvn") is None:
        return f"the original's jars are not in {directory()} and there is no mvn to fetch them"
    return _fetch(directory())


def available() -> bool:
    return not missing()


def class_path() -> str:
    """Every jar, for `java -cp`. RuntimeError with the reason when the original is missing."""
    if missing():
        raise RuntimeError(missing())
    return os.pathsep.join(str(jar) for jar in sorted(directory().glob("*.jar")))


def _fetch(target: Path) -> str:
    """Fill `target` through Maven; what went wrong, or empty. A half-filled cache never shows."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        pom = Path(scratch, "pom.xml")
        pom.write_text(POM)
        libs = Path(scratch, "libs")
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={libs}", "-DincludeScope=runtime"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"mvn did not fetch the original within {FETCH_TIMEOUT_S} s"
        if done.returncode:
            return f"mvn could not fetch the original: {done.stdout[-500:]}"
        shutil.rmtree(target, ignore_errors=True)
        libs.rename(target)
    return ""


if __name__ == "__main__":
    raise SystemExit(missing() or print(class_path()))
