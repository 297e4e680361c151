"""Files that remember what has been synced, and processes and machines that die at any call.

``FaultyFiles`` stands between the code under test and the real files below one directory: it
replaces the functions of ``os`` (and ``open`` for writing, ``shutil.rmtree``) while in use,
passes calls for other paths through, and counts the changing ones. At a chosen call
it raises ``Crash`` - a write may first be done in part - and from then on lets nothing through,
as for a dead process. It can also fail one write, again after a part of it.

The state after a power cut differs from the state that the process saw. A file has the content of
its last fsync plus a random part of the later changes (sizes in order, data pages in any order). A
directory has the names of its last fsync plus the first few later changes. POSIX promises no more;
most file systems keep more. Knows nothing of logs.
"""

from __future__ import annotations

import builtins
import io
import mmap
import os
import random
import shutil
import stat
from collections.abc import Callable
from typing import Any

PAGE = 32  # what survives or not of a write as one; small, as the tests' files are


class Crash(BaseException):
    """The process is dead. No handler for errors catches it."""


class FileNode:
    """A file's content as last synced, and the changes since: (position, data) or a new size."""

    __slots__ = ("pending", "synced")

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = synced
        self.pending: list[tuple[int, bytes] | int] = []

    def sync(self) -> None:
        content = bytearray(self.synced)
        for change in self.pending:
            if isinstance(change, int):
                del content[change:]
                content.extend(bytes(change - len(content)))
            else:
                position, data = change
                content.extend(bytes(max(position - len(content), 0)))
                content[position : position + len(data)] = data
        self.synced, self.pending = bytes(content), []

    def survivor(self, rng: random.Random) -> bytes:
        count = _some(rng, len(self.pending))
        content = bytearray(self.synced)
        losing = rng.random() < 0.5
        for number, change in enumerate(self.pending[:count]):
            if isinstance(change, int):
                del content[change:]
                content.extend(bytes(change - len(content)))
                continue
            position, data = change
            if number == count - 1 and rng.random() < 0.3:
                data = data[: rng.randint(0, len(data))]
            content.extend(bytes(max(position + len(data) - len(content), 0)))
            for at in range(0, len(data), PAGE):
                if not losing or rng.random() < 0.7:
                    page = data[at : at + PAGE]
                    content[position + at : position + at + len(page)] = page
        return bytes(content)


class DirectoryNode:
    """A directory's names as last synced, and the changes since: functions on a dict."""

    __slots__ = ("pending", "synced")

    def __init__(self) -> None:
        self.synced: dict[str, Node] = {}
        self.pending: list[Callable[[dict[str, Node]], object]] = []

    def names(self, count: int) -> dict[str, Node]:
        names = dict(self.synced)
        for change in self.pending[:count]:
            change(names)
        return names


Node = FileNode | DirectoryNode


def _some(rng: random.Random, count: int) -> int:
    """How many of ``count`` changes reached the disk: all and none more often than by chance."""
    return rng.choice((0, count, rng.randint(0, count), rng.randint(0, count)))


class FaultyFiles:
    """Everything below ``root``, which must exist and be empty. Use as a context manager.

    ``clock`` (ms) gives files their times. ``calls`` counts changing calls; when it reaches
    ``crash_at`` the call is not done, or in part, and Crash is raised. The next write raises
    ``error`` if that is set, or is done in part if ``is_short``. ``on_fsync``, if set, is called in
    the middle of each fsync.
    """

    def __init__(self, root: str, clock: Callable[[], int], rng: random.Random) -> None:
        self.root = root
        self.clock = clock
        self.rng = rng
        self.calls = 0
        self.crash_at = -1
        self.error: OSError | None = None
        self.is_short = False
        self.dead = False
        self.on_fsync: Callable[[], object] | None = None
        self._tree = DirectoryNode()
        self._live: dict[str, Node] = {root: self._tree}
        self._open: dict[int, Node] = {}
        self._real: dict[str, Any] = {}

    def __enter__(self) -> FaultyFiles:
        for module, name, replacement in (
            (os, "open", self._os_open),
            (os, "close", self._close),
            (os, "write", self._write),
            (os, "pwrite", self._pwrite),
            (os, "ftruncate", self._ftruncate),
            (os, "truncate", self._truncate),
            (os, "fsync", self._fsync),
            (os, "fdatasync", self._fsync),
            (os, "replace", self._replace),
            (os, "rename", self._replace),
            (os, "unlink", self._unlink),
            (os, "remove", self._unlink),
            (os, "mkdir", self._mkdir),
            (os, "rmdir", self._rmdir),
            (os, "utime", self._utime),
            (os, "listdir", self._listdir),
            (shutil, "rmtree", self._rmtree),
            (builtins, "open", self._open_file),
            (mmap, "mmap", self._mmap),
        ):
            key = f"{module.__name__}.{name}"
            self._real[key] = getattr(module, name)
            setattr(module, name, replacement)
        return self

    def __exit__(self, *_: object) -> None:
        modules = {"os": os, "shutil": shutil, "builtins": builtins, "mmap": mmap}
        for key, function in self._real.items():
            module, name = key.split(".")
            setattr(modules[module], name, function)

    # Death and what comes after

    def revive(self, *, power_cut: bool) -> None:
        """A new process begins; after a ``power_cut`` with the files that survived it."""
        self.dead = False
        self.crash_at = -1
        if power_cut:
            self._wipe(self.root)
            self._live = {}
            self._tree = self._survive(self.root, self._tree)

    def _wipe(self, path: str) -> None:
        for entry in list(os.scandir(path)):
            if entry.is_dir(follow_symlinks=False):
                self._wipe(entry.path)
            else:
                self._real["os.unlink"](entry.path)
        self._real["os.rmdir"](path)

    def sync_everything(self) -> None:
        """Mark the present state of all files as synced."""
        for path, node in self._live.items():
            if isinstance(node, DirectoryNode):
                node.synced, node.pending = node.names(len(node.pending)), []
            else:
                with self._real["builtins.open"](path, "rb") as file:
                    node.synced, node.pending = file.read(), []

    def _survive(self, path: str, old: DirectoryNode) -> DirectoryNode:
        new = DirectoryNode()
        self._live[path] = new
        self._real["os.mkdir"](path)
        for name, child in old.names(_some(self.rng, len(old.pending))).items():
            below = f"{path}/{name}"
            if isinstance(child, DirectoryNode):
                new.synced[name] = self._survive(below, child)
                continue
            content = child.survivor(self.rng)
            with self._real["builtins.open"](below, "wb") as file:
                file.write(content)
            self._stamp(below)
            new.synced[name] = self._live[below] = FileNode(content)
        return new

    def _stamp(self, path: str | int) -> None:
        now = self.clock() * 1_000_000
        self._real["os.utime"](path, ns=(now, now))

    def _node(self, path: Any) -> Node | None:
        return self._live.get(path) if isinstance(path, str) else None

    def _ours(self, path: Any) -> bool:
        return isinstance(path, str) and path.startswith(self.root)

    def _step(self, what: str, place: str | Node) -> None:
        """Called once before each change, ``what``, of a path or of an open file."""
        if self.dead:
            raise Crash("the process is dead")
        self.calls += 1
        if self.calls == self.crash_at:
            self.dead = True
            raise Crash(f"at call {self.calls}")

    def _change(self, path: str, change: Callable[[dict[str, Node]], object]) -> None:
        parent = self._live[os.path.dirname(path)]
        assert isinstance(parent, DirectoryNode), path
        parent.pending.append(change)

    # The functions of os

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        real = self._real["os.open"]
        if not self._ours(path) or more:
            return int(real(path, flags, mode, **more))
        node = self._live.get(path)
        if node is None and flags & os.O_CREAT:
            self._step("create", path)
            fd = int(real(path, flags, mode))
            self._stamp(fd)
            self._add(path, FileNode())
        else:
            if node is not None and flags & os.O_TRUNC:
                assert isinstance(node, FileNode)
                self._step("truncate", node)
                node.pending.append(0)
            elif self.dead and flags & (os.O_WRONLY | os.O_RDWR):
                raise Crash("the process is dead")
            fd = int(real(path, flags, mode))
        self._open[fd] = self._live[path]
        return fd

    def _add(self, path: str, node: Node) -> None:
        name = os.path.basename(path)
        self._live[path] = node
        self._change(path, lambda names: names.__setitem__(name, node))

    def _close(self, fd: int) -> None:
        self._open.pop(fd, None)
        self._real["os.close"](fd)

    def _pwrite(self, fd: int, data: Any, position: int) -> int:
        node = self._open.get(fd)
        real = self._real["os.pwrite"]
        if node is None:
            return int(real(fd, data, position))
        assert isinstance(node, FileNode)
        data = bytes(data)
        try:
            self._step("write", node)
            if self.error is not None:
                error, self.error = self.error, None
                raise error
        except (Crash, OSError) as error:
            if self.calls == self.crash_at or isinstance(error, OSError):
                part = data[: self.rng.randint(0, len(data))]
                self.crash_at = -1
                if part:
                    real(fd, part, position)
                    self._stamp(fd)
                    node.pending.append((position, part))
            raise
        if self.is_short and len(data) > 1:
            self.is_short = False
            data = data[: self.rng.randrange(1, len(data))]
        real(fd, data, position)
        self._stamp(fd)
        node.pending.append((position, data))
        return len(data)

    def _write(self, fd: int, data: Any) -> int:
        if fd not in self._open:
            return int(self._real["os.write"](fd, data))
        position = os.lseek(fd, 0, os.SEEK_CUR)
        written = self._pwrite(fd, data, position)
        os.lseek(fd, position + written, os.SEEK_SET)
        return written

    def _ftruncate(self, fd: int, size: int) -> None:
        node = self._open.get(fd)
        if node is not None:
            assert isinstance(node, FileNode)
            self._step("truncate", node)
            node.pending.append(size)
        self._real["os.ftruncate"](fd, size)
        if node is not None:
            self._stamp(fd)

    def _truncate(self, path: Any, size: int) -> None:
        if not self._ours(path):
            self._real["os.truncate"](path, size)
            return
        fd = self._os_open(path, os.O_RDWR)
        try:
            self._ftruncate(fd, size)
        finally:
            self._close(fd)

    def _fsync(self, fd: int) -> None:
        node = self._open.get(fd)
        if node is None:
            self._real["os.fsync"](fd)
            return
        self._step("sync", node)
        if isinstance(node, DirectoryNode):
            node.synced, node.pending = node.names(len(node.pending)), []
        else:
            node.sync()
        if self.on_fsync is not None:
            self.on_fsync()

    def _replace(self, source: Any, target: Any, **more: Any) -> None:
        if not self._ours(source):
            self._real["os.replace"](source, target, **more)
            return
        if source in self._live:
            self._step("rename", source)
        self._real["os.replace"](source, target)
        node = self._live.pop(source)
        assert isinstance(node, FileNode), "renaming directories is not known here"
        assert os.path.dirname(source) == os.path.dirname(target)
        self._live[target] = node
        old, new = os.path.basename(source), os.path.basename(target)

        def rename(names: dict[str, Node]) -> None:
            names[new] = names.pop(old)

        self._change(source, rename)

    def _unlink(self, path: Any, **more: Any) -> None:
        self._drop("os.unlink", path, **more)

    def _rmdir(self, path: Any, **more: Any) -> None:
        self._drop("os.rmdir", path, **more)

    def _drop(self, function: str, path: Any, **more: Any) -> None:
        if not self._ours(path):
            self._real[function](path, **more)
            return
        if path in self._live:
            self._step("remove", path)
        self._real[function](path)
        del self._live[path]
        name = os.path.basename(path)
        self._change(path, lambda names: names.pop(name))

    def _mkdir(self, path: Any, mode: int = 0o777, **more: Any) -> None:
        ours = self._ours(path)
        if ours and path not in self._live:
            self._step("create", path)
        self._real["os.mkdir"](path, mode, **more)
        if ours:
            self._add(path, DirectoryNode())

    def _utime(self, path: Any, times: Any = None, **more: Any) -> None:
        """File times count as durable at once, because no log depends on them."""
        if self._ours(path):
            self._step("stamp", path)
        elif isinstance(path, int) and path in self._open:
            self._step("stamp", self._open[path])
        if times is not None:
            more["times"] = times
        self._real["os.utime"](path, **more)

    def _listdir(self, path: Any = ".") -> list[str]:
        """The names in a random order, which is the same for a seed on every file system."""
        names: list[str] = self._real["os.listdir"](path)
        if self._ours(path):
            names.sort()
            self.rng.shuffle(names)
        return names

    def _rmtree(self, path: Any, *args: Any, **more: Any) -> None:
        if not self._ours(path):
            self._real["shutil.rmtree"](path, *args, **more)
            return
        for name in os.listdir(path):
            below = os.path.join(path, name)
            if stat.S_ISDIR(os.lstat(below).st_mode):
                self._rmtree(below)
            else:
                self._unlink(below)
        self._rmdir(path)

    # Objects

    def _open_file(self, file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        if file in self._open and more.get("closefd") is False:
            return _RawFile(self, file, append="a" in mode, owner=False)
        path = os.fspath(file) if not isinstance(file, int) else file
        if not self._ours(path) or not set(mode) & set("wax+"):
            return self._real["builtins.open"](file, mode, *args, **more)
        flags = os.O_RDWR | os.O_CREAT
        flags |= (os.O_TRUNC if "w" in mode else 0) | (os.O_EXCL if "x" in mode else 0)
        raw = _RawFile(self, self._os_open(path, flags, 0o666), append="a" in mode)
        buffered = io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(
            buffered, encoding=more.get("encoding") or "utf-8", newline=more.get("newline")
        )

    def _mmap(self, fd: int, length: int, *args: Any, **more: Any) -> mmap.mmap:
        written = fd in self._open and more.get("prot") != mmap.PROT_READ
        assert not written, "stores into a map cannot be watched"
        mapped: mmap.mmap = self._real["mmap.mmap"](fd, length, *args, **more)
        return mapped


class _RawFile(io.RawIOBase):
    """The raw file below ``open`` for writing; a dead process's buffers are lost."""

    def __init__(self, files: FaultyFiles, fd: int, *, append: bool, owner: bool = True) -> None:
        self._files = files
        self._owner = owner
        self._fd = fd
        if append:
            os.lseek(fd, 0, os.SEEK_END)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def write(self, data: Any) -> int:
        return len(data) if self._files.dead else self._files._write(self._fd, data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            if self._owner:
                self._files._close(self._fd)
