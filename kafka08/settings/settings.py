"""Declares settings once, and parses, checks, resolves and describes them.

A settings class is a subclass of ``Settings`` whose attributes are made by ``setting``, or by
``dotted`` if the key is the attribute's name with dots::

    class ConsumerConfig(Settings):
        group_id: str = setting("group.id", doc="...")
        fetch_wait_max_ms: int = dotted(100, doc="...")

    ConsumerConfig.from_properties({"group.id": "g", "fetch.wait.max.ms": "50"})
    ConsumerConfig(group_id="g", fetch_wait_max_ms=50)

Mirrors kafka.utils.VerifiableProperties. Does not know particular settings, files or log levels.
Settings are not dataclasses, because those compile generated code whenever a broker or a tool
starts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeVar

from kafka08.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: bool) -> Callable[[type], type]:
        """Python 3.10 does not have it, and only type checkers use it."""
        return lambda decorated: decorated


INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SHORT_MAX = 2**15 - 1
DOUBLE_MAX = 1.7976931348623157e308

COMPRESSION_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3}

HIDDEN = "[hidden]"
# The ends of keys of passwords and keys; those of single listeners and misspelt ones have them too.
_SECRET = re.compile(r".*(password|jaas\.config|secret|keystore\.key)", re.I)

_log = logging.getLogger("kafka.utils.VerifiableProperties")
_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}")  # Python reads no more than some thousand digits
_DOUBLE = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_RELEASE = re.compile(r"(0\.(8\.[0-2]|9\.0|10\.[0-2]|11\.0)|[1-3]\.[0-9])(\.[0-9])*(-IV[0-9])?")
_REPLICA = re.compile(r"[0-9]+:[0-9]+")
_OF_OTHERS = re.compile(r"external|listener\.name\.|process\.[0-9]+\.")
_COMMA = re.compile(r"\s*,\s*")
_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(rf"\s*([0-9]{{1,18}})\s*({'|'.join(_UNITS_MS)})\s*")


class NumberFormatError(ConfigError):
    """A value that is not of its type; the text is the JVM's."""

    java_class: ClassVar[str] = "java.lang.NumberFormatException"

    def __init__(self, text: str) -> None:
        super().__init__(f'For input string: "{text}"')


class UnknownConfigError(ConfigError):
    """A topic setting with an unknown name."""

    java_class: ClassVar[str] = "java.lang.IllegalArgumentException"

    def __init__(self, name: str) -> None:
        super().__init__(f'requirement failed: Unknown configuration "{name}".')


class Kind(NamedTuple):
    """The type of a setting: its name in the docs, its parser, and its widest range. Values of a
    ``secret`` kind are shown nowhere. ``choices`` are the values that are allowed, if there are
    only some."""

    name: str
    parse: Callable[[str], Any]
    low: int | None = None
    high: int | None = None
    secret: bool = False
    choices: tuple[str, ...] = ()


def _parse_integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
            raise NumberFormatError(text)
        return int(text)

    return parse


def _parse_double(text: str) -> float:
    match = _DOUBLE.fullmatch(text.strip())
    if match is None:
        raise NumberFormatError(text)
    return float(match[1])


def _parse_boolean(plain: Callable[[str], str]) -> Callable[[str], bool]:
    def parse(text: str) -> bool:
        if plain(text) not in ("true", "false"):
            raise NumberFormatError(text)
        return plain(text) == "true"

    return parse


def parse_list(text: str) -> tuple[str, ...]:
    """Comma-separated words without surrounding blanks and empty words (Utils.parseCsvList)."""
    return tuple(word for word in _COMMA.split(text.strip()) if word)


def parse_map(text: str) -> dict[str, int]:
    """``name:number`` pairs, split at the last colon, as in Utils.parseCsvMap."""
    pairs = {}
    for word in parse_list(text):
        name, colon, number = word.rpartition(":")
        if not colon:
            raise NumberFormatError(word)
        pairs[name.strip()] = INT.parse(number.strip())
    return pairs


def parse_throttled(text: str) -> tuple[str, ...]:
    """``partition:broker`` pairs, or ``*`` alone (ThrottledReplicaListValidator). Raises
    ConfigError."""
    words = parse_list(text)
    if words != ("*",) and not all(map(_REPLICA.fullmatch, words)):
        raise ConfigError(f"throttled.replicas are * or a list of partition:broker, not {text}.")
    return words


def parse_duration(text: str) -> int:
    """Milliseconds, from a number with ms, s, m, min, h or d; without a unit, ms."""
    match = _DURATION.fullmatch(text.lower())
    if match is None:
        raise NumberFormatError(text)
    return int(match[1]) * _UNITS_MS[match[2]]


def parse_codec(text: str) -> int:
    """A codec's number from its name in any case, or number (kafka.message.CompressionCodec)."""
    if text.lower() in COMPRESSION_CODECS:
        return COMPRESSION_CODECS[text.lower()]
    if text in ("0", "1", "2", "3"):
        return int(text)
    raise NumberFormatError(text)


def message_format(version: str) -> int:
    """The message format of a release, as message.format.version names it: 0.10.2, 1.0, 2.8-IV1.

    Raises NumberFormatError.
    """
    if not _RELEASE.fullmatch(version):
        raise NumberFormatError(version)
    if not version.startswith("0."):
        return 2
    return {"0.10": 1, "0.11": 2}.get(version[:4], 0)


def _refuse(text: str) -> NoReturn:
    raise NumberFormatError(text)


def _parse_release(text: str) -> str:
    message_format(text)
    return text


def _integer_kind(name: str, high: int) -> Kind:
    return Kind(name, _parse_integer(-high - 1, high), -high - 1, high)


SHORT = _integer_kind("short", SHORT_MAX)
INT = _integer_kind("int", INT_MAX)
LONG = _integer_kind("long", LONG_MAX)
DOUBLE = Kind("double", _parse_double)
BOOLEAN = Kind("boolean", _parse_boolean(str))
BOOLEAN_IN_ANY_CASE = Kind("boolean", _parse_boolean(str.lower))
DURATION = Kind("duration", parse_duration)
STRING = Kind("string", str)
LIST = Kind("list", parse_list)
MAP = Kind("map", parse_map)
THROTTLED = Kind("list", parse_throttled)
CODEC = Kind("codec", parse_codec)
RELEASE = Kind("release", _parse_release)
PASSWORD = Kind("password", str, secret=True)


def one_of(*choices: str) -> Kind:
    """A text that is one of these."""
    return STRING._replace(choices=choices)


# Texts by key by name; not read from a key of its own.
OWN = Kind("map", _refuse, secret=True)

_KIND_OF_DEFAULT: dict[type, Kind] = {bool: BOOLEAN, int: INT, float: DOUBLE, str: STRING}
_WHAT = {
    BOOLEAN.name: "true or false",
    CODEC.name: "none, gzip, snappy, lz4 or a number from 0 to 3",
    DOUBLE.name: "a number",
    DURATION.name: "a duration such as 15m",
    RELEASE.name: "a release from 0.8.0 to 3.9",
    MAP.name: "a list of host:int",
}


class Setting(NamedTuple):
    """The declaration of a setting. ``default`` counts unless it is required or derived."""

    key: str
    kind: Kind
    default: object
    low: int | None
    high: int | None
    doc: str
    required: bool
    derive: Callable[[Any], object] | None
    default_text: str | None

    @property
    def range_text(self) -> str:
        return f"({self.low},{self.high})"

    def parse(self, text: str) -> Any:
        """The value of a text. Raises ConfigError naming key, value and what is allowed."""
        try:
            value = self.kind.parse(text)
        except NumberFormatError:
            shown = HIDDEN if self.kind.secret else text
            what = _WHAT.get(self.kind.name) or f"an integer in the range {self.range_text}"
            raise ConfigError(f"{self.key} has value {shown} which is not {what}.") from None
        self.check(value)
        return value

    def check(self, value: Any) -> None:
        """Raises ConfigError for a value outside the range or the choices."""
        choices = self.kind.choices
        if choices and value not in choices:
            raise ConfigError(
                f"{self.key} has value {value} which is not one of {', '.join(choices)}."
            )
        if self.low is None or self.high is None or value is None:
            return
        if not self.low <= value <= self.high:
            raise ConfigError(
                f"{self.key} has value {value} which is not in the range {self.range_text}."
            )


REQUIRED = object()


def setting(
    key: str,
    default: object = REQUIRED,
    kind: Kind | None = None,
    low: int | None = None,
    high: int | None = None,
    *,
    doc: str,
    derive: Callable[[Any], object] | None = None,
    default_text: str | None = None,
) -> Any:
    """The attribute of a settings class for one key.

    ``kind`` follows from the default when not given (a required one is a string). ``low`` and
    ``high`` are inclusive. If the key is absent, ``derive`` computes the value from the settings
    declared before it; ``default_text`` describes that in the docs.
    """
    kind = kind or _KIND_OF_DEFAULT.get(type(default), STRING)
    return Setting(
        key=key,
        kind=kind,
        default=None if derive else default,
        low=kind.low if low is None else low,
        high=kind.high if high is None else high,
        doc=doc,
        required=default is REQUIRED and derive is None,
        derive=derive,
        default_text=default_text,
    )


dotted = partial(setting, "")
"""The same for the key that is the attribute's name with dots: ``num_partitions`` makes
``num.partitions``."""


def value_of(key: str) -> Callable[[object], object]:
    """A ``derive`` that uses another setting's value."""
    attribute = key.replace(".", "_")
    return lambda settings: getattr(settings, attribute)


S = TypeVar("S", bound="Settings")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Settings:
    """Base of every settings class. Values are resolved and checked on construction.

    The arguments are values by attribute; TypeError for one that is unknown or missing, ConfigError
    for one out of range. A derived value may exceed the range of its own key: hours in ms may not
    fit an int. Values do not change, and compare as a whole.
    """

    _declared: ClassVar[dict[str, Setting]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Setting)}
        for name, described in own.items():
            own[name] = described._replace(key=described.key or name.replace("_", "."))
            delattr(cls, name)
        inherited: dict[str, Setting] = {}
        for base in cls.__bases__:
            inherited.update(getattr(base, "_declared", {}))
        cls._declared = {**inherited, **own}

    def __init__(self, **values: object) -> None:
        unknown = values.keys() - self._declared.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no settings {sorted(unknown)}")
        kept = vars(self)
        for name, described in self._declared.items():
            value = values.get(name, described.default)
            if value is REQUIRED:
                raise TypeError(f"{type(self).__name__} needs {name}")
            kept[name] = dict(value) if isinstance(value, dict) else value
        for name, described in self._declared.items():
            if described.derive is None:
                described.check(kept[name])
            elif kept[name] is None:
                kept[name] = described.derive(self)
        self.check()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def values(self) -> dict[str, Any]:
        """The values by attribute, in declared order."""
        return {name: getattr(self, name) for name in self._declared}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.values() == self.values()

    def __hash__(self) -> int:
        return hash(tuple(self.values().values()))

    def __repr__(self) -> str:
        values = [
            f"{name}={HIDDEN if value and self._declared[name].kind.secret else repr(value)}"
            for name, value in self.values().items()
        ]
        return f"{type(self).__name__}({', '.join(values)})"

    def replace(self: S, **changes: object) -> S:
        """A copy with other values, which are checked."""
        return type(self)(**{**self.values(), **changes})

    def check(self) -> None:
        """For subclasses: checks of more than one setting. Raises ConfigError."""

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """Every setting by attribute, in declared order."""
        return dict(cls._declared)

    @classmethod
    def keys(cls) -> frozenset[str]:
        return frozenset(described.key for described in cls.settings().values())

    @classmethod
    def from_properties(cls: type[S], properties: Mapping[str, str]) -> S:
        """Parse texts; unknown keys are ignored. Raises ConfigError."""
        values = {}
        for attribute, described in cls.settings().items():
            if described.key in properties:
                values[attribute] = described.parse(properties[described.key])
            elif described.required:
                raise ConfigError(f"Missing required property '{described.key}'")
        return cls(**values)


def is_secret(key: str) -> bool:
    """Whether the key's name says that its value must be shown nowhere."""
    return _SECRET.fullmatch(key) is not None


def log_overrides(properties: Mapping[str, str], known: Collection[str]) -> None:
    """Log each key that was set, and warn of unknown keys.

    Keys starting with ``external`` belong to another program (VerifiableProperties.verify), those
    with ``listener.name.`` are settings of one listener, and those with ``process.I.`` of one
    process of a unit. Passwords are not shown.
    """
    _log.info("Verifying properties")
    for key in sorted(properties):
        if key in known or _OF_OTHERS.match(key):
            shown = HIDDEN if is_secret(key) else properties[key]
            _log.info("Property %s is overridden to %s", key, shown)
        else:
            _log.warning("Property %s is not valid", key)
