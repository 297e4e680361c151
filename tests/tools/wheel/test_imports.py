from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.wheel.imports import MOVED, moved

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from zk import znodes\n", "from kafka08.zk import znodes\n"),
        ("from zk.a import (\n    b,\n)\n", "from kafka08.zk.a import (\n    b,\n)\n"),
        ("from  tools\timport a # zk\r\n", "from  kafka08.tools\timport a # zk\r\n"),
        ("from \\\n  zk import a", "from kafka08.\\\n  zk import a"),
        ("import zk", "from kafka08 import zk"),
        ("import zk as z", "import kafka08.zk as z"),
        ("import tools.options as o", "import kafka08.tools.options as o"),
        ("import zk; import zk as z", "from kafka08 import zk; import kafka08.zk as z"),
        ("if a:\n\tfrom zk import b", "if a:\n\tfrom kafka08.zk import b"),
        ("é = 'ü'; from zk import a\n", "é = 'ü'; from kafka08.zk import a\n"),
    ],
)  # fmt: skip
def test_an_import_is_moved(before: str, after: str) -> None:
    assert moved(before.encode(), "x.py").decode() == after


@pytest.mark.parametrize(
    "source",
    [
        "from zkx import a\nimport toolshed\nfrom kafka08.zk import b\nfrom .zk import c\n",
        "'''\nfrom zk import a\nimport tools\n'''\n# import zk\nx = 'zk.client'\n",
        "x.zk.client = tools.options\n",
        "importlib.import_module('zkx')\nimportlib.import_module(zk)\n",
        "import os, sys\r\nx = 1\x0c\ny = 'a\u2028b'",
        "",
    ],
)
def test_all_else_stays_to_the_byte(source: str) -> None:
    assert moved(source.encode(), "x.py") == source.encode()


@pytest.mark.parametrize(
    "statement",
    ["import os, zk", "import zk.client", "from\\\n zk import a", "i.import_module('zk.a')"],
)  # fmt: skip
def test_an_import_that_must_be_written_in_another_way_is_named(statement: str) -> None:
    with pytest.raises(ValueError, match=r"kafka08/x\.py:2: a wheel cannot have this import"):
        moved(f"x = 1\n{statement}\n".encode(), "kafka08/x.py")


def test_every_module_of_the_checkout_can_be_moved() -> None:
    paths = [path for top in ("kafka08", *MOVED, "bin") for path in (ROOT / top).rglob("*.py")]
    assert len(paths) > 300
    for path in paths:
        source = path.read_bytes()
        made = moved(source, str(path))
        plain = sum(isinstance(node, ast.Import) for node in _theirs(source))
        others = len(_theirs(source)) - plain
        added = plain * len("from kafka08 ") + others * len("kafka08.")
        assert len(made) == len(source) + added, path
        assert _theirs(made) == []


def _theirs(source: bytes) -> list[ast.stmt]:
    return [
        node
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.ImportFrom) and not node.level and _first(node.module) in MOVED)
        or (isinstance(node, ast.Import) and any(_first(a.name) in MOVED for a in node.names))
    ]


def _first(name: str | None) -> str:
    return (name or "").split(".")[0]
