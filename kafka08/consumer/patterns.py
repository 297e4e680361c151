"""Matches whole names against a regex in bounded time.

Every member evaluates the regexes of all others, and ``re`` may take 2^n steps for one of them.
So ``re`` is used only if the regex has few enough ways to match to try them all. Any other regex
is matched with sets of positions, stored as the bits of an integer: all positions that the regex
can reach from a set of starts. The result is the same, since only a match of the whole name
counts. The steps are counted and limited. The count depends only on the regex and the names, so
all members get the same result.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from kafka08.errors import ConfigError

_SRE = (
    ("re._parser", "re._compiler") if sys.version_info >= (3, 11) else ("sre_parse", "sre_compile")
)
_parser, _compiler = (importlib.import_module(name) for name in _SRE)

_MAX_WAYS = 50_000_000  # about a second, if every way of every name had to be tried
_MAX_STEPS = 5_000_000  # a few seconds
_CHARACTERS = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_LOOKS = ("ASSERT", "ASSERT_NOT")
_KNOWN = (*_CHARACTERS, *_REPEATS, *_LOOKS, "BRANCH", "SUBPATTERN", "AT", "FAILURE")
Parsed: TypeAlias = Any
"""Of the parser of ``re``: a regex as pairs of an operation and its argument, or such an argument,
whose form is the operation's."""


class Pattern:
    """Raises ConfigError for a regex that does not compile or refers back to a group."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        try:
            self._compiled = re.compile(regex)
            self._tree: Parsed = _parser.parse(regex)
            _refuse_unknown(self._tree)
        except (re.error, RecursionError, OverflowError) as error:
            raise ConfigError(f"{regex} is an invalid regex.") from error

    def covered(self, names: Iterable[str]) -> set[str]:
        """The matching ones of ``names``. Raises ConfigError if that takes too many steps."""
        names = list(names)
        longest = max(map(len, names), default=0)
        try:
            if _ways(self._tree, longest + 1) * len(names) <= _MAX_WAYS:
                return {name for name in names if self._compiled.fullmatch(name)}
            walk = _Walk(self._tree)
            return {name for name in names if walk.covers(name)}
        except (_TooManySteps, RecursionError):
            raise ConfigError(
                f"The regex {self._regex[:200]} takes too many steps for {len(names)} topics."
            ) from None


class _TooManySteps(Exception):
    pass


def _refuse_unknown(items: Parsed) -> None:
    for op, argument in items:
        if op.name not in _KNOWN:
            raise re.error(f"{op.name} is not supported")
        for body in _bodies(op.name, argument):
            _refuse_unknown(body)


def _bodies(name: str, argument: Parsed) -> Sequence[Parsed]:
    if name == "BRANCH":
        return list(argument[1])
    if name in (*_REPEATS, *_LOOKS, "SUBPATTERN"):
        return [argument[-1]]
    return []


def _ways(items: Parsed, length: int) -> int:
    """The number of ways ``re`` may have to try on a name of that length, up to the limit."""
    ways = 1
    for op, argument in items:
        inner = [_ways(body, length) for body in _bodies(op.name, argument)]
        if op.name == "BRANCH":
            ways *= sum(inner)
        elif op.name in _REPEATS:
            least, most, body = argument
            single = len(body) == 1 and body[0][0].name in _CHARACTERS
            if single:
                ways *= min(int(most) - int(least), length) + 1
            else:
                ways *= 1 + inner[0] if int(most) <= 1 else _MAX_WAYS + 1
        elif inner:
            ways *= inner[0]
        ways = min(ways, _MAX_WAYS + 1)
    return ways


class _Walk:
    """One regex and many names. Bit n of a set stands for the position before character n."""

    def __init__(self, tree: Parsed) -> None:
        self._tree = tree
        self._steps = 0
        self._name = ""
        self._single: dict[tuple[int, int], re.Pattern[str]] = {}
        self._places: dict[tuple[int, int], int] = {}

    def covers(self, name: str) -> bool:
        self._name = name
        self._places.clear()
        return bool(self._read(self._tree, self._tree.state.flags, 1) >> len(name) & 1)

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MAX_STEPS:
            raise _TooManySteps

    def _read(self, items: Parsed, flags: int, starts: int) -> int:
        """The positions where a match of ``items`` from ``starts`` may end."""
        for item in items:
            if not starts:
                break
            self._spend(1)
            starts = self._read_one(item, flags, starts)
        return starts

    def _read_one(self, item: Parsed, flags: int, starts: int) -> int:
        name, argument = item[0].name, item[1]
        if name in _CHARACTERS:
            return (starts & self._found(item, flags)) << 1
        if name == "AT":
            return starts & self._found(item, flags)
        if name in _REPEATS:
            return self._repeat(argument, flags, starts)
        if name == "SUBPATTERN":
            _, add, remove, body = argument
            return self._read(body, (flags | add) & ~remove, starts)
        if name == "BRANCH":
            ends = 0
            for body in argument[1]:
                ends |= self._read(body, flags, starts)
            return ends
        if name in _LOOKS:
            seen = self._look(argument, flags, starts)
            return seen if name == "ASSERT" else starts & ~seen
        return 0  # FAILURE

    def _repeat(self, argument: Parsed, flags: int, starts: int) -> int:
        least, most, body = argument
        for _ in range(int(least)):
            ends = self._read(body, flags, starts)
            if ends == starts:
                break
            starts = ends
        fresh = starts
        count = int(least)
        while fresh and count < int(most):
            fresh = self._read(body, flags, fresh) & ~starts
            starts |= fresh
            count += 1
        return starts

    def _look(self, argument: Parsed, flags: int, starts: int) -> int:
        """Those of ``starts`` where the body of a lookahead or lookbehind matches."""
        direction, body = argument
        back = body.getwidth()[0] if direction < 0 else 0
        seen = 0
        for place in range(back, len(self._name) + 1):
            if starts >> place & 1:
                ends = self._read(body, flags, 1 << place - back)
                if ends >> place & 1 if direction < 0 else ends:
                    seen |= 1 << place
        return seen

    def _found(self, item: Parsed, flags: int) -> int:
        """The positions that match one character, or one boundary, of the regex."""
        key = id(item), flags
        places = self._places.get(key)
        if places is None:
            single = self._single.get(key)
            if single is None:
                part = _parser.SubPattern(self._tree.state, [item])
                single = self._single[key] = _compiler.compile(part, flags)
            self._spend(len(self._name))
            places = 0
            for place in range(len(self._name) + 1):
                if single.match(self._name, place):
                    places |= 1 << place
            self._places[key] = places
        return places
