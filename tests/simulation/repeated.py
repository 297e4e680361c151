"""Whether a seed gives the same run again: ``python -m tests.simulation.repeated SEED ...``.

Runs the seeds in two processes that hash strings in different ways, and with each other Python that
is named, and compares what they print: the traces' hashes among it. The exit status is 1 if a run
differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def outcomes(python: str, hash_seed: int, seeds: list[int], faults: int) -> list[str]:
    """The lines that ``python -m tests.simulation.run`` prints. Raises CalledProcessError."""
    command = [python, "-m", "tests.simulation.run", "--faults", str(faults), *map(str, seeds)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "KAFKA08_INTERPRETED": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()


def differences(pythons: list[str], seeds: list[int], faults: int) -> list[str]:
    """The lines of runs that differ from those of the first process."""
    first = outcomes(pythons[0], 0, seeds, faults)
    others = [outcomes(python, number + 1, seeds, faults) for number, python in enumerate(pythons)]
    return [
        f"{line}\n  but {expected}"
        for other in others
        for line, expected in zip(other, first, strict=True)
        if line != expected
    ]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.repeated", description=__doc__
    )
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--python", action="append", default=[], help="another, with all packages")
    options = parser.parse_args(argv)
    found = differences([sys.executable, *options.python], options.seeds, options.faults)
    print("\n".join(found) or f"{len(options.seeds)} seeds: the same runs")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
