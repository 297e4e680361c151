"""The step of setuptools that collects the modules of a wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools.command.build_py import build_py

from kafka08 import builds
from tools.wheel import layout

ROOT = Path(__file__).parents[2]


class BuildPy(build_py):  # type: ignore[misc]
    """The directories of the checkout in the layout of a wheel, and machine code of the hot modules
    where it can be made. An editable install keeps the layout of the checkout."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        build = Path(self.build_lib)
        # An earlier build may have left modules that are gone.
        shutil.rmtree(build / "kafka08", ignore_errors=True)
        super().run()
        layout.complete(build, ROOT)
        if not os.environ.get(builds.SWITCH):
            _compile(build)

    def get_source_files(self) -> list[str]:
        """The files of an sdist."""
        added = [place for place, _ in layout.sources(ROOT)]
        return [*super().get_source_files(), *map(str, added), *map(str, layout.build_only(ROOT))]


def _compile(build: Path) -> None:
    """Run ``kafka08.compiled`` on the wheel's own sources. Other files that it leaves would become
    part of the wheel."""
    with tempfile.TemporaryDirectory(prefix="kafka08-mypy-") as cache:
        subprocess.run(
            [sys.executable, "-B", "-m", "kafka08.compiled"],
            cwd=build,
            env={**os.environ, "MYPY_CACHE_DIR": cache},
            check=False,  # it says in one line why nothing is compiled
        )
