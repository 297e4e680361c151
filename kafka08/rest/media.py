"""The media types of the REST API: which version and format a request speaks, and its answer's.

A type is ``application/vnd.kafka[.FORMAT][.vN]+json`` or ``application/json``. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header, parse_options_header

from kafka08.rest.errors import RestError

BINARY, JSON, AVRO = "binary", "json", "avro"
FORMATS = (BINARY, JSON)
NO_AVRO = "Avro needs a registry of schemas, which is not here: use the format binary or json"
PLAIN_JSON = "application/json"
# Confluent's proxy takes this for a request without a type.
UNTYPED = "application/octet-stream"
_TYPE = re.compile(r"application/(?:vnd\.kafka(?:\.(binary|json|avro))?(?:\.v([0-9]))?\+)?json")
unsupported = partial(RestError, 415, 415, "HTTP 415 Unsupported Media Type")


class Media(NamedTuple):
    """``format`` and ``version`` as the type names them: "" and 0 if it does not."""

    name: str
    format: str = ""
    version: int = 0


def typed(version: int, data_format: str = "") -> str:
    """``application/vnd.kafka.v1+json``, with a format ``application/vnd.kafka.binary.v1+json``."""
    return f"application/vnd.kafka{'.' if data_format else ''}{data_format}.v{version}+json"


def media_of(name: str) -> Media:
    """The parts of a type. Raises RestError 415 for one that is not served."""
    found = _TYPE.fullmatch(name.lower())
    if found is None:
        raise unsupported()
    if found[1] == AVRO:
        raise RestError(415, 415, NO_AVRO)
    return Media(name, found[1] or "", int(found[2] or 0))


def request_media(content_type: str, versions: Iterable[int]) -> Media:
    """The type of a request's body. ``versions``: those that the path has. Raises RestError 415."""
    if not content_type.strip():
        return Media("")
    name, options = parse_options_header(content_type)
    if name.lower() == UNTYPED:
        return Media(name)
    if options.get("charset", "utf-8").lower().replace("_", "-") not in ("utf-8", "utf8"):
        raise unsupported()
    media = media_of(name)
    if media.version and media.version not in versions:
        raise unsupported()
    return media


def offers(versions: Sequence[int], formats: Sequence[str] = ()) -> list[Media]:
    """The types an answer may have, the preferred ones first.

    ``formats``: those of the records in the answer; the types without a format stand for the first.
    """
    offered = []
    for version in versions:
        if version == 3:
            continue
        if formats:
            offered.append(Media(typed(version, formats[0]), formats[0], version))
        offered.append(Media(typed(version), "", version))
    if 1 in versions:
        offered.append(Media("application/vnd.kafka+json", "", 1))
    offered.append(Media(PLAIN_JSON))
    offered += [
        Media(typed(version, each), each, version) for version in versions for each in formats[1:]
    ]
    return offered


def chosen(accept: str | None, offered: Sequence[Media]) -> Media | None:
    """The offer that a client likes most, of equals the first; None if it accepts none."""
    if accept is None or not accept.strip():
        return offered[0]
    accepted = parse_accept_header(accept, MIMEAccept)
    qualities = [accepted.quality(media.name) for media in offered]
    best = max(qualities)
    return offered[qualities.index(best)] if best > 0 else None
