"""Compiles the hot modules with mypyc where a C compiler is installed.

``python -m kafka08.compiled`` builds them into ``_compiled`` beside this file; ``builds`` has
imports use them. The build is optional: without a compiler everything runs from the sources. With
MYPYC_OPT_LEVEL=0 in the environment, which mypyc's own build knows too, it takes half as long.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kafka08 import builds

MODULES = (
    "kafka08.cluster.partition",
    "kafka08.cluster.replica",
    "kafka08.log.leader_epochs",
    "kafka08.log.log",
    "kafka08.log.numbering",
    "kafka08.log.producer_state",
    "kafka08.log.producers",
    "kafka08.log.segments.file_slice",
    "kafka08.log.segments.index",
    "kafka08.log.segments.indexes",
    "kafka08.log.segments.one_family",
    "kafka08.log.segments.residency",
    "kafka08.log.segments.segment",
    "kafka08.log.segments.segment_files",
    "kafka08.log.segments.time_index",
    "kafka08.log.tail",
    "kafka08.message.batch",
    "kafka08.message.compression",
    "kafka08.message.entry",
    "kafka08.message.markers",
    "kafka08.message.sets",
    "kafka08.message.timed_sets",
    "kafka08.message.times",
    "kafka08.message.wrappers",
    "kafka08.metrics.meters",
    "kafka08.metrics.requests",
    "kafka08.metrics.topics",
    "kafka08.network.connection",
    "kafka08.network.peer",
    "kafka08.network.receiving",
    "kafka08.network.sending",
    "kafka08.network.workers",
    "kafka08.protocol.framing",
    "kafka08.protocol.registry",
    "kafka08.protocol.requests",
    "kafka08.server.apis.failures",
    "kafka08.server.apis.fetch",
    "kafka08.server.apis.produce",
    "kafka08.server.apis.transaction_logs",
    "kafka08.server.apis.transactions",
    "kafka08.server.rebuild.cache",
    "kafka08.server.rebuild.view",
    "kafka08.server.replication.acks",
    "kafka08.server.requests.counts",
    "kafka08.server.requests.dispatch",
    "kafka08.server.requests.heard",
    "kafka08.server.requests.long_work",
    "kafka08.server.requests.purgatory",
    "kafka08.server.storage.appends",
    "kafka08.server.storage.cold_reads",
    "kafka08.server.storage.reads",
    "kafka08.server.storage.replica_manager",
    "kafka08.server.storage.writes",
    "kafka08.server.transactions.coordinator",
    "kafka08.server.transactions.markers",
    "kafka08.server.transactions.states",
    "kafka08.server.transactions.store",
    "kafka08.server.transactions.verification",
)


def build() -> Path:
    """Compile and keep only this build. Raises ImportError (no mypyc) and
    CalledProcessError (no compiler, no Python headers)."""
    if importlib.util.find_spec("mypyc") is None:
        raise ImportError("mypyc is not installed")
    sources = [module.replace(".", os.sep) + ".py" for module in MODULES]
    target = Path(builds.directory())
    with tempfile.TemporaryDirectory(prefix="kafka08-build-") as scratch:
        subprocess.run(
            [sys.executable, "-c", _BUILDER, scratch, *sources],
            cwd=Path(__file__).resolve().parents[1],
            check=True,
            capture_output=True,
            text=True,
        )
        made = Path(scratch) / "made"
        found = {
            ".".join(path.relative_to(made).parts)[: -len(builds.SUFFIX)]: path
            for path in made.rglob(f"*{builds.SUFFIX}")
        }
        shutil.rmtree(target.parent, ignore_errors=True)
        target.parent.mkdir()
        unfinished = target.with_suffix(".tmp")
        unfinished.mkdir()
        for name, path in found.items():
            shutil.copy(path, unfinished / f"{name}{builds.SUFFIX}")
        unfinished.rename(target)  # a build appears as a whole or not at all
    return target


_BUILDER = """
import os, sys
from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.command.build_ext import build_ext
scratch, *sources = sys.argv[1:]
c = os.path.join(scratch, "c")
level = os.environ.get("MYPYC_OPT_LEVEL", "3")
extensions = mypycify(sources, opt_level=level, target_dir=c)
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
    print(f"{len(MODULES)} modules are compiled.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
