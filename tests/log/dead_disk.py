"""A disk that dies: every call for what is below one directory is EIO from some call on."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

BY_PATH = ("open", "stat", "replace", "rename", "unlink", "mkdir", "listdir", "scandir", "rmdir")
BY_FD = ("pwrite", "pread", "preadv", "fsync", "ftruncate")


class Dead:
    """After ``die`` and ``after`` more calls nothing below ``root`` can be read or written.

    ``met`` counts the calls that were refused.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: str) -> None:
        self._patch = monkeypatch
        self._root = root
        self._left = 0
        self.met = 0

    def die(self, after: int = 0) -> None:
        self._left = after
        for name in BY_PATH:
            self._patch.setattr(os, name, self._refusing(getattr(os, name), lambda path: path))
        for name in BY_FD:
            self._patch.setattr(os, name, self._refusing(getattr(os, name), _path_of))
        self._patch.setattr(builtins, "open", self._refusing(open, lambda path: path))

    def _refusing(self, real: Any, path_of: Callable[[Any], Any]) -> Any:
        def function(target: Any, *args: Any, **more: Any) -> Any:
            path = path_of(target)
            if self._is_ours(path):
                self._left -= 1
                if self._left >= 0:
                    return real(target, *args, **more)
                self.met += 1
                raise OSError(errno.EIO, "Input/output error", str(path))
            return real(target, *args, **more)

        return function

    def _is_ours(self, path: Any) -> bool:
        path = str(path)
        return path == self._root or path.startswith(self._root + os.sep)


_readlink = os.readlink


def _path_of(fd: int) -> str:
    return _readlink(f"/proc/self/fd/{fd}")
