"""Syntax of Python 2: where a source has it, and the source in a form that Python 3 parses.

The form is for the parser alone, with the same lines: ``print x`` becomes ``print, x``. Only
sources that do not parse come here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

# (start, end, text): what is put there.
Edit = tuple[int, int, str]
Edits = Callable[[re.Match[str]], Iterator[Edit]]

_STRING_OR_COMMENT = re.compile(
    r"""(?P<quotes>'''|\"\"\"|'|")(?:\\.|(?!(?P=quotes)).)*?(?P=quotes)|\#[^\n]*""", re.DOTALL
)
_STATEMENT = r"(?:^[ \t]*|[:;][ \t]*)"


class Python2Syntax(NamedTuple):
    line: int
    what: str
    instead: str


class Rule(NamedTuple):
    """``pattern`` fits code whose strings and comments are blank. The group ``at`` is replaced by
    ``text``, if ``edits`` does not say otherwise."""

    what: str
    instead: str
    pattern: re.Pattern[str]
    text: str = ""
    edits: Edits | None = None

    def edit(self, match: re.Match[str]) -> Iterator[Edit]:
        if self.edits is None:
            yield *match.span("at"), self.text
        else:
            yield from self.edits(match)


def _rule(
    what: str, instead: str, pattern: str, text: str = "", edits: Edits | None = None
) -> Rule:
    return Rule(what, instead, re.compile(pattern, re.MULTILINE), text, edits)


def _backticks(match: re.Match[str]) -> Iterator[Edit]:
    yield match.start(), match.start() + 1, "repr("
    yield match.end() - 1, match.end(), ")"


def _all_parentheses(match: re.Match[str]) -> Iterator[Edit]:
    start = match.start("at")
    for place in re.finditer(r"[()]", match["at"]):
        yield start + place.start(), start + place.end(), " "


_TUPLE = r"\([\w\s,()]*\)"
RULES = (
    _rule(
        "print statement",
        "print(...)",
        _STATEMENT + r"print(?P<at>)(?=[ \t]+[\w\"'{`~.\\]|[\"'`{])",
        ",",
    ),
    _rule("exec statement", "exec(...)", _STATEMENT + r"exec(?P<at>)(?=[ \t]+[\w\"'])", ","),
    _rule(
        "except clause with a comma",
        "except X as e",
        _STATEMENT + r"except\b[ \t]*(?:\([^()]*\)|[\w.]+)(?P<at>[ \t]*,)[ \t]*\w+[ \t]*:",
        " as ",
    ),
    _rule(
        "raise statement with a comma",
        "raise X(message)",
        _STATEMENT + r"raise[ \t]+[\w.]+(?:\([^()]*\))?(?P<at>[ \t]*,)",
        ";",
    ),
    _rule(
        "lambda that takes a tuple apart",
        "lambda pair: ... with pair[0], pair[1]",
        rf"\blambda\b(?P<at>[\w\s,*]*{_TUPLE}[\w\s,*()]*):",
        edits=_all_parentheses,
    ),
    _rule(
        "parameter that is a tuple",
        "one parameter, taken apart in the function",
        rf"\bdef[ \t]+\w+[ \t]*\((?P<at>(?:[^()]*,)?\s*{_TUPLE}[\w\s,*()]*)\)[ \t]*:",
        edits=_all_parentheses,
    ),
    _rule("backticks", "repr(...)", r"`[^`\n]*`", edits=_backticks),
    _rule("the operator <>", "!=", r"(?P<at><>)", "!="),
    _rule("long integer", "without L", r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d+)(?P<at>[lL])\b"),
    _rule("octal number", "0o777", r"(?<![\w.])0(?P<at>)0*[1-7][0-7]*(?=[lL]?\b(?!\.))", "o"),
    _rule("the prefix ur", "u or r alone", r"(?<!\w)(?P<at>[uU])[rR](?=[\"'])"),
    _rule(
        "a name that is a keyword now",
        "another name",
        r"(?<![\w.])(?:async|await|nonlocal)(?P<at>)(?=[ \t]*[=,)](?!=))",
        "_",
    ),
    _rule(
        "an attribute that is a keyword now",
        "getattr",
        r"\.[ \t]*(?:async|await|nonlocal|None|True|False)(?P<at>)\b",
        "_",
    ),
)


def translated(source: str) -> tuple[str, list[Python2Syntax]]:
    """The source for the parser, and the syntax of Python 2 in it, by lines."""
    found = []
    blank = _blanked(source)
    for rule in RULES:
        matches = list(rule.pattern.finditer(blank))
        edits = [edit for match in matches for edit in rule.edit(match)]
        for match in matches:
            start = match.start("at") if "at" in rule.pattern.groupindex else match.start()
            found.append(Python2Syntax(blank.count("\n", 0, start) + 1, rule.what, rule.instead))
        for edit in sorted(edits, reverse=True):
            source, blank = _edited(source, edit), _edited(blank, edit)
    return _with_blanks(source, found), sorted(found)


def _edited(text: str, edit: Edit) -> str:
    start, end, new = edit
    return text[:start] + new + text[end:]


def _blanked(source: str) -> str:
    """With strings of underscores, and without comments, each as long as it was."""

    def blank(match: re.Match[str]) -> str:
        quotes = match["quotes"]
        if quotes is None:
            return " " * len(match[0])
        inside = match[0][len(quotes) : -len(quotes)]
        return quotes + re.sub(r"[^\n]", "_", inside) + quotes

    return _STRING_OR_COMMENT.sub(blank, source)


def _with_blanks(source: str, found: list[Python2Syntax]) -> str:
    """With blanks for tabs at the beginnings of lines, if the source mixes them."""
    starts = [re.match(r"[ \t]*", line) for line in source.split("\n")]
    if not {" ", "\t"} <= {char for start in starts if start for char in start[0]}:
        return source
    first = next(n for n, start in enumerate(starts, 1) if start and "\t" in start[0])
    found.append(Python2Syntax(first, "tabs among blanks", "blanks alone"))
    lines = source.split("\n")
    return "\n".join(
        start[0].expandtabs(8) + line[start.end() :] if start else line
        for start, line in zip(starts, lines, strict=True)
    )
