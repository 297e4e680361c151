"""Writes docs/settings.md from the settings' declarations: ``python -m kafka08.settings_docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from kafka08.config import BROKER_KEYS, BrokerConfig, LogConfig
from kafka08.settings import COMPRESSION_CODECS, Setting, Settings

_INTRO = """\
# Settings

Made by `make docs` from `kafka08/config.py`; do not edit.

Keys, types, defaults and ranges are those of Kafka 0.8.2.2 unless the text says otherwise. Files
are read as Java reads `.properties`. A key that the broker does not know is reported with a
warning and ignored.
"""

_TOPIC_INTRO = """\
Given to `kafka-topics.sh` as `--config key=value`; without one, a topic follows the broker's key in
the last column.
"""


def render() -> str:
    """The whole page."""
    broker = _table(BrokerConfig, ["Key", "Type", "Default", "Range", "Meaning"])
    topic = _table(LogConfig, ["Key", "Type", "Default", "Range", "Meaning", "Broker's key"])
    return f"{_INTRO}\n## Broker\n\n{broker}\n## Topic\n\n{_TOPIC_INTRO}\n{topic}"


def _table(cls: type[Settings], headers: list[str]) -> str:
    defaults = _defaults(cls)
    lines = [_line(headers), _line(["---"] * len(headers))]
    for attribute, described in cls.settings().items():
        cells = [
            f"`{described.key}`",
            described.kind.name,
            _default_text(described, defaults.get(attribute)),
            _range_text(described),
            described.doc.replace("|", "\\|"),
        ]
        if "Broker's key" in headers:
            cells.append(f"`{BROKER_KEYS[described.key]}`")
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _defaults(cls: type[Settings]) -> dict[str, object]:
    """Values of a config that sets only what it must; derived ones are not shown from here."""
    required = {
        name: described.kind.parse("0")
        for name, described in cls.settings().items()
        if described.required
    }
    return vars(cls(**required))


def _default_text(described: Setting, value: object) -> str:
    if described.required:
        return "required"
    if described.default_text is not None:
        return described.default_text
    if value is None or value in ((), {}, ""):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _range_text(described: Setting) -> str:
    if described.choices:
        return ", ".join(f"`{choice}`" for choice in described.choices)
    if described.kind.name == "codec":
        return ", ".join(f"`{name}`" for name in COMPRESSION_CODECS)
    if (described.low, described.high) == (described.kind.low, described.kind.high):
        return ""
    if described.high == described.kind.high:
        return f"from {described.low}"
    return f"{described.low} to {described.high}"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/settings.md").write_text(render())
