"""The subject of a certificate as Java writes it, and the rules that make users of it. Pure.

``subject`` is X500Principal.getName: RFC 2253, the last part first, without blanks between parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone

from kafka08.errors import ConfigError

_KEY = "ssl.principal.mapping.rules"
_SEQUENCE, _SET, _VERSION = 0x30, 0x31, 0xA0
# Attributes with a name in RFC 2253; others are written by number and value in hexadecimal.
_NAMES = {
    "550403": "CN",
    "550406": "C",
    "550407": "L",
    "550408": "ST",
    "550409": "STREET",
    "55040a": "O",
    "55040b": "OU",
    "0992268993f22c640119": "DC",
    "0992268993f22c640101": "UID",
}
_TEXTS = {0x0C: "utf-8", 0x12: "ascii", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii"} | {
    0x1E: "utf-16-be",
    0x1C: "utf-32-be",
}
_ESCAPED = re.compile(r'([,=+<>#;"\\])')
_RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|DEFAULT")
_BLANK = "\\ "
_GROUP = re.compile(r"\$(\d)")


class CertificateError(ValueError):
    """Bytes that are not a certificate in DER."""


def subject(certificate: bytes) -> str:
    """The subject of a certificate (DER). Raises CertificateError."""
    return distinguished_name(_fields(certificate)[4])


def expiry(certificate: bytes) -> datetime:
    """When a certificate (DER) ends. Raises CertificateError."""
    _, (tag, value) = list(_members(_content(_fields(certificate)[3], _SEQUENCE)))
    text = value.decode("ascii").removesuffix("Z")
    if tag == 0x17:  # UTCTime, whose years have two digits
        text = ("19" if text >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)


def distinguished_name(name: bytes) -> str:
    """A name in DER as text. Raises CertificateError."""
    parts = []
    for _, several in _members(_content(name, _SEQUENCE)):
        attributes = []
        for _, pair in _members(several):
            (_, oid), (tag, value) = _members(pair)
            attributes.append(_attribute(oid, tag, value))
        parts.append("+".join(attributes))
    return ",".join(reversed(parts))


def _attribute(oid: bytes, tag: int, value: bytes) -> str:
    name, encoding = _NAMES.get(oid.hex()), _TEXTS.get(tag)
    if name is None or encoding is None:
        return f"{name or _dotted(oid)}=#{(bytes([tag]) + _length(len(value)) + value).hex()}"
    text = value.decode(encoding, "replace")
    inner = _ESCAPED.sub(r"\\\1", text.strip(" "))
    before = len(text) - len(text.lstrip(" "))
    after = len(text) - before - len(text.strip(" "))
    return f"{name}={_BLANK * before}{inner}{_BLANK * after}"


def _dotted(oid: bytes) -> str:
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _length(size: int) -> bytes:
    if size < 0x80:
        return bytes([size])
    data = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([0x80 | len(data)]) + data


def _fields(certificate: bytes) -> list[bytes]:
    """Serial number, algorithm, issuer, validity, subject and more, each with its header."""
    whole = _content(_content(certificate, _SEQUENCE), _SEQUENCE, rest=True)
    fields = [bytes([tag]) + _length(len(value)) + value for tag, value in _members(whole)]
    if fields and fields[0][0] == _VERSION:
        del fields[0]
    if len(fields) < 5:
        raise CertificateError("not a certificate")
    return fields


def _content(data: bytes, tag: int, *, rest: bool = False) -> bytes:
    """The content of a value with that tag; with ``rest`` others may come behind it."""
    found = list(_members(data)) if not rest else [next(_members(data), (0, b""))]
    if (len(found) != 1 and not rest) or not found or found[0][0] != tag:
        raise CertificateError("not a certificate")
    return found[0][1]


def _members(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each value in DER."""
    at = 0
    while at < len(data):
        if at + 2 > len(data):
            raise CertificateError("cut off")
        tag, size = data[at], data[at + 1]
        at += 2
        if size >= 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[at : at + count], "big")
            at += count
        if at + size > len(data):
            raise CertificateError("cut off")
        yield tag, data[at : at + size]
        at += size


def mapping(rules: str) -> Callable[[str], str]:
    """A function from a subject to the name of its user: by the first rule that matches the whole
    subject, or else the subject. Raises ConfigError."""
    parsed = list(_parsed(rules))

    def name(subject: str) -> str:
        for pattern, replacement, case in parsed:
            if pattern is None:
                return subject
            match = pattern.fullmatch(subject)
            if match is not None:
                found = _expanded(match, replacement)
                return {"L": found.lower(), "U": found.upper()}.get(case, found)
        return subject

    return name


def _expanded(match: re.Match[str], replacement: str) -> str:
    return _GROUP.sub(lambda group: match[int(group[1])] or "", replacement)


def _parsed(rules: str) -> Iterator[tuple[re.Pattern[str] | None, str, str]]:
    at, text = 0, rules.strip()
    while at < len(text):
        match = _RULE.match(text, at)
        end = len(text) if match is None else match.end()
        if match is None or text[end : end + 1] not in ("", ","):
            raise ConfigError(f"{_KEY} has value {rules} which is not RULE:pattern/replacement/.")
        if match[1] is None:
            yield None, "", ""
        else:
            yield _pattern(rules, match[1], match[2]), match[2], match[3]
        at = end + 1
        while text[at : at + 1] == " ":
            at += 1


def _pattern(rules: str, text: str, replacement: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigError(f"{_KEY} has value {rules}: {error}.") from None
    if max(map(int, _GROUP.findall(replacement)), default=0) > pattern.groups:
        raise ConfigError(f"{_KEY} has value {rules}, and {text} has fewer groups.")
    return pattern
