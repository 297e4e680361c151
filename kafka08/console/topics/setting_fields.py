"""The settings of a topic as rows of a page and as fields of a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from werkzeug.datastructures import MultiDict

from kafka08.console.forms import FieldError
from kafka08.console.topics.setting_kinds import (
    choices_of,
    default_text,
    doc_of,
    mistake,
    plain_of,
    taken,
    type_of,
    unit_of,
)
from kafka08.errors import KafkaError
from kafka08.settings.later_topics import LaterTopicSettings
from kafka08.settings.settings import NumberFormatError
from kafka08.settings.topic import TOPIC_KEYS, LogConfig

BUILT_IN = "built-in"
_PREFIX = "own."
_SETTINGS = {
    each.key: each for kind in (LogConfig, LaterTopicSettings) for each in kind.settings().values()
}


class Default(NamedTuple):
    """The value of a setting for topics without one of their own. ``source``: where it is from."""

    value: str | None
    source: str = BUILT_IN


class SettingRow(NamedTuple):
    """``type``: number, list, choice, yes/no, text, or unknown. ``unit``: ms, bytes or "".
    ``value``: the topic's own, None if it has none; it is one of the ``choices`` if there are any.
    ``default``: the value that holds without one, None if it is not known. The ``plain`` texts are
    numbers in units, "" if they say no more than the number."""

    name: str
    type: str
    unit: str
    value: str | None
    plain: str
    default: str | None
    default_plain: str
    default_source: str
    choices: tuple[str, ...]
    doc: str

    @property
    def field(self) -> str:
        """Its name in the form."""
        return _PREFIX + self.name

    @property
    def options(self) -> tuple[str, ...]:
        """The choices, and the value if another tool wrote one that is none of them."""
        is_other = self.value is not None and self.value not in self.choices
        return (*self.choices, self.value) if is_other and self.value else self.choices


def setting_rows(
    own: Mapping[str, str], told: Mapping[str, Default] | None = None
) -> list[SettingRow]:
    """All settings with an effect, and others that the topic has. ``told``: the defaults of a
    broker, if one said them."""
    names = sorted({*LogConfig.keys(), *own})
    return [_row(name, own.get(name), (told or {}).get(name)) for name in names]


def _row(name: str, value: str | None, told: Default | None) -> SettingRow:
    known = _SETTINGS.get(name)
    default = told or Default(None if known is None else default_text(known))
    choices = choices_of(name, known)
    return SettingRow(
        name,
        type_of(known, choices),
        unit_of(name, known),
        value,
        plain_of(name, known, value),
        default.value,
        plain_of(name, known, default.value),
        default.source,
        choices,
        doc_of(known) if known else "Topics have no such setting.",
    )


def own_settings(form: MultiDict[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The topic's own settings after a form was sent: an empty field, or a tick in ``default``,
    removes one. Raises FieldError."""
    after, removed = dict(own), form.getlist("default")
    for row in setting_rows(own):
        before = (row.value or "").strip()
        text = form.get(row.field, before).strip()
        if row.name in removed:
            if text not in ("", before):
                raise FieldError(row.field, "write a value or use the default, not both")
            after.pop(row.name, None)
        elif text != before and not text:
            del after[row.name]
        elif text != before:
            after[row.name] = taken(row.name, _SETTINGS.get(row.name), text, row.field)
    changed = [name for name, value in after.items() if own.get(name) != value]
    if after != own:
        _check(after, changed)
    return after


def _check(after: Mapping[str, str], changed: list[str]) -> None:
    """Each alone, which says where a mistake is, and then all together. Raises FieldError."""
    for name, value in after.items():
        field = _PREFIX + name
        if name not in TOPIC_KEYS:
            raise FieldError(field, "topics have no such setting: use the default")
        try:
            LogConfig.validate({name: value})
        except NumberFormatError:
            raise FieldError(field, f"{value!r} {mistake(_SETTINGS[name])}") from None
        except KafkaError as error:
            raise FieldError(field, str(error)) from None
    try:
        LogConfig.validate(after)
    except KafkaError as error:
        raise FieldError(_PREFIX + next(iter(changed), min(after)), str(error)) from None
