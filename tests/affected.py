"""The unit tests that a change touches: ``python -m tests.affected [REVISION]`` prints their files.

A module touches the tests that import it, themselves or through other modules of the tests, and the
tests of those modules that import it. Any other file touches the tests that name it. The change is
what differs from where the branch left REVISION, the main branch unless given.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests import house
from tests.house import Source

# The structure of the code and its pages, which every change touches.
ALWAYS = tuple(f"tests/test_{name}.py" for name in ("house", "layers", "pages", "scenarios"))


def affected(changed: set[str], sources: list[Source]) -> list[str]:
    """The paths of test modules, for the paths of files that were changed or deleted."""
    return sorted(set(_affected(changed, sources)).union(ALWAYS))


def _affected(changed: set[str], sources: list[Source]) -> Iterator[str]:
    modules = {source.module for source in sources}
    imports = {s.module: {name for name, _ in house.imported(s, modules)} for s in sources}
    touched = {source.module for source in sources if source.path in changed}
    users = {s.path for s in sources if imports[s.module] & touched}
    mirrored = {house.mirrored(path) for path in users | changed}
    tests = [source for source in sources if source.package == house.TESTS]
    others = [Path(path) for path in changed if not path.endswith(".py")]
    words = ["_native" if path.suffix in (".h", ".pyx") else path.name for path in others]
    touched |= {test.module for test in tests if any(word in test.text for word in words)}
    while more := {t.module for t in tests if imports[t.module] & touched} - touched:
        touched |= more
    for source in tests:
        is_test = Path(source.path).name.startswith("test_")
        if is_test and (source.module in touched or source.path in mirrored):
            yield source.path


def changes(revision: str) -> set[str]:
    """The files that differ from where this branch left the revision, and those not committed."""
    base = _git("merge-base", "HEAD", revision)
    return {
        *_git("diff", "--name-only", *base),
        *_git("ls-files", "--others", "--exclude-standard"),
    }


def main_branch() -> str:
    known = _git("for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/main")
    return known[0] if known else "main"


def _git(*arguments: str) -> list[str]:
    return subprocess.check_output(["git", *arguments], cwd=house.ROOT, text=True).splitlines()


if __name__ == "__main__":
    revision = sys.argv[1] if len(sys.argv) > 1 else main_branch()
    print("\n".join(affected(changes(revision), house.read())))
