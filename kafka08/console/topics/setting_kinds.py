"""The kind of a setting by its declaration: its type, unit, choices and default, and its values
as people write them. ``known`` None: a setting without a declaration."""

from __future__ import annotations

from kafka08.console.forms import FieldError, whole
from kafka08.console.topics import units
from kafka08.settings.settings import DOUBLE, DOUBLE_MAX, LONG_MAX, REQUIRED, Setting

_POLICIES = dict.fromkeys(
    ("cleanup.policy", "log.cleanup.policy"), ("delete", "compact", "compact,delete")
)
_WHOLE = ("short", "int", "long")
_TYPES = {
    "boolean": "yes/no",
    "double": "number",
    "list": "list",
    "map": "list",
    "password": "secret",
    **dict.fromkeys(_WHOLE, "number"),
}
_MISTAKES = {
    "boolean": "is not true or false",
    "double": "is not a number",
    "release": "is not a release like 2.8",
}


def type_of(known: Setting | None, choices: tuple[str, ...]) -> str:
    """number, list, choice, yes/no, secret, text, or unknown."""
    if known is None:
        return "unknown"
    return _TYPES.get(known.kind.name) or ("choice" if choices else "text")


def choices_of(name: str, known: Setting | None) -> tuple[str, ...]:
    """The values that it can have, if there are only some."""
    if known is None:
        return ()
    if known.kind.name == "boolean":
        return ("true", "false")
    return known.kind.choices or _POLICIES.get(name, ())


def unit_of(name: str, known: Setting | None) -> str:
    """Of the number that it is, "" if it is none or has no unit."""
    is_number = (known is not None and known.kind is DOUBLE) or _is_whole(known)
    return units.quantity(name).unit if is_number else ""


def plain_of(name: str, known: Setting | None, value: str | None) -> str:
    """The number in units, "" if that says no more than the number."""
    if known is not None and known.kind is DOUBLE:
        return _plain_double(name, known, value or "")
    if not _is_whole(known):
        return ""
    try:
        shown = units.plain(name, int(value or ""))
    except ValueError:  # another tool may have written anything
        return ""
    return "" if shown == value else shown


def _plain_double(name: str, known: Setting, text: str) -> str:
    if text == str(DOUBLE_MAX):
        return "no limit"
    try:
        number = float(text)
    except ValueError:
        return ""
    # A share of one has no unit.
    return units.plain(name, int(number)) if unit_of(name, known) and number.is_integer() else ""


def default_text(known: Setting) -> str | None:
    """The built-in default as a tool writes it; None if there is none or another setting's value
    is taken."""
    value = known.default
    if value is None or value is REQUIRED:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def doc_of(known: Setting) -> str:
    return known.doc.replace("`", "")


def mistake(known: Setting) -> str:
    """The text about a value that is not of its type."""
    return _MISTAKES.get(known.kind.name, "is not a number")


def taken(name: str, known: Setting | None, text: str, field: str) -> str:
    """The value to store for the text of a field. Raises FieldError."""
    if known is not None and _is_whole(known):
        try:
            number = units.parsed(name, text)
        except ValueError as error:
            raise FieldError(field, str(error)) from None
        return str(whole(str(number), field, known.low or 0, known.high or LONG_MAX))
    choices = choices_of(name, known)
    if choices and text not in choices:
        raise FieldError(field, f"{text!r} is not one of {', '.join(choices)}")
    return text


def _is_whole(known: Setting | None) -> bool:
    return known is not None and known.kind.name in _WHOLE and not known.kind.choices
