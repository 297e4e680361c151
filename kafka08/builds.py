"""Makes imports use the compiled build of the present sources, if there is one.

Every program calls ``activate`` first, so this module loads little; ``compiled`` makes builds. A
build of other sources than those on disk is never loaded, so an edited module runs interpreted
until the next build. With KAFKA08_INTERPRETED set everything runs from the sources.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType

SWITCH = "KAFKA08_INTERPRETED"
SUFFIX = EXTENSION_SUFFIXES[0]

_HERE = os.path.dirname(os.path.realpath(__file__))
# Packages from which no compiled module imports, itself or by way of others.
APART = {"client", "connect", "console", "consumer", "controller", "lag", "producer", "rest"}
APART |= {"spark", "topics"}
_LEFT_OUT = APART | {"__pycache__", "_compiled"}
_MORE_THAN_A_SOURCE = 1 << 20


class _Finder:
    """Finds the modules of one build by their full names."""

    def __init__(self, build: str) -> None:
        self._files = {
            name[: -len(SUFFIX)]: os.path.join(build, name)
            for name in os.listdir(build)
            if name.endswith(SUFFIX)
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(name)
        return None if file is None else spec_from_file_location(name, file)


def is_ready() -> bool:
    """Whether there is a build of the present sources and it may be used."""
    return _in_use() is not None


def _in_use() -> str | None:
    if os.environ.get(SWITCH):
        return None
    build = directory()
    return build if os.path.isdir(build) else None


def activate() -> bool:
    """Make imports use the build, if ``is_ready``; returns ``is_ready``.

    Must be called before any of the modules is imported.
    """
    build = _in_use()
    if build is not None:
        sys.meta_path.insert(0, _Finder(build))
    return build is not None


def directory() -> str:
    """The build's directory, named by a digest of the sources: a build of others has another name.
    All that compiled modules can import counts, as they rely on its types.

    Every start waits for this. It takes 3 ms, of which reading the sources is the most."""
    digest = hashlib.sha256(SUFFIX.encode())
    for folder, folders, names in os.walk(_HERE):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in sorted(names):
            if name.endswith(".py"):
                source = os.open(os.path.join(folder, name), os.O_RDONLY)
                digest.update(os.read(source, _MORE_THAN_A_SOURCE))
                os.close(source)
    return os.path.join(_HERE, "_compiled", digest.hexdigest()[:20])
