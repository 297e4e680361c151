"""Which production code the simulation reaches: ``python -m tests.simulation.covered SEED ...``.

Prints the modules of which the runs of these seeds execute less than 60 % of the lines, and the
share of all. Counts by a trace function, which makes a run several times as slow.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
PARTS = ("server", "controller", "cluster", "log", "network")
_ENOUGH = 0.6

_Tracer = Callable[[FrameType, str, Any], Any]


class Lines:
    """``seen``: the numbers of the executed lines, by file, of the files in ``folders``. A function
    of which all lines were executed is not looked at again."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self.seen: dict[str, set[int]] = {}
        self._folders = folders
        self._left: dict[CodeType, set[int]] = {}

    def call(self, frame: FrameType, event: str, argument: object) -> _Tracer | None:
        """For sys.settrace."""
        code = frame.f_code
        left = self._left.get(code)
        if left is None:
            ours = code.co_filename.startswith(self._folders)
            left = self._left[code] = set(own_lines_of(code)) if ours else set()
        if not left:
            return None
        add, discard = self.seen.setdefault(code.co_filename, set()).add, left.discard

        def line(frame: FrameType, event: str, argument: object) -> _Tracer:
            add(frame.f_lineno)
            discard(frame.f_lineno)
            return line

        return line(frame, event, argument)


def own_lines_of(code: CodeType) -> Iterator[int]:
    """The numbers of the lines that can be executed, without those of functions inside."""
    yield from (number for _, _, number in code.co_lines() if number)


def lines_of(code: CodeType) -> Iterator[int]:
    """The numbers of the lines that can be executed."""
    yield from own_lines_of(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from lines_of(constant)


def _run(seeds: list[int], faults: int) -> int:
    """Of the seeds; how many failed. Imports what it runs, so that this is traced too."""
    from tests.simulation import plan as plans
    from tests.simulation.trials import attempt

    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in seeds:
        trial = attempt(plans.draw(seed, faults=faults))
        failed += bool(trial.failure)
        print(f"seed {seed}: {trial.failure or trial.outcome}", file=sys.stderr, flush=True)
    return failed


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.covered", description=__doc__)
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--faults", type=int, default=60)
    options = parser.parse_args(argv)
    lines = Lines(tuple(f"{ROOT}/kafka08/{part}/" for part in PARTS))
    sys.settrace(lines.call)
    try:
        failed = _run(options.seeds, options.faults)
    finally:
        sys.settrace(None)
    for line in _report(lines):
        print(line)
    return 1 if failed else 0


def _report(lines: Lines) -> Iterator[str]:
    reached = executable = 0
    for part in PARTS:
        for path in sorted((ROOT / "kafka08" / part).rglob("*.py")):
            all_lines = set(lines_of(compile(path.read_text("utf-8"), str(path), "exec")))
            seen = lines.seen.get(str(path), set()) & all_lines
            reached, executable = reached + len(seen), executable + len(all_lines)
            if len(seen) < _ENOUGH * len(all_lines):
                yield f"{len(seen) / len(all_lines):4.0%} {path.relative_to(ROOT)}"
    yield f"{reached / executable:4.0%} of {executable:,} lines"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
