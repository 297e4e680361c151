"""The tables of required behaviour: each situation with the tests that show it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Scenario(NamedTuple):
    """A situation with its outcome, and its tests as ``file::function``. ``not_yet``: the part that
    no test shows, with the reason."""

    text: str
    tests: tuple[str, ...]
    not_yet: str = ""


def named(path: str, *names: str) -> tuple[str, ...]:
    """Tests of one module, whose ``path`` has no suffix; ``names`` are without ``test_``."""
    return tuple(f"{path}.py::test_{name}" for name in names)


@cache
def functions(path: str) -> dict[str, frozenset[str]]:
    """The arguments of each function of a module, by name."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name: frozenset(argument.arg for argument in node.args.args)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def assert_they_exist(tests: Iterable[str]) -> None:
    for test in tests:
        path, _, name = test.partition("::")
        assert name in functions(path), test


def all_in(path: str) -> set[str]:
    """The tests of a module."""
    return {f"{path}::{name}" for name in functions(path) if name.startswith("test_")}
