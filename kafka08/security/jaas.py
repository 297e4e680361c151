"""The text of ``sasl.jaas.config``, one login module with its options, and files of sections.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="alice" password="secret" user_bob="other";

A file has sections of modules, each with a name: ``Client { MODULE required a="b"; };``.

Reads what org.apache.kafka.common.security.JaasConfig reads, and values without quotes that begin
with a digit too. Error texts name keys and never values, which may be passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kafka08.errors import ConfigError

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"

_FLAGS = ("required", "requisite", "sufficient", "optional")
_FORM = r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |"(?P<double>(?:\\.|[^"\\\n])*)"
    |'(?P<single>(?:\\.|[^'\\\n])*)'
    |(?P<word>[^\s"'SIGNS]+)
    |(?P<sign>[SIGNS])"""
_TOKEN, _TOKEN_OF_FILE = (
    re.compile(_FORM.replace("SIGNS", signs), re.DOTALL | re.VERBOSE) for signs in ("=;", "=;{}")
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a"}
_USER = "user_"


class LoginModule(NamedTuple):
    """The module's class, its control flag and its options."""

    name: str
    flag: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {self.flag}, {', '.join(self.options)})"

    @property
    def username(self) -> str | None:
        """The name with which the owner of the text logs in."""
        return self.options.get("username")

    @property
    def password(self) -> str | None:
        return self.options.get("password")

    @property
    def users(self) -> dict[str, str]:
        """The passwords of the users that a PLAIN server accepts, by name."""
        return {
            key.removeprefix(_USER): value
            for key, value in self.options.items()
            if key.startswith(_USER)
        }


def parse(text: str, key: str = "sasl.jaas.config") -> LoginModule:
    """The one login module of a text. ``key`` is the setting that errors name.

    Raises ConfigError.
    """
    tokens = _Tokens(text, key, _TOKEN)
    found = _module(tokens, key)
    if not tokens.are_over():
        raise ConfigError(f"{key}: there must be one login module, and nothing after its ;")
    return found


def section(text: str, name: str, path: str) -> LoginModule | None:
    """The one login module in the section ``name`` of a file; None if there is no such section.

    Raises ConfigError, which names ``path``.
    """
    tokens = _Tokens(text, path, _TOKEN_OF_FILE)
    found = None
    while not tokens.are_over():
        label, modules = tokens.value("the name of a section"), []
        tokens.expect("{", f"after {label}")
        while not tokens.skip("}"):
            modules.append(_module(tokens, path))
        tokens.expect(";", f"after the section {label}")
        if label == name:
            if len(modules) != 1:
                raise ConfigError(f"{path}: the section {name} must have one login module")
            found = modules[0]
    return found


def _module(tokens: _Tokens, key: str) -> LoginModule:
    name = tokens.value("a login module")
    flag = tokens.value(f"a control flag after {name}").lower()
    if flag not in _FLAGS:
        raise ConfigError(f"{key}: the control flag of {name} is not one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    while not tokens.skip(";"):
        option = tokens.value(f"an option or ; after the options of {name}")
        if not tokens.skip("="):
            raise ConfigError(f"{key}: an option of {name} has no =")
        options[option] = tokens.value(f"a value for {option}")
    return LoginModule(name, flag, options)


class _Tokens:
    """The words, strings and signs of a text, first to last."""

    def __init__(self, text: str, key: str, form: re.Pattern[str]) -> None:
        self._key = key
        self._tokens = list(_tokens(text, key, form))
        self._next = 0

    def are_over(self) -> bool:
        return self._next == len(self._tokens)

    def skip(self, sign: str) -> bool:
        """Pass over ``sign`` if it comes next; whether it did."""
        found = not self.are_over() and self._tokens[self._next] == (sign, True)
        self._next += found
        return found

    def expect(self, sign: str, where: str) -> None:
        if not self.skip(sign):
            raise ConfigError(f"{self._key}: {sign} is missing {where}")

    def value(self, expected: str) -> str:
        """The next word or string."""
        if self.are_over() or self._tokens[self._next][1]:
            raise ConfigError(f"{self._key}: {expected} is missing")
        self._next += 1
        return self._tokens[self._next - 1][0]


def _tokens(text: str, key: str, form: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Each token and whether it is a sign."""
    position = 0
    while position < len(text):
        found = form.match(text, position)
        if found is None:
            raise ConfigError(f"{key}: a quoted string is not closed")
        position = found.end()
        kind = found.lastgroup or ""
        if kind in ("double", "single"):
            yield _ESCAPE.sub(_character, found[kind]), False
        elif kind != "blank":
            yield found[kind], kind == "sign"


def _character(found: re.Match[str]) -> str:
    escape = found[1]
    is_octal = escape.isdigit() and int(escape[0]) < 8
    return chr(int(escape, 8)) if is_octal else _NAMED.get(escape, escape)
