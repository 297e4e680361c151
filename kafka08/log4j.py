"""Sets up Python's logging from a log4j 1.x properties file.

Supports root and named loggers, additivity, console and file appenders, pattern layouts,
``${...}`` and the system properties in KAFKA_LOG4J_OPTS and LOG_DIR. Logger names are the
original's, so its files work unchanged. Other appenders and layouts are reported on stderr and
ignored.

A broker of a unit writes files of its own: ``server.log`` becomes ``server-3.log`` for the one with
the id 3, for two processes cannot roll one file.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from kafka08.common import TRACE
from kafka08.java_dates import ISO_8601, date_format
from kafka08.settings import properties

# The variable in the environment with the id of a broker of a unit.
PROCESS = "KAFKA08_UNIT_BROKER"
_OFF = logging.CRITICAL + 1
_LEVELS = {
    "ALL": 1,
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": _OFF,
}
_NAMES = {number: name for name, number in _LEVELS.items()}
_DEFAULTS = """
log4j.rootLogger=%s, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%%d] %%p %%m (%%c)%%n
"""
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_CONVERSION = re.compile(r"%(-?\d+)?(?:\.(\d+))?([a-zA-Z%])(?:\{([^}]*)\})?")
_SIZE = re.compile(r"(\d+)\s*(KB|MB|GB)?", re.IGNORECASE)
_NEXT_OPTION = re.compile(r"\s+(?=-[A-Za-z])")
_UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}

# Characters that end a line, control a terminal, or change the direction of text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_INDENT = "    "
# Loggers whose lines repeat names that clients chose, of any length.
_OF_CLIENTS = (
    "kafka.server.KafkaApis",
    "kafka.server.ReplicaManager",
    "kafka.server.OffsetManager",
    "kafka.network.",
    "kafka.coordinator.",
)
_MAX_OF_CLIENTS = 1000  # characters of a message
_MAX_ARGUMENT = 300

Part = Callable[[logging.LogRecord], str]


def configure(path: str | os.PathLike[str] | None = None, *, tool: bool = False) -> None:
    """Set up logging from a file, or the one KAFKA_LOG4J_OPTS names, or else to stdout.

    ``tool`` sets the level on stdout to WARN instead of INFO. A file that cannot be read is
    reported on stderr; it does not stop the program.
    """
    system = system_properties(os.environ)
    source = _file_of(system.get("log4j.configuration")) if path is None else path
    text = _DEFAULTS % ("WARN" if tool else "INFO")
    config = properties.parse(text)
    if source is not None:
        try:
            config = properties.load(source)
        except OSError as error:
            _complain(f"Could not read configuration file [{source}]: {error.strerror}")
    logging.raiseExceptions = False  # no tracebacks if the reader of our stdout closes it
    _apply({key: _substitute(value, config, system) for key, value in config.items()})


def system_properties(environ: Mapping[str, str]) -> dict[str, str]:
    """The ``-Dname=value`` options of KAFKA_LOG4J_OPTS and KAFKA_OPTS, and LOG_DIR."""
    found = {}
    if environ.get("LOG_DIR"):
        found["kafka.logs.dir"] = environ["LOG_DIR"]
    for variable in ("KAFKA_LOG4J_OPTS", "KAFKA_OPTS"):
        for word in option_words(environ.get(variable, "")):
            if word.startswith("-D"):
                name, _, value = word[2:].partition("=")
                found[name] = value
    return found


def option_words(text: str) -> list[str]:
    """The words of KAFKA_LOG4J_OPTS, quoted as in a shell.

    A path with a blank or an apostrophe does not need quotes: if the words by shell rules are not
    all options, each option extends to the next word that begins with a dash.
    """
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe
        words = [""]
    if all(word.startswith("-") for word in words):
        return words
    return _NEXT_OPTION.split(text.strip())


def _file_of(url: str | None) -> str | None:
    return re.sub(r"^file:(//)?", "", url) if url else None


def _substitute(value: str, config: Mapping[str, str], system: Mapping[str, str]) -> str:
    """Substitute ``${...}``. System properties override the file; unknown names are empty."""

    def replacement(match: re.Match[str]) -> str:
        name = match[1]
        if name in system:
            return system[name]
        return _substitute(config.get(name, ""), config, system)

    return _VARIABLE.sub(replacement, value)


def _apply(config: Mapping[str, str]) -> None:
    appenders: dict[str, logging.Handler | None] = {}
    for key, value in config.items():
        if key in ("log4j.rootLogger", "log4j.rootCategory"):
            _set_up(logging.getLogger(), value, config, appenders)
        elif key.startswith(("log4j.logger.", "log4j.category.")):
            _set_up(logging.getLogger(key.split(".", 2)[2]), value, config, appenders)
        elif key.startswith("log4j.additivity."):
            additive = value.strip().lower() != "false"
            logging.getLogger(key.split(".", 2)[2]).propagate = additive


def _set_up(
    logger: logging.Logger,
    value: str,
    config: Mapping[str, str],
    appenders: dict[str, logging.Handler | None],
) -> None:
    """Parse ``LEVEL, appender, appender``; an empty level keeps the parent's."""
    level, *names = (word.strip() for word in value.split(","))
    if level:
        logger.setLevel(_LEVELS.get(level.upper(), logging.DEBUG))
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
    for name in filter(None, names):
        if name not in appenders:
            appenders[name] = _appender(name, config)
        appender = appenders[name]
        if appender is not None:
            logger.addHandler(appender)


def _appender(name: str, config: Mapping[str, str]) -> logging.Handler | None:
    """The handler of an appender; None if it cannot be created."""
    prefix = f"log4j.appender.{name}"
    kind = config.get(prefix, "").strip().rpartition(".")[2]
    options = {
        key[len(prefix) + 1 :].lower(): value.strip()
        for key, value in config.items()
        if key.startswith(prefix + ".")
    }
    try:
        handler = _handler(kind, options)
    except OSError as error:
        _complain(f"Could not open the file of appender [{name}]: {error}")
        return None
    except ValueError as error:
        _complain(f"Could not set the options of appender [{name}]: {error}")
        return None
    if handler is None:
        _complain(f"Could not instantiate appender named [{name}].")
        return None
    # The pattern is not stripped: trailing blanks are part of it.
    pattern = config.get(f"{prefix}.layout.ConversionPattern", "%m%n")
    handler.setFormatter(PatternLayout(pattern))
    handler.setLevel(_LEVELS.get(options.get("threshold", "ALL").upper(), logging.NOTSET))
    return handler


def _handler(kind: str, options: Mapping[str, str]) -> logging.Handler | None:
    if kind == "ConsoleAppender":
        err = options.get("target", "").lower() == "system.err"
        return logging.StreamHandler(sys.stderr if err else sys.stdout)
    if kind not in ("FileAppender", "RollingFileAppender", "DailyRollingFileAppender"):
        return None
    path = _own_path(options.get("file", ""), os.environ.get(PROCESS, ""))
    os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
    if kind == "DailyRollingFileAppender":
        return DailyRollingFileHandler(path, options.get("datepattern", "'.'yyyy-MM-dd"))
    if kind == "RollingFileAppender":
        size = _bytes(options.get("maxfilesize", "10MB"))
        backups = int(options.get("maxbackupindex", "1"))
        # Here, because it imports much that a program with other appenders does not need.
        from logging.handlers import RotatingFileHandler

        return RotatingFileHandler(path, maxBytes=size, backupCount=backups)
    return logging.FileHandler(path, "w" if options.get("append") == "false" else "a")


def _own_path(path: str, process: str) -> str:
    """The file of this process, if it is one of several."""
    if not path or not process:
        return path
    stem, dot = os.path.splitext(path)
    return f"{stem}-{process}{dot}"


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    return int(match[1]) * _UNITS[(match[2] or "").upper()] if match else 10 << 20


class DailyRollingFileHandler(logging.FileHandler):
    """Renames its file when the date in the pattern has changed (DailyRollingFileAppender)."""

    def __init__(self, path: str | os.PathLike[str], date_pattern: str) -> None:
        self._suffix_at = date_format(date_pattern)
        self._path = path
        last = os.stat(path).st_mtime if os.path.exists(path) else time.time()
        self._suffix = self._suffix_at(last)
        super().__init__(path)

    def emit(self, record: logging.LogRecord) -> None:
        suffix = self._suffix_at(record.created)
        if suffix > self._suffix:
            self._roll(suffix)
        super().emit(record)

    def _roll(self, suffix: str) -> None:
        self.close()
        try:
            os.replace(self._path, f"{self._path}{self._suffix}")
        except OSError as error:
            _complain(f"Failed to rename [{self._path}]: {error.strerror}")
        self._suffix = suffix
        self.stream = self._open()


class PatternLayout(logging.Formatter):
    """log4j's conversion pattern; ``%n`` at its end is left to the handler.

    A message may contain text from clients. Its control characters are written as Python
    escapes, so that only the logger's own lines begin in the first column. Long messages about
    clients, and long lines of tracebacks, are cut.
    """

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self._parts = _compile(pattern.removesuffix("%n"))

    def formatMessage(self, record: logging.LogRecord) -> str:
        return "".join([part(record) for part in self._parts])

    def formatException(self, ei: Any) -> str:
        """The traceback; further lines of an exception's own text are indented."""
        entries = []
        for entry in traceback.TracebackException(*ei).format():
            own = entry.startswith((" ", "\n"))  # frames, and the text between two exceptions
            lines = [
                _cut(escaped(line.expandtabs()), _MAX_OF_CLIENTS)
                for line in entry.removesuffix("\n").split("\n")
            ]
            entries.append(("\n" if own else "\n" + _INDENT).join(lines))
        return "\n".join(entries)


def escaped(text: str) -> str:
    """``text`` on one line: control characters as ``\\n``, ``\\x1b`` or ``\\u2028``."""
    if text.isprintable():
        return text
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def _message(record: logging.LogRecord) -> str:
    text = record.message
    if len(text) > _MAX_OF_CLIENTS and record.name.startswith(_OF_CLIENTS):
        return _short(record)
    if text.isprintable():
        return text
    if not record.args or not isinstance(record.msg, str) or record.msg.isprintable():
        return escaped(text)
    # Line breaks of a format string are the program's; those of its arguments may be a client's.
    return _filled(record, escaped) or escaped(text)


def _short(record: logging.LogRecord) -> str:
    """A message whose arguments, and which as a whole, are cut."""
    text = _filled(record, lambda argument: _cut(argument, _MAX_ARGUMENT)) or record.message
    return _cut(escaped(text), _MAX_OF_CLIENTS)


def _filled(record: logging.LogRecord, plain: Callable[[str], str]) -> str:
    """The message with its arguments made plain, numbers aside; "" if it has none."""
    args = record.args if isinstance(record.args, tuple) else ()
    shown = tuple(each if isinstance(each, int | float) else plain(str(each)) for each in args)
    return str(record.msg) % shown if shown else ""


def _compile(pattern: str) -> list[Part]:
    parts = []
    end = 0
    for match in _CONVERSION.finditer(pattern):
        parts.append(_literal(pattern[end : match.start()]))
        width, precision, letter, argument = match.groups()
        parts.append(_padded(_conversion(letter, argument), width, precision))
        end = match.end()
    parts.append(_literal(pattern[end:]))
    return parts


def _literal(text: str) -> Part:
    return lambda record: text


def _padded(part: Part, width: str | None, precision: str | None) -> Part:
    if width is None and precision is None:
        return part
    places, most = int(width or 0), int(precision or 0)

    def padded(record: logging.LogRecord) -> str:
        text = part(record)[-most:] if most else part(record)
        return text.ljust(-places) if places < 0 else text.rjust(places)

    return padded


def _conversion(letter: str, argument: str | None) -> Part:
    if letter == "d":
        return _date(argument)
    if letter == "c" and argument:
        last = int(argument)
        return lambda record: ".".join(record.name.split(".")[-last:])
    return _CONVERSIONS.get(letter, _literal("%" + letter))


_CONVERSIONS: dict[str, Part] = {
    "c": lambda record: escaped(record.name),
    "C": lambda record: record.module,
    "F": lambda record: record.filename,
    "L": lambda record: str(record.lineno),
    "M": lambda record: record.funcName or "",
    "m": _message,
    "n": _literal("\n"),
    "p": lambda record: _NAMES.get(record.levelno, record.levelname),
    "r": lambda record: str(int(record.relativeCreated)),
    "t": lambda record: escaped(record.threadName or ""),
    "%": _literal("%"),
}


def _date(pattern: str | None) -> Part:
    named = {"ISO8601": ISO_8601, "ABSOLUTE": "HH:mm:ss,SSS", "DATE": "dd MMM yyyy HH:mm:ss,SSS"}
    pattern = pattern or "ISO8601"
    try:
        text = date_format(named.get(pattern, pattern))
    except ValueError as error:
        _complain(f"Could not instantiate SimpleDateFormat with {pattern}: {error}")
        text = date_format(ISO_8601)
    return lambda record: text(record.created)


def _complain(text: str) -> None:
    print(f"log4j:ERROR {text}", file=sys.stderr, flush=True)
