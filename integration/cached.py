"""Directories that are made once and kept, such as fetched jars: whole, and by one process.

Workers of one round need the same ones at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def once(target: Path, fill: Callable[[Path], None], has: Callable[[], bool] | None = None) -> Path:
    """``target``, which ``fill`` makes in a directory of another name unless it is there.

    ``has`` says whether it is complete; by default it only has to exist. A process that comes
    while another one fills it waits.
    """
    has = has or target.exists
    if has():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.with_name(f".{target.name}.lock")):
        if not has():
            with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
                directory = Path(scratch) / target.name
                directory.mkdir()
                fill(directory)
                shutil.rmtree(target, ignore_errors=True)
                directory.rename(target)
    return target


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
