"""The JVM release 0.8.2.2: fetched once into a cache, handed out as a class path.

Without `mvn` and `java` the original's cases skip.
Knows nothing of processes or tests. Set KAFKA08_ORIGINAL_DIR to use another cache directory.
"""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

from integration import maven

VERSION = "0.8.2.2"
ARTIFACT = f"org.apache.kafka:kafka_2.11:{VERSION}"


def directory() -> Path:
    default = Path.home() / ".cache" / "kafka08" / f"original-{VERSION}"
    return Path(os.environ.get("KAFKA08_ORIGINAL_DIR") or default)


@functools.cache
def missing() -> str:
    """Why the original cannot run here; empty when it can. Fetches the jars on first use."""
    if shutil.which("java") is None:
        return "no java on PATH to run the original 0.8.2.2"
    return maven.fetch(ARTIFACT, directory())


def available() -> bool:
    return not missing()


def class_path() -> str:
    """Every jar, for `java -cp`. RuntimeError with the reason when the original is missing."""
    if missing():
        raise RuntimeError(missing())
    return os.pathsep.join(str(jar) for jar in sorted(directory().glob("*.jar")))


if __name__ == "__main__":
    raise SystemExit(missing() or print(class_path()))
