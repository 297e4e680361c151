"""The required behaviour in situations, and the tests that show it.

tests/scenarios.ini has the texts. A test names its situations: ``@pytest.mark.scenario("ops-24")``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
NOT_YET = "not yet"


class Marked(NamedTuple):
    """A test and the situations that it shows; ``path`` is relative to the root of the checkout."""

    path: str
    name: str
    arguments: frozenset[str]
    scenarios: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}::{self.name}"


def texts() -> tuple[dict[str, str], dict[str, str]]:
    """By the names of situations: their texts, and why no test shows some part of them."""
    parser = ConfigParser(delimiters="=", interpolation=None)
    parser.read(ROOT / "tests/scenarios.ini", encoding="utf-8")
    areas = [area for area in parser.sections() if area != NOT_YET]
    named = {f"{area}-{number}": text for area in areas for number, text in parser[area].items()}
    return named, dict(parser[NOT_YET])


def marked(*folders: str) -> Iterator[Marked]:
    """Every test below these folders, found without importing it."""
    for folder in folders or ("tests", "integration"):
        for path in sorted((ROOT / folder).rglob("test_*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    marks = (mark for mark in node.decorator_list if isinstance(mark, ast.Call))
                    scenarios = tuple(
                        ast.literal_eval(name)
                        for mark in marks
                        if ast.unparse(mark.func) == "pytest.mark.scenario"
                        for name in mark.args
                    )
                    arguments = frozenset(each.arg for each in node.args.args)
                    yield Marked(str(path.relative_to(ROOT)), node.name, arguments, scenarios)


def table() -> Iterator[str]:
    """The lines of `pytest --scenarios`."""
    situations, reasons = texts()
    tests = list(marked())
    for name, text in situations.items():
        yield f"{name}: {text}"
        yield from (f"    {test}" for test in tests if name in test.scenarios)
        if name in reasons:
            yield f"    not yet: {reasons[name]}"
