"""Adds the checkout's other directories to the modules of ``kafka08``, as a wheel has them.

``kafka08/zk`` and ``kafka08/tools`` are the packages of those names; ``kafka08/_home`` has ``bin``
and ``config``, as a checkout's top level does. See docs/adr/0051-packages.md.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from tools.wheel.imports import MOVED, moved

# Only builds need it.
_LEFT_OUT = Path("tools", "wheel")
_HOME = Path("kafka08", "_home")


def sources(root: Path) -> Iterator[tuple[Path, Path]]:
    """(place in the checkout, place in the wheel) of each file to add, both relative."""
    for package in MOVED:
        for path in sorted((root / package).rglob("*.py")):
            place = path.relative_to(root)
            if not place.is_relative_to(_LEFT_OUT):
                yield place, "kafka08" / place
    for directory, patterns in (
        ("bin", ("*.sh", "*.bash", "*.py")),
        ("config", ("*.json", "*.properties", "*.yml")),
    ):
        for pattern in patterns:
            for path in sorted((root / directory).glob(pattern)):
                place = path.relative_to(root)
                yield place, _HOME / place


def build_only(root: Path) -> Iterator[Path]:
    """Of the files that only builds need, the places in the checkout: an sdist has them too."""
    for path in sorted((root / _LEFT_OUT).rglob("*.py")):
        yield path.relative_to(root)


def console_scripts(root: Path) -> list[str]:
    """The commands, as pip writes them: both names of each script, and three of their own."""
    names = {name for path in (root / "bin").glob("*.sh") for name in (path.name, path.stem)}
    return [
        "kafka08-container = kafka08.container:main",
        "kafka08-home = kafka08.commands:print_home",
        "kafka08-spark-submit = kafka08.spark.submit:main",
        *(f"{name} = kafka08.commands:run_script" for name in sorted(names)),
    ]


def complete(build: Path, root: Path) -> None:
    """Add all ``sources`` to ``build``, which has the modules of ``kafka08``, and move imports."""
    for place, target in sources(root):
        (build / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / place, build / target)
    for path in sorted((build / "kafka08").rglob("*.py")):
        source = path.read_bytes()
        changed = moved(source, str(path.relative_to(build)))
        if changed != source:
            path.write_bytes(changed)
