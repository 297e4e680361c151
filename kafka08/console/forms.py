"""The fields of forms as people fill them in, and what a form says when a field cannot be taken."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import NamedTuple

from werkzeug.exceptions import Conflict

from kafka08.errors import KafkaError
from kafka08.settings.settings import NumberFormatError, UnknownConfigError
from kafka08.settings.topic import LogConfig
from zk.errors import SessionExpiredError, ZkConnectionError, ZkError

_AGO = re.compile(r"-?\s*(\d+)\s*(s|m|min|h|d)")
_AGO_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_DAY = re.compile(
    r"(?:(\d{4})-(\d\d)-(\d\d)(?:[T ]+|$))?(?:(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,3}))?)?)?"
    r"\s*(Z|UTC|[+-]\d\d:?\d\d)?"
)
_TIMES = "2026-11-25 21:14, 21:14 or -15m"


class FieldError(ValueError):
    """A field of a form cannot be taken. ``field``: its name."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field
        self.text = text


class PartlyDoneError(KafkaError):
    """Only a part of a change was made for certain; the text says which."""


class Problem(NamedTuple):
    """Why a form was not carried out. ``field``: the one that is wrong, "" if none is.
    ``is_known``: nothing was changed; otherwise it may have been."""

    text: str
    field: str = ""
    is_known: bool = True
    status: int = 400

    @classmethod
    def of(cls, error: Exception) -> Problem:
        if isinstance(error, FieldError):
            return cls(error.text, error.field)
        if isinstance(error, Conflict):
            return cls(str(error.description), status=409)
        if isinstance(error, PartlyDoneError):
            return cls(str(error), is_known=False, status=503)
        is_lost = isinstance(error, OSError | ZkConnectionError | SessionExpiredError)
        if is_lost or (isinstance(error, ZkError) and error.after_loss):
            return cls(in_words(error), is_known=False, status=503)
        return cls(reason_of(error))


def reason_of(error: Exception) -> str:
    """The text of what it was raised for, if that is an error of ours."""
    return str(error.__cause__ if isinstance(error.__cause__, KafkaError) else error)


def in_words(error: Exception) -> str:
    """An outage by its name."""
    if isinstance(error, ZkConnectionError | SessionExpiredError):
        return "ZooKeeper does not answer"
    return str(error)


def whole(text: str, field: str, low: int = 0, high: int = 2**63 - 1) -> int:
    """A number. Raises FieldError."""
    try:
        found = int(text)
    except ValueError:
        raise FieldError(field, f"{text!r} is not a whole number") from None
    if not low <= found <= high:
        raise FieldError(field, f"{found} is not between {low} and {high}")
    return found


def header_lines(text: str, field: str) -> list[tuple[str, bytes]]:
    """``name: value`` lines, the headers of a message; a name may come again. Raises FieldError."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise FieldError(field, f"line {number} is not name: value")
        found.append((name.strip(), value.strip().encode()))
    return found


def topic_settings(text: str, field: str) -> dict[str, str]:
    """``name=value`` lines. Raises FieldError."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        key, equals, value = line.partition("=")
        if not equals:
            raise FieldError(field, f"{line!r} is not name=value")
        _check_setting(key.strip(), value.strip(), field)
        found[key.strip()] = value.strip()
    return found


def _check_setting(key: str, value: str, field: str) -> None:
    try:
        LogConfig.validate({key: value})
    except NumberFormatError:
        raise FieldError(field, f"{key}: {value!r} is not a number") from None
    except UnknownConfigError:
        raise FieldError(field, f"topics have no setting named {key!r}") from None
    except KafkaError as error:
        raise FieldError(field, f"{key}: {error}") from None


def time_ms(text: str, field: str, now_ms: int) -> int:
    """A time as people write it: ``2026-11-25 21:14``, ``21:14`` (the last one), ``-15m``, or as
    the console's pages show it; in UTC unless a zone is named. Raises FieldError."""
    words = text.strip()
    ago = _AGO.fullmatch(words)
    if ago:
        return now_ms - int(ago[1]) * _AGO_S[ago[2]] * 1000
    found = _DAY.fullmatch(words)
    if found is None or not words or (found[1] is None and found[4] is None):
        raise FieldError(field, f"{text!r} is not a time like {_TIMES}")
    year, month, day, hour, minute, second, fraction, zone = found.groups(default="0")
    zoned = _zone(zone)
    now = datetime.datetime.fromtimestamp(now_ms / 1000, zoned)
    try:
        moment = now.replace(hour=int(hour), minute=int(minute), second=int(second), microsecond=0)
        if found[1] is not None:
            moment = moment.replace(int(year), int(month), int(day))
    except ValueError:
        raise FieldError(field, f"{text!r} is not a time like {_TIMES}") from None
    if found[1] is None and moment > now:
        moment -= datetime.timedelta(days=1)
    return int(moment.timestamp()) * 1000 + int(fraction.ljust(3, "0")[:3] if found[7] else 0)


def _zone(text: str) -> datetime.timezone:
    if text in ("0", "Z", "UTC"):
        return datetime.timezone.utc
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return datetime.timezone(datetime.timedelta(minutes=minutes if text[0] == "+" else -minutes))


def content(form: Mapping[str, str], field: str) -> bytes:
    """The bytes of a field, as text or as hexadecimal digits. Raises FieldError."""
    text = form.get(field, "")
    if form.get(f"{field}_as", "text") == "text":
        # Browsers send line ends as CR LF.
        return text.replace("\r\n", "\n").encode()
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise FieldError(field, "these are not hexadecimal digits") from None
