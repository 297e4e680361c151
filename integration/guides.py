"""Guides as scripts: their files and commands in order, and the output that they promise.

A ```sh block is a step of the script. A block whose first line has a title, as
```python title="produce.py", is a file of that name. A ```text block after an ```sh block is the
output of that step, in which `...` stands for any text of a line, and a line of it for any lines.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_END = "END_OF_THE_FILE"
_ANY = "..."


class Step(NamedTuple):
    """``file``: the name of the file with this text. ``output`` is None if none is promised."""

    text: str
    line: int
    file: str | None = None
    output: str | None = None


def steps(guide: str) -> list[Step]:
    """Raises ValueError if an output does not follow its commands directly."""
    found: list[Step] = []
    end = 0
    for block in _BLOCK.finditer(guide):
        language, file, text = block.groups()
        line = guide.count("\n", 0, block.start()) + 1
        if language == "text":
            last = found[-1] if found else None
            if (
                last is None
                or last.file
                or last.output is not None
                or guide[end : block.start()].strip()
            ):
                raise ValueError(f"line {line}: an output without commands before it")
            found[-1] = last._replace(output=text)
        elif file or language == "sh":
            found.append(Step(text, line, file))
        end = block.end()
    return found


def script(parts: Sequence[Step], outputs: Path) -> str:
    """A bash script. The output of step n is in ``outputs``/n, where an output is promised."""
    lines = ["set -euo pipefail", "exec 9>&2", "BASH_XTRACEFD=9", "set -x"]
    for number, step in enumerate(parts):
        if step.file:
            lines += [f"cat > {shlex.quote(step.file)} <<'{_END}'", step.text + _END]
        elif step.output is None:
            lines.append(step.text)
        else:
            kept = shlex.quote(str(outputs / str(number)))
            lines += ["{", f"{step.text}}} > {kept} 2>&1"]
    return "\n".join(lines) + "\n"


def matches(promised: str, printed: str, changing: str = "") -> bool:
    """Whether the texts agree but for the width of blanks, empty lines, and ``...``.

    ``changing``: a pattern for parts that differ from run to run, such as ``\\d+ ms``. Both texts
    must have them in the same places, with any content that fits.
    """
    if changing:
        promised, printed = (re.sub(changing, "~", each) for each in (promised, printed))
    pattern = ""
    for line in _lines(promised):
        if line == _ANY:
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += re.escape(line).replace(re.escape(_ANY), r"[^\n]*") + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in _lines(printed))) is not None


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
