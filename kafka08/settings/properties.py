"""Reads Java's .properties format as java.util.Properties.load does.

Does not interpret the keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from kafka08.errors import ConfigError

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def load(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a properties file (latin-1). Raises OSError, or ConfigError for a bad escape."""
    with open(path, "rb") as file:
        return parse(file.read().decode("latin-1"))


def parse(text: str) -> dict[str, str]:
    """Keys and values in order of first appearance; the last value of a repeated key wins.

    Blanks around the separator are removed, blanks at the end of a value are kept.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end = _end(_KEY, line, 0)
        value_start = _end(_SEPARATOR, line, key_end)
        properties[_unescape(line[:key_end])] = _unescape(line[value_start:])
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and leading blanks; a trailing backslash joins the next line.

    A blank line inside a continuation ends it, and a ``#`` there is plain text.
    """
    parts: list[str] = []
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANKS)
        if not parts and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            parts.append(line[:-1])
            continue
        yield "".join(parts) + line
        parts = []
    if parts:
        yield "".join(parts)


def _end(pattern: re.Pattern[str], line: str, start: int) -> int:
    match = pattern.match(line, start)
    assert match is not None  # both patterns match the empty string
    return match.end()


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    # Two \u escapes may be the halves of one character outside the basic plane.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if escape == "u":
        raise ConfigError("Malformed \\uxxxx encoding.")
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _NAMED.get(escape, escape)


def with_prefix(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The settings whose keys have a prefix, with the prefix removed."""
    return {
        key.removeprefix(prefix): value
        for key, value in properties.items()
        if key.startswith(prefix)
    }
