"""Joins the texts of several brokers' metrics to one, in Prometheus' format 0.0.4.

Each series gets the label ``broker_id``, so that none is there twice. The series of a family stand
together below one head, as the format wants it.
"""

from __future__ import annotations

from collections.abc import Mapping

_UP = "kafka_server_unit_broker_up"
_HELP = f"# HELP {_UP} 1 for a broker of this unit whose metrics are below, 0 for another one.\n"
_HEAD = f"{_HELP}# TYPE {_UP} gauge\n"


def joined(texts: Mapping[int, bytes | None]) -> bytes:
    """``texts``: by broker id; None of a broker that did not answer."""
    heads: dict[bytes, list[bytes]] = {}
    samples: dict[bytes, list[bytes]] = {}
    for broker_id, text in texts.items():
        if text is not None:
            _add(text, b'broker_id="%d"' % broker_id, heads, samples)
    up = "".join(
        f'{_UP}{{broker_id="{broker_id}"}} {int(text is not None)}\n'
        for broker_id, text in texts.items()
    )
    parts = [f"{_HEAD}{up}".encode()]
    for name, lines in samples.items():
        parts += heads.get(name, ())
        parts += lines
    return b"".join(parts)


def _add(
    text: bytes, label: bytes, heads: dict[bytes, list[bytes]], samples: dict[bytes, list[bytes]]
) -> None:
    """``heads``, ``samples``: lines by the name of the family."""
    lines: list[bytes] = []
    known: set[bytes] = set(heads)
    for line in text.splitlines(keepends=True):
        if line.startswith(b"# "):
            name = line.split(b" ", 3)[2]
            lines = samples.setdefault(name, [])
            if name not in known:
                heads.setdefault(name, []).append(line)
        elif line.strip():
            lines.append(_labelled(line, label))


def _labelled(line: bytes, label: bytes) -> bytes:
    blank, brace = line.index(b" "), line.find(b"{")
    if not 0 <= brace < blank:
        return b"%b{%b}%b" % (line[:blank], label, line[blank:])
    comma = b"" if line.startswith(b"}", brace + 1) else b","
    return b"%b%b%b%b" % (line[: brace + 1], label, comma, line[brace + 1 :])
