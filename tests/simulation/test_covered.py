"""Executed lines are counted, of the files that are asked for."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.simulation.covered import Lines, lines_of

SOURCE = """
def absolute(number):
    if number < 0:
        return -number
    return number


absolute(3)
"""


def test_the_lines_of_a_file_that_were_executed(tmp_path: Path) -> None:
    path = str(tmp_path / "module.py")
    code = compile(SOURCE, path, "exec")
    lines, before = Lines((str(tmp_path),)), sys.gettrace()
    sys.settrace(lines.call)
    try:
        exec(code, {})
    finally:
        sys.settrace(before)
    executable = set(lines_of(code))
    assert lines.seen.keys() == {path}
    assert executable - lines.seen[path] == {4}
    assert {2, 3, 5, 8} <= executable
