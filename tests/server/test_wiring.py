"""How the parts of a broker are put together: read from the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for package in ("server", "cluster", "network")
    for path in (ROOT / "kafka08" / package).rglob("*.py")
)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def callbacks(tree: ast.AST) -> list[str]:
    """Parameters named on_*: a function that a part above has to give to one below."""
    return [
        f"{function.name}({each.arg})"
        for function in functions(tree)
        for each in (*function.args.args, *function.args.kwonlyargs)
        if each.arg.startswith("on_")
    ]


def named_before_they_exist(tree: ast.AST) -> list[str]:
    """Variables in a lambda or an inner function that are first assigned further down."""
    found = []
    for outer in functions(tree):
        assigned: dict[str, int] = {}
        for name in names(outer, ast.Store):
            assigned[name.id] = min(name.lineno, assigned.get(name.id, name.lineno))
        for inner in ast.walk(outer):
            if isinstance(inner, (ast.Lambda, ast.FunctionDef)) and inner is not outer:
                own = {each.arg for each in inner.args.args}
                own |= {name.id for name in names(inner, ast.Store)}
                found += [
                    f"{outer.name}: {name.id}"
                    for name in names(inner, ast.Load)
                    if name.id not in own and assigned.get(name.id, 0) > inner.lineno
                ]
    return found


def names(tree: ast.AST, context: type[ast.expr_context]) -> list[ast.Name]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    ]


def tasks_without_owner(tree: ast.AST) -> list[str]:
    """Calls of spawn whose result nobody keeps."""
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("spawn")
    ]


RULES = [callbacks, named_before_they_exist, tasks_without_owner]


@pytest.mark.parametrize("rule", RULES)
def test_no_file_breaks_the_rule(rule: object) -> None:
    assert callable(rule)
    trees = {str(path): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    assert {name: found for name, tree in trees.items() if (found := rule(tree))} == {}


@pytest.mark.parametrize(
    ("rule", "source", "found"),
    [
        (callbacks, "def f(a, *, on_end): ...", ["f(on_end)"]),
        (named_before_they_exist, "def f():\n    g = lambda: later()\n    later = g", ["f: later"]),
        (named_before_they_exist, "def f(a):\n    b = a\n    return lambda c: (a, b, c)", []),
        (tasks_without_owner, "gevent.spawn(f)", ["gevent.spawn(f)"]),
        (tasks_without_owner, "task = gevent.spawn(f)", []),
    ],
)
def test_what_breaks_a_rule_is_found(rule: object, source: str, found: list[str]) -> None:
    assert callable(rule)
    assert rule(ast.parse(source)) == found
