from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.run_class import MODULES
from tools.wheel import layout

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python sources and the scripts of a wheel."""
    build = tmp_path_factory.mktemp("site packages")
    ignored = shutil.ignore_patterns("__pycache__", "_compiled", "*.so", "*.c")
    shutil.copytree(ROOT / "kafka08", build / "kafka08", ignore=ignored)
    layout.complete(build, ROOT)
    return build


def test_nothing_but_kafka08_is_at_the_top(tree: Path) -> None:
    assert [path.name for path in tree.iterdir()] == ["kafka08"]


def test_scripts_and_settings_lie_as_in_a_checkout(tree: Path) -> None:
    home = tree / "kafka08" / "_home"
    scripts = {path.name for path in (ROOT / "bin").iterdir() if not path.is_symlink()}
    assert {path.name for path in (home / "bin").iterdir()} == scripts
    assert {path.name for path in (home / "config").iterdir()} == {
        path.name for path in (ROOT / "config").iterdir() if path.is_file()
    }
    assert all(os.access(path, os.X_OK) for path in (home / "bin").glob("*.sh"))


def test_only_builds_need_this_package(tree: Path) -> None:
    assert not (tree / "kafka08" / "tools" / "wheel").exists()
    assert "tools/wheel/backend.py" in map(str, layout.build_only(ROOT))


def test_every_class_runs_from_it(tree: Path) -> None:
    """Each module of run_class is imported by the names that it has in a wheel, and by no other."""
    code = (
        "import sys\n"
        "from kafka08.tools.run_class import MODULES, module_of\n"
        "for name in MODULES:\n"
        "    module_of(name)\n"
        "from kafka08.spark.package import PACKAGES\n"
        "print(len(MODULES), PACKAGES, {'zk', 'tools'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{len(MODULES)} ('kafka08', 'kazoo') set()\n"


def test_an_unknown_class_through_its_launcher(tree: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, tree / "kafka08/_home/bin/kafka-java.py", "no.Such"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "Error: Could not find or load main class no.Such\n"
