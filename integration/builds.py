"""Programs that tests build once: into a directory below ~/.cache/kafka08 with a digest of the
sources in its name. Set KAFKA08_CACHE_DIR to use another cache directory.

Knows nothing of pytest or brokers.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

from integration import cached, maven

HEAP = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
TIMEOUT_S = 900


class MissingError(Exception):
    """Why a program cannot be made here."""


def attempted(make: Callable[[], list[str]]) -> list[str] | MissingError:
    """The command that ``make`` gives, or why it cannot."""
    try:
        return make()
    except MissingError as error:
        return error
    except subprocess.TimeoutExpired as error:
        return MissingError(str(error))


def cache() -> Path:
    default = Path.home() / ".cache" / "kafka08"
    return Path(os.environ.get("KAFKA08_CACHE_DIR") or default)


def run(command: list[str], directory: Path) -> None:
    """A step of a build. MissingError with the end of its output if it fails."""
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        raise MissingError(f"{' '.join(command[:3])}: {(done.stdout + done.stderr)[-500:]}")


def need(program: str) -> None:
    if shutil.which(program) is None:
        raise MissingError(f"no {program} on PATH")


def made(name: str, sources: Iterable[Path], make: Callable[[Path], None], key: str = "") -> Path:
    """The directory of a program: the sources, and what ``make`` adds to them."""
    sources = list(sources)
    digest = hashlib.sha256(key.encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())

    def fill(directory: Path) -> None:
        for source in sources:
            shutil.copy(source, directory)
        make(directory)

    return cached.once(cache() / f"{name}-{digest.hexdigest()[:12]}", fill)


def jars(artifact: str) -> Path:
    """The directory of a Maven artifact, ``group:name:version``, with what it needs."""
    need("java")
    target = cache() / artifact.partition(":")[2].replace(":", "-")
    if reason := maven.fetch(artifact, target):
        raise MissingError(reason)
    return target


def java(name: str, sources: Iterable[Path], *artifacts: str) -> list[str]:
    """The command up to the name of the class; the artifacts are compiled against, too."""
    directories = [jars(each) for each in artifacts]
    need("javac")
    class_path = os.pathsep.join(f"{each}/*" for each in directories)

    def compile_(directory: Path) -> None:
        files = sorted(each.name for each in directory.glob("*.java"))
        run(["javac", "-nowarn", "-cp", class_path, *files], directory)

    program = made(name, sources, compile_, " ".join(artifacts))
    return ["java", *HEAP, "-cp", f"{program}{os.pathsep}{class_path}"]


def python_environment(directory: Path, *packages: str) -> str:
    """The interpreter of a new environment with ``packages`` from PyPI."""
    venv.create(directory, with_pip=True, symlinks=True)
    program = str(directory / "bin" / "python")
    run([program, "-m", "pip", "install", "-q", *packages], directory)
    return program
