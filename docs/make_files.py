"""Writes docs/files.md from the docstrings: ``python docs/make_files.py docs/files.md``."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TREES = ("kafka08", "zk", "tools", "integration")
SUFFIXES = (".py", ".pyx", ".h")

_INTRO = """\
# Files

Made by `make docs` from the first sentence of each module's docstring; do not edit.
[architecture.md](architecture.md) explains how the modules work together. Unit tests are in
`tests/`, in directories of the same names.
"""


def render(root: Path = ROOT) -> str:
    """The whole page: one table for each directory."""
    parts = [part for tree in TREES for part in _directories(root, root / tree)]
    return "\n".join([_INTRO, *parts])


def _directories(root: Path, directory: Path) -> Iterator[str]:
    files = [path for path in sorted(directory.iterdir()) if path.suffix in SUFFIXES]
    package = directory / "__init__.py"
    if files:
        lines = [f"## {directory.relative_to(root)}/", ""]
        about = summary(package) if package in files else ""
        if about:
            lines += [about, ""]
        lines += ["| File | What it is |", "| --- | --- |"]
        lines += [_row(path) for path in files if path != package]
        yield "\n".join(lines) + "\n"
    for below in sorted(path for path in directory.iterdir() if path.is_dir()):
        if (below / "__init__.py").exists():
            yield from _directories(root, below)


def _row(path: Path) -> str:
    return f"| `{path.name}` | {summary(path)} |".replace("``", "`")


def summary(path: Path) -> str:
    """The docstring's (in C: the first comment's) first lines, to the first end of a sentence."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(text)) or ""
    elif path.suffix == ".pyx":
        text = text.partition('"""')[2].partition('"""')[0]
    else:
        text = text.partition("/*")[2].partition("*/")[0]
    taken: list[str] = []
    for line in text.strip().splitlines():
        taken.append(line.strip())
        if not line.strip() or line.rstrip().endswith((".", "?", ":")):
            break
    return " ".join(taken).strip().replace("|", "\\|").replace("``", "`")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
