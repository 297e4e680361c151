"""Charts and tables as plain text, for the results of the examples.

Only ASCII, so that they look the same in a terminal, in a mail and in a log file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def bars(title: str, values: Iterable[tuple[str, float]], width: int = 50, unit: str = "") -> str:
    """One bar for each (label, value), the largest value ``width`` characters long.

    A value below zero has no bar, and a small one above zero has one character.
    """
    rows = [(label, number(value), value) for label, value in values]
    largest = max((value for *_, value in rows), default=0)
    wide = max((len(label) for label, *_ in rows), default=0)
    digits = max((len(text) for _, text, _ in rows), default=0)
    lines = [title]
    for label, text, value in rows:
        bar = "#" * max(round(width * value / largest), 1) if value > 0 else ""
        lines.append(f"  {label:<{wide}}  {text:>{digits}} {unit:<{len(unit)}} {bar}".rstrip())
    return "\n".join(lines)


def columns(title: str, series: Sequence[tuple[str, float]], height: int = 8) -> str:
    """One column for each (label, value) from left to right, for values over time.

    The scale begins at zero. The labels of the first and the last column are below.
    """
    largest = max((value for _, value in series), default=0)
    scale = number(largest)
    lines = [title]
    for level in range(height, 0, -1):
        # A column reaches a level from its middle on; a value above zero always reaches the first.
        least = largest * (level - 0.5) / height if level > 1 else 0
        mark = scale if level == height else ""
        cells = "".join("##" if value > 0 and value >= least else "  " for _, value in series)
        lines.append(f"  {mark:>{len(scale)}} |{cells}".rstrip())
    lines.append(f"  {'0':>{len(scale)}} +{'--' * len(series)}")
    if series:
        first, last = series[0][0], series[-1][0]
        gap = " " * max(2 * len(series) - len(first) - len(last), 2)
        lines.append(f"  {'':>{len(scale)}}  {first}{gap}{last}")
    return "\n".join(lines)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as their widest cell; numbers are on the right. A cell of None is empty."""
    given = list(rows)
    cells = [list(header), *[[number(cell) for cell in row] for row in given]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    right = [
        bool(given) and all(isinstance(row[column], (int, float, type(None))) for row in given)
        for column in range(len(header))
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def number(value: object) -> str:
    """A float with at most two digits after the point, nothing for None, else as it is printed."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
