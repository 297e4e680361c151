"""Headers at the beginning of a line, as the console producer of later releases reads them.

``name:value,name:value<tab>rest``; the separators are properties. Does not know keys or topics.
"""

from __future__ import annotations

from collections.abc import Mapping

from tools.options import ToolError

Headers = list[tuple[str, "bytes | None"]]


class LineError(ToolError):
    """A line is not what the properties say."""


def is_true(properties: Mapping[str, str], key: str, default: str = "false") -> bool:
    return properties.get(key, default).strip().lower() == "true"


class HeadersParser:
    """Reads headers.delimiter, headers.separator, headers.key.separator, null.marker and
    ignore.error."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._delimiter = properties.get("headers.delimiter", "\t").encode()
        self._separator = properties.get("headers.separator", ",").encode()
        self._name_separator = properties.get("headers.key.separator", ":").encode()
        marker = properties.get("null.marker")
        self._null = None if marker is None else marker.encode()
        self._ignore_error = is_true(properties, "ignore.error")

    def parse(self, line: bytes, number: int) -> tuple[Headers, bytes]:
        """The headers of line ``number``, and the rest of the line. Raises LineError."""
        found, delimiter, rest = line.partition(self._delimiter)
        if not delimiter:
            if self._ignore_error:
                return [], line
            raise LineError(f"No headers delimiter found on line number {number}: '{_text(line)}'")
        if not found or (self._null is not None and found == self._null):
            return [], rest
        return [self._pair(pair, number) for pair in found.split(self._separator)], rest

    def _pair(self, pair: bytes, number: int) -> tuple[str, bytes | None]:
        name, separator, value = pair.partition(self._name_separator)
        if not separator:
            if self._ignore_error:
                return _text(pair), None
            raise LineError(
                f"No header key separator found in pair '{_text(pair)}' on line number {number}"
            )
        if self._null is not None and name == self._null:
            raise LineError(
                f"Header keys should not be equal to the null marker '{_text(self._null)}' as "
                "they can't be null"
            )
        return _text(name), None if value == self._null else value


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
