"""Compiles the hot modules with mypyc where a C compiler is installed.

``python -m kafka08.compiled`` builds them into ``_compiled`` beside this file; ``activate`` makes
imports use that build. A build of other sources than those on disk is never loaded, so an edited
module runs interpreted until the next build. The build is optional: without a compiler, or with
KAFKA08_INTERPRETED set, everything runs from the sources.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from pathlib import Path
from types import ModuleType

MODULES = (
    "kafka08.cluster.partition",
    "kafka08.cluster.replica",
    "kafka08.log.freshness",
    "kafka08.log.index",
    "kafka08.log.leader_epochs",
    "kafka08.log.log",
    "kafka08.log.numbering",
    "kafka08.log.producers",
    "kafka08.log.residency",
    "kafka08.log.segment",
    "kafka08.log.segment_files",
    "kafka08.log.tail_readers",
    "kafka08.log.time_index",
    "kafka08.message.batch",
    "kafka08.message.compression",
    "kafka08.message.entry",
    "kafka08.message.sets",
    "kafka08.message.timed_sets",
    "kafka08.message.wrappers",
    "kafka08.metrics.meters",
    "kafka08.metrics.requests",
    "kafka08.metrics.topics",
    "kafka08.network.connection",
    "kafka08.network.workers",
    "kafka08.protocol.framing",
    "kafka08.protocol.registry",
    "kafka08.protocol.requests",
    "kafka08.server.acks",
    "kafka08.server.apis.failures",
    "kafka08.server.apis.fetch",
    "kafka08.server.apis.produce",
    "kafka08.server.appends",
    "kafka08.server.cold_reads",
    "kafka08.server.counts",
    "kafka08.server.dispatch",
    "kafka08.server.long_work",
    "kafka08.server.purgatory",
    "kafka08.server.rebuild",
    "kafka08.server.rebuild_cache",
    "kafka08.server.replica_manager",
)
SWITCH = "KAFKA08_INTERPRETED"

_HERE = Path(__file__).resolve().parent
_BUILDS = _HERE / "_compiled"
_SUFFIX = EXTENSION_SUFFIXES[0]


class _Finder:
    """Finds the modules of one build by their full names."""

    def __init__(self, build: Path) -> None:
        self._files = {path.name[: -len(_SUFFIX)]: path for path in build.glob(f"*{_SUFFIX}")}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(name)
        return None if file is None else importlib.util.spec_from_file_location(name, file)


def is_ready() -> bool:
    """Whether there is a build of the present sources and it may be used."""
    return _build_in_use() is not None


def _build_in_use() -> Path | None:
    if os.environ.get(SWITCH):
        return None
    build = _directory()
    return build if build.is_dir() else None


def activate() -> bool:
    """Make imports use the build, if ``is_ready``; returns ``is_ready``.

    Must be called before any of the modules is imported.
    """
    build = _build_in_use()
    if build is not None:
        sys.meta_path.insert(0, _Finder(build))
    return build is not None


def build() -> Path:
    """Compile and keep only this build. Raises ImportError (no mypyc) and
    CalledProcessError (no compiler, no Python headers)."""
    if importlib.util.find_spec("mypyc") is None:
        raise ImportError("mypyc is not installed")
    target = _directory()
    with tempfile.TemporaryDirectory(prefix="kafka08-build-") as scratch:
        subprocess.run(
            [sys.executable, "-c", _BUILDER, scratch, *_sources()],
            cwd=_HERE.parent,
            check=True,
            capture_output=True,
            text=True,
        )
        made = Path(scratch) / "made"
        found = {
            ".".join(path.relative_to(made).parts)[: -len(_SUFFIX)]: path
            for path in made.rglob(f"*{_SUFFIX}")
        }
        shutil.rmtree(_BUILDS, ignore_errors=True)
        _BUILDS.mkdir()
        unfinished = target.with_suffix(".tmp")
        unfinished.mkdir()
        for name, path in found.items():
            shutil.copy(path, unfinished / f"{name}{_SUFFIX}")
        unfinished.rename(target)  # a build appears as a whole or not at all
    return target


_BUILDER = """
import os, sys
from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.command.build_ext import build_ext
scratch, *sources = sys.argv[1:]
c = os.path.join(scratch, "c")
extensions = mypycify(sources, opt_level="3", target_dir=c)
for extension in extensions:
    # Functions of the build are called directly or inlined, those of Python without a table.
    extension.extra_compile_args += [
        "-fvisibility=hidden", "-fno-semantic-interposition", "-fno-plt"
    ]
command = build_ext(Distribution({"name": "kafka08", "ext_modules": extensions}))
command.build_temp = os.path.join(scratch, "objects")
command.build_lib = os.path.join(scratch, "made")
command.ensure_finalized()
command.run()
"""


def _sources() -> list[str]:
    return [module.replace(".", os.sep) + ".py" for module in MODULES]


def _directory() -> Path:
    """The build's directory, named by a digest of all sources: a build of other sources has
    another name. All sources count, as compiled code relies on the types of what it imports.

    Every start waits for this. It takes 5 ms, of which reading the sources is the most."""
    digest = hashlib.sha256(_SUFFIX.encode())
    for folder, folders, names in os.walk(_HERE):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb", buffering=0) as source:
                    digest.update(source.read())
    return _BUILDS / digest.hexdigest()[:20]


def obstacle() -> str:
    """The needs of a build that this machine lacks, except Python packages; may be empty."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler})"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "there are no headers of Python (on Debian the package python3-dev)"
    return ""


def main(argv: Sequence[str]) -> int:
    """Build and print the outcome in one line; returns 1 if nothing is compiled.

    With ``--ready`` the exit status only says whether the machine can compile.
    """
    if "--ready" in argv:
        return 1 if obstacle() else 0
    reason = obstacle()
    try:
        if not reason:
            build()
    except (ImportError, OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or getattr(error, "stdout", None) or error
        reason = str(said).strip().rpartition("\n")[2]
    if reason:
        print(f"Nothing is compiled, the broker runs from its Python sources: {reason}.")
        return 1
    print(f"{len(_sources())} modules are compiled.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
