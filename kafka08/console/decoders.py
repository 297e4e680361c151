"""Keys and values as text: bytes of others, shown under the decoder that the reader chooses."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from typing import NamedTuple

from kafka08.errors import ProtocolError
from kafka08.groups import records

SHOWN_CHARACTERS = 4000
_DUMP_BYTES = 1024
_HEAD_CHARACTERS = 120
# Of text; others are those of binary values.
_CONTROLS = frozenset("\t\n\r")
_NUMBERS = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}


Decode = Callable[[bytes], str]


class Decoded(NamedTuple):
    """``text`` is cut if ``size``, in bytes, is larger than what is shown. ``note``: why it is not
    shown under the decoder asked for. ``head``: what stands for a long text as long as it is not
    opened, "" for a short one."""

    text: str
    size: int
    is_cut: bool
    note: str = ""

    @property
    def head(self) -> str:
        if len(self.text) <= _HEAD_CHARACTERS and "\n" not in self.text:
            return ""
        return " ".join(self.text[: 2 * _HEAD_CHARACTERS].split())[:_HEAD_CHARACTERS]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _utf16(data: bytes) -> str:
    has_mark = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    return data.decode("utf-16" if has_mark else "utf-16-be")


def _json(data: bytes) -> str:
    return json.dumps(json.loads(data), indent=1, ensure_ascii=False)


def _hex(data: bytes) -> str:
    lines = []
    for start in range(0, min(len(data), _DUMP_BYTES), 16):
        row = data[start : start + 16]
        plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start:08x}  {row.hex(' '):<47}  {plain}")
    return "\n".join(lines)


def _base64(data: bytes) -> str:
    return base64.b64encode(data[: SHOWN_CHARACTERS * 3 // 4]).decode()


def _number(data: bytes) -> str:
    if len(data) not in _NUMBERS:
        raise ValueError(f"a number has 1, 2, 4 or 8 bytes, not {len(data)}")
    return str(struct.unpack(_NUMBERS[len(data)], data)[0])


def _offsets_value(data: bytes) -> str:
    try:
        return str(records.decode_value(data))
    except ProtocolError:
        return str(records.decode_group(data))


def _fitting(data: bytes) -> Decode:
    """JSON if it is an object or a list, text if it can be read, else bytes."""
    try:
        text = data.decode()
        if text[:1] in "{[" and isinstance(json.loads(text), dict | list):
            return _json
    except UnicodeDecodeError:
        return _hex
    except (ValueError, RecursionError):
        pass
    is_readable = all(each.isprintable() or each in _CONTROLS for each in text[:SHOWN_CHARACTERS])
    return _text if is_readable else _hex


DECODERS: dict[str, tuple[Decode | None, Decode | None]] = {
    "guessed": (None, None),
    "text": (_text, _text),
    "json": (_text, _json),
    "hex": (_hex, _hex),
    "base64": (_base64, _base64),
    "number": (_number, _number),
    "utf-16": (_utf16, _utf16),
    "offsets": (lambda data: str(records.decode_key(data)), _offsets_value),
}
"""Name to the decoders of key and value; None is the one that fits. ``offsets``: records of the
offsets topic."""


def shown(data: bytes | None, decoder: Decode | None = None) -> Decoded | None:
    """None for null. Without a ``decoder`` the one that fits is taken. Bytes that it does not take
    are shown in hex, with the reason."""
    if data is None:
        return None
    note = ""
    decoder = decoder or _fitting(data)
    try:
        text = decoder(data)
    except (ValueError, RecursionError, ProtocolError) as error:
        text, note = _hex(data), str(error) or type(error).__name__
        decoder = _hex
    is_cut = len(text) > SHOWN_CHARACTERS
    is_cut |= decoder is _hex and len(data) > _DUMP_BYTES
    is_cut |= decoder is _base64 and len(data) > SHOWN_CHARACTERS * 3 // 4
    return Decoded(text[:SHOWN_CHARACTERS], len(data), is_cut, note[:200])
