"""joptsimple's two-column usage table. Knows nothing of options."""

from __future__ import annotations

import re
from itertools import zip_longest

WIDTH = 39

# java.text.BreakIterator keeps these together on a line: opening brackets, a word, closing
# punctuation and the blanks after it. Numbers keep their points, commas and minus.
_WORD = (
    r"""[(\[{]*(?:-(?=\d))?"""
    r"""(?:[^\s(\[{!"%),\-.:;?\]}]|(?<=\d)[.,](?=\d))*"""
    r"""[!"%),\-.:;?\]}]*\s*"""
)


def usage_table(rows: list[tuple[str, str]]) -> str:
    """Headings and descriptions, wrapped and padded to 39 characters each."""
    lines = [("Option", "Description"), ("------", "-----------")]
    for heading, description in rows:
        lines += zip_longest(wrap(heading), wrap(description), fillvalue="")
    return "".join(f"{left:<{WIDTH}} {right:<{WIDTH}}\n" for left, right in lines)


def wrap(text: str) -> list[str]:
    """The lines of a cell; continuation lines are indented by two blanks."""
    lines = []
    for paragraph in text.strip().split("\n"):
        line = ""
        for word in re.findall(_WORD, paragraph):
            if len(line) + len(word) > WIDTH:
                lines.append(line)
                line = "  " + word
            else:
                line += word
        if line:
            lines.append(line)
    return lines
