"""Changes imports of a checkout's top-level packages into imports from ``kafka08``.

A checkout has the packages ``tools`` and ``zk`` beside ``kafka08``. In site-packages these names
may be another project's, so a wheel has them as ``kafka08.tools`` and ``kafka08.zk``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

PARENT = b"kafka08"
MOVED = ("tools", "zk")

_FROM = re.compile(rb"from[ \t]+")
_IMPORT = re.compile(rb"import[ \t]+")


def moved(source: bytes, path: str) -> bytes:
    """``source``, in UTF-8, with every import of MOVED changed and all else as it is. Raises
    ValueError, with ``path`` and line, for an import that must be written in another way."""
    lines = source.splitlines(keepends=True)
    found = [node for node in ast.walk(ast.parse(source, path)) if _is_concerned(node)]
    for line, column, node in sorted(_places(found), key=lambda place: place[:2], reverse=True):
        start, end = lines[line - 1][:column], lines[line - 1][column:]
        changed = _changed(node, end)
        if changed is None:
            raise ValueError(f"{path}:{line}: a wheel cannot have this import: {ast.unparse(node)}")
        lines[line - 1] = start + changed
    return b"".join(lines)


def _is_concerned(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and _is_moved(node.module)
    if isinstance(node, ast.Import):
        return any(_is_moved(alias.name) for alias in node.names)
    if isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
        # importlib.import_module("zk.client"): it is not seen by those who read imports
        return any(_is_moved(arg.value) for arg in node.args if isinstance(arg, ast.Constant))
    return False


def _is_moved(name: object) -> bool:
    return isinstance(name, str) and name.split(".")[0] in MOVED


def _places(nodes: list[ast.AST]) -> Iterator[tuple[int, int, ast.stmt | ast.expr]]:
    for node in nodes:
        assert isinstance(node, ast.stmt | ast.expr)
        yield node.lineno, node.col_offset, node


def _changed(node: ast.stmt | ast.expr, text: bytes) -> bytes | None:
    """The rest of a line from an import on, or None if it has no equal below PARENT."""
    if isinstance(node, ast.ImportFrom):
        keyword = _FROM.match(text)
        return keyword and keyword[0] + PARENT + b"." + text[keyword.end() :]
    keyword = _IMPORT.match(text)
    if not isinstance(node, ast.Import) or keyword is None or len(node.names) > 1:
        return None
    (alias,) = node.names
    if alias.asname:
        return keyword[0] + PARENT + b"." + text[keyword.end() :]
    return None if "." in alias.name else b"from " + PARENT + b" " + text
