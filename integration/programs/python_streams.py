"""Stream processing of Python as programs, in an environment of their own.

``APPLICATION ADDRESS NAME STATE_DIRECTORY`` reads topic ``NAME-orders`` (values ``CUSTOMER
NUMBER``), groups by customer, and writes to ``NAME-numbers`` for each customer the set of its
numbers, which it keeps as state. A message that it reads twice changes no result.
"""

from __future__ import annotations

import functools
from pathlib import Path

from integration import builds

SOURCES = Path(__file__).parent / "python"
PACKAGES = ("quixstreams==3.28.1", "faust-streaming==0.15.3")
# Each logs this once it has restored its state.
READY = {"quix": "Recovery process complete", "faust": "Worker ready"}
NAMES = tuple(READY)


@functools.cache
def _environment() -> Path:
    def make(directory: Path) -> None:
        builds.python_environment(directory, *PACKAGES)

    return builds.made("program-python-streams", [], make, " ".join(PACKAGES))


def command(name: str, *args: str) -> list[str]:
    """``name``: one of ``NAMES``. MissingError when it cannot run here."""
    interpreter = str(_environment() / "bin" / "python")
    return [interpreter, str(SOURCES / f"{name}_application.py"), *args]
