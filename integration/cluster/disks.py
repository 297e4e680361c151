"""File systems of our own, small enough to be filled: ext4 in a file, on a loop device.

Needs root, mkfs.ext4 and loop devices; RuntimeError says what is missing. Knows nothing of pytest.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path


class LoopDisk:
    """Mounted at ``path``; the file ``image`` holds it."""

    def __init__(self, image: Path, path: Path, megabytes: int) -> None:
        self.path = path
        self.image = image
        self._filler = path / "filler"
        path.mkdir(parents=True, exist_ok=True)
        with image.open("wb") as file:
            file.truncate(megabytes << 20)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.path))

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.path)], capture_output=True, check=False)

    def fill(self) -> None:
        """Leave no block."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 26, 1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
            os.fsync(file.fileno())

    def make_room(self) -> None:
        self._filler.unlink(missing_ok=True)


def _run(*command: str) -> None:
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
